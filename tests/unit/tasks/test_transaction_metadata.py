"""The records of the transaction topic that another engine has sent are left out."""

from __future__ import annotations

from incsnap.config.topics import transaction_topic
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.snapshot.offset import OpenCounts
from incsnap.tasks.transaction_metadata import ending, not_sent
from tests.support.job_settings import loaded_with

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
#: The topic has the transaction 7 whole, and of 8 the BEGIN.
_SEAM = Seam("uuid", RecordPlace(1, 4), begun=f"{_SERVER}:7-8", ended=f"{_SERVER}:7")


def test_a_transaction_of_which_the_topic_has_the_begin_gets_its_end_alone() -> None:
    values = [{"status": status, "id": f"{_SERVER}:{number}"} for number in (7, 8, 9) for status in ("BEGIN", "END")]

    assert not_sent(values, _SEAM) == values[3:]
    assert not_sent(values, None) == values


def test_the_end_of_a_transaction_that_began_in_an_earlier_batch_is_left_out_if_the_topic_has_it() -> None:
    settings = loaded_with(provide__transaction__metadata="true").settings
    topic = transaction_topic(settings)

    def is_made(number: int, seam: Seam | None) -> bool:
        assert topic is not None
        return ending(settings, topic, f"{_SERVER}:{number}", OpenCounts(1), 1, seam) is not None

    assert [is_made(number, _SEAM) for number in (7, 8, 9)] == [False, True, True]
    assert is_made(7, None)
