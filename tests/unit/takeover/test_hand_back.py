"""The ends of a job at which no connector can go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, remember
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner import asked_place
from incsnap.planner.choices import PREFIX
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from incsnap.takeover import hand_back as handing
from incsnap.takeover import unsent_xa
from incsnap.takeover.hand_back import hand_back
from incsnap.takeover.unsent_xa import refuse_unsent_xa, unseen_xa
from tests.support.job_settings import loaded_with

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_A, _B = "X'61',X'',1", "X'62',X'',1"
_DELIVERED = GtidSet.parse(f"{_SERVER}:1-9")
_END = Offset("job", 1, StreamPosition(_DELIVERED, "binlog.000001", 900), TopicLayout(1))
_KEYS = ChosenRows(files="checkpoint:gap/job/keys-1-1.json", deletes=True)
_DIFFERING_ROWS = Request("gap-job-1", DataCollection(TableId("shop", "t"), chosen=_KEYS))


class Passed(Exception):
    """An error: the end was not refused, so the command asks MySQL."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return loaded_with(topic__prefix="shop", checkpoint__location=str(tmp_path)).settings


def stopped_at(settings: Settings, end: Offset) -> None:
    """Write the checkpoint of a job whose last batch ended at `end`."""
    for log, content in (("offsets", f"v1\n{{}}\n{json.dumps(Offset.dump(end))}"), ("commits", "v1\n{}")):
        file = Path(settings.checkpoint_location) / "spark" / log / str(end.batch)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def given_back(settings: Settings) -> None:
    """Hand back without a server. Raise Passed if the end is not refused."""
    with patch.object(handing, "connect", side_effect=Passed):
        hand_back(settings)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda end: replace(end, prepared=(PreparedXa(_A, f"{_SERVER}:9"),)), f"XA transactions were .*{_A}"),
        (lambda end: replace(end, sought=(_B,)), f"XA transactions were .*{_B}"),
        (lambda end: replace(end, seam="seams/1"), "has not passed what the connector had sent"),
        (
            lambda end: replace(end, seam="seams/1", prepared=(PreparedXa(_A, f"{_SERVER}:9"),)),
            f"XA transactions were .*{_A}",
        ),
        (
            lambda end: replace(end, stream=replace(end.stream, open_gtid=f"{_SERVER}:10", events_done=3)),
            f"a part of the transaction {_SERVER}:10",
        ),
        (lambda end: replace(end, signal_positions={"gap": 1}), "not sent all changes of a gap"),
        (
            lambda end: replace(
                end, signal_positions={"gap": "closed"}, snapshot=SnapshotContext(queue=(_DIFFERING_ROWS,))
            ),
            "not sent all changes of a gap",
        ),
    ],
    ids=[
        "prepared XA",
        "sought XA",
        "seam",
        "a prepared XA keeps the seam",
        "open transaction",
        "gap not compared",
        "gap not sent",
    ],
)
def test_an_end_at_which_no_connector_can_go_on_is_refused(
    settings: Settings, change: Callable[[Offset], Offset], why: str
) -> None:
    stopped_at(settings, _END)
    with pytest.raises(Passed):
        given_back(settings)

    stopped_at(settings, change(_END))
    with pytest.raises(ConfigError, match=why) as refused:
        given_back(settings)
    assert "try again" in refused.value.hint


def test_a_gap_that_is_repaired_goes_back(settings: Settings) -> None:
    other = replace(_DIFFERING_ROWS, signal="asked")
    repaired = replace(_END, signal_positions={"gap": "closed"}, snapshot=SnapshotContext(queue=(other,)))
    stopped_at(settings, repaired)
    with pytest.raises(Passed):
        given_back(settings)


def test_a_place_that_a_signal_has_asked_for_and_no_start_has_reached_is_refused(settings: Settings) -> None:
    files = Files(own_part(settings.checkpoint_location))
    stopped_at(settings, _END)
    files.write_json(asked_place.FILE, {"id": "skip", "row": "", "gtids": f"{_SERVER}:1-20"})

    with pytest.raises(ConfigError, match=r"signal skip \(set-binlog-position\)") as refused:
        given_back(settings)
    assert "Start the job (incsnap run)" in refused.value.hint
    assert f"delete {files.path(asked_place.FILE)}" in refused.value.hint

    files.delete(asked_place.FILE)
    with pytest.raises(Passed):
        given_back(settings)


def test_a_batch_that_is_planned_and_not_done_is_refused(settings: Settings) -> None:
    files = Files(own_part(settings.checkpoint_location))
    stopped_at(settings, _END)

    def plan(end: Offset) -> None:
        remember(files, KeptOffsets(files), end, PlannedWith("0.1.0", {PREFIX: "shop"}))

    for harmless in (_END, replace(_END, job_id="earlier", batch=2)):
        plan(harmless)
        with pytest.raises(Passed):
            given_back(settings)
    plan(replace(_END, batch=2))
    with pytest.raises(ConfigError, match="batch 2 of the job is planned"):
        given_back(settings)


@pytest.mark.parametrize(
    ("listed", "prepared", "committed", "why"),
    [
        ((), set(), set(), ""),
        ((_A,), {_A}, set(), ""),  # Debezium reads its XA PREPARE
        ((), {_A}, set(), ""),
        (None, {_A}, set(), ""),  # the user may not ask
        ((_A, _B), {_A}, set(), f"no XA PREPARE of them behind .*{_B}"),
        ((), set(), {_A}, f"committed behind it: {_A}"),
        (None, set(), {_A}, f"committed behind it: {_A}"),
        ((_A,), {_A}, {_A}, f"committed behind it: {_A}"),  # and prepared again under its name
    ],
)
def test_only_xa_transactions_that_neither_engine_would_send_are_refused(
    settings: Settings, listed: tuple[str, ...] | None, prepared: set[str], committed: set[str], why: str
) -> None:
    asked: list[str] = []

    def behind(_: PreparedSearch, delivered: GtidSet) -> tuple[set[str], set[str]]:
        asked.append(f"the binlog behind {delivered}")
        return prepared, committed

    def xids(_: object) -> tuple[str, ...] | None:
        asked.append("XA RECOVER")
        return listed

    with patch.object(PreparedSearch, "behind", behind), patch.object(unsent_xa, "prepared_xids", xids):
        if why:
            with pytest.raises(ConfigError, match=why):
                refuse_unsent_xa(settings, None, _DELIVERED)  # type: ignore[arg-type]
        else:
            refuse_unsent_xa(settings, None, _DELIVERED)  # type: ignore[arg-type]

    # What ends in between is in the binlog.
    assert asked == ["XA RECOVER", f"the binlog behind {_DELIVERED}"]


def test_a_user_who_may_not_see_prepared_transactions_is_named_with_the_grant() -> None:
    with (
        patch.object(unsent_xa, "prepared_xids", return_value=None),
        patch.object(unsent_xa, "account", return_value="'cdc'@'%'"),
    ):
        (warning,) = unseen_xa(Mock())
    assert warning.startswith("'cdc'@'%' lacks the privilege XA_RECOVER_ADMIN")
    assert "GRANT XA_RECOVER_ADMIN ON *.* TO 'cdc'@'%'; and try again" in warning

    with patch.object(unsent_xa, "prepared_xids", return_value=()):
        assert unseen_xa(Mock()) == []
