"""How long a job keeps the seam behind a take-over: the list of records that the connector has sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.envelope.seam import PartitionEnd, RecordPlace, Seam
from incsnap.errors import OffsetError
from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.persist import seam_behind
from incsnap.snapshot.offset import Offset, TopicLayout

_SERVER, _OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fa47-71ca-11e1-9e33-c80aa9429562"
_SEAM = Seam(_SERVER, RecordPlace(7, 400), (PartitionEnd("shop.t", 0, RecordPlace(7, 900)),), asked=RecordPlace(8, 50))


def at(file: str, pos: int, server: str = _SERVER) -> Offset:
    """Return the end of a batch at this place in the binlog of `server`."""
    return Offset("job", 3, StreamPosition(GtidSet(), file, pos, server_uuid=server), TopicLayout(1))


_PAST = at("binlog.000009", 4)


def xa_in(file: str) -> PreparedXa:
    """Return an XA transaction that is prepared in binlog file `file`."""
    return PreparedXa("X'61',X'',1", f"{_SERVER}:5", file)


@pytest.mark.parametrize(
    "end",
    [
        at("binlog.000007", 500),
        at("binlog.000008", 49),
        replace(_PAST, stream=replace(_PAST.stream, open_gtid=f"{_SERVER}:9")),
        replace(_PAST, sought=("X'61',X'',1",)),
    ],
    ids=["before the last record", "not past the question", "within a transaction", "an XA PREPARE is searched"],
)
def test_the_seam_stays_until_the_stream_is_past_it(end: Offset) -> None:
    assert seam_behind(end, _SEAM) == _SEAM


def test_the_seam_ends_on_a_server_where_nobody_writes() -> None:
    """The stream has read everything, so it stands where the binlog ended at the question."""
    assert seam_behind(at("binlog.000008", 50), _SEAM) is None


@pytest.mark.parametrize("file", ["binlog.000006", "binlog.000007", ""], ids=["before", "at the seam", "unknown"])
def test_an_xa_transaction_that_may_be_from_before_the_seam_keeps_it(file: str) -> None:
    end = replace(_PAST, prepared=(xa_in("binlog.000009"), xa_in(file)))

    assert seam_behind(end, _SEAM) == _SEAM


@pytest.mark.parametrize("file", ["binlog.000008", "binlog.000009", "binlog.1000000"])
def test_an_xa_transaction_that_is_prepared_behind_the_seam_does_not_keep_it(file: str) -> None:
    assert seam_behind(replace(_PAST, prepared=(xa_in(file),)), _SEAM) is None


def test_another_server_stops_the_job_only_before_it_is_past_the_seam() -> None:
    end = at("binlog.000001", 4, _OTHER)
    with pytest.raises(OffsetError, match=f"that of server {_OTHER} now, .* in that of {_SERVER}") as stopped:
        seam_behind(end, _SEAM)
    assert "Set database.hostname to the server of the take-over" in stopped.value.hint

    assert seam_behind(_PAST, _SEAM) is None
    assert seam_behind(end, None) is None
    # The same server may have begun its binlog anew.
    assert seam_behind(at("binlog.000007", 500, f"{_SERVER}/1"), _SEAM) == _SEAM
