"""A start asks Kafka about the connector's records only if it is the first one behind a take-over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.taken_over import TakenOver, write_taken_over
from incsnap.config.settings import Settings
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner import late_start
from incsnap.planner.choices import choices_digest
from incsnap.planner.late_start import refuse_late_start
from incsnap.snapshot.offset import Offset, TopicLayout
from tests.support.job_settings import loaded_with

_TAKEN = TakenOver("shop", "", Seam("uuid", RecordPlace(1, 4)), ends={"shop.d.t": (7, 0), "shop.d.later": ()})
_FIRST = Offset("job", 0, StreamPosition(GtidSet(), "", 0), TopicLayout(1, {}))


@pytest.fixture
def settings() -> Settings:
    return loaded_with(topic__prefix="shop").settings


def test_only_records_behind_the_ends_of_the_take_over_are_a_reason(settings: Settings, tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    write_taken_over(files, _TAKEN)
    same = {"shop.d.t": (7, 0), "shop.d.later": (0,)}
    aborted = {"shop.d.t": (8, 0), "shop.d.later": ()}
    grown = {"shop.d.t": (7, 0), "shop.d.later": (1,)}
    with (
        patch.object(late_start, "ends_by_topic", side_effect=[same, aborted, grown]),
        patch.object(late_start, "has_records", side_effect=[False, True]) as asked,
    ):
        refuse_late_start(settings, files)
        refuse_late_start(settings, files)
        with pytest.raises(ConfigError, match=r"shop\.d\.later has records .* `incsnap takeover`"):
            refuse_late_start(settings, files)

    assert [call.args[1:] for call in asked.call_args_list] == [("shop.d.t", 0, 7), ("shop.d.later", 0, 0)]


def test_a_job_that_begins_inside_a_transaction_begins_with_the_settings_of_the_take_over(
    settings: Settings, tmp_path: Path
) -> None:
    files = Files(str(tmp_path))
    write_taken_over(files, replace(_TAKEN, ends={}, choices=choices_digest(settings)))
    refuse_late_start(settings, files)
    other = loaded_with(topic__prefix="shop", table__exclude__list=r"shop\.t").settings
    with pytest.raises(ConfigError, match="have changed since `incsnap takeover`"):
        refuse_late_start(other, files)


def test_a_take_over_of_an_earlier_release_and_a_job_that_has_begun_again_are_not_asked_about(
    settings: Settings, tmp_path: Path
) -> None:
    with patch.object(late_start, "ends_by_topic") as asked:
        refuse_late_start(settings, Files(str(tmp_path / "no take-over")))
        earlier = Files(str(tmp_path / "earlier"))
        write_taken_over(earlier, replace(_TAKEN, ends={}))
        assert "ends" not in earlier.read_json("taken-over.json")
        refuse_late_start(settings, earlier)
        again = Files(str(tmp_path / "again"))
        write_taken_over(again, _TAKEN)
        first_offset(str(tmp_path / "again"), lambda: _FIRST)
        refuse_late_start(settings, again)

    assert not asked.called
