"""Jobs below a folder: which of them `incsnap status FOLDER` lists, and how bad they are."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from rich.console import Console

from incsnap.cli.main import commands
from incsnap.cli.many_jobs import SUSPICIOUS, WELL, ListedJob, checkpoints_below, listed, rank
from incsnap.monitoring.gap_status import GapStatus
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.liveness import Liveness
from incsnap.monitoring.status import KeyRange, SnapshotStatus, StreamStatus, TableStatus, dump
from incsnap.monitoring.verification_status import TableVerification, VerificationStatus
from tests.support.job_statuses import now_ms, running

#: A user and a group without rights of their own.
_NOBODY = 65_534


def _job(checkpoint: Path, **changed: object) -> Path:
    """Make a checkpoint of a job, and return its folder."""
    (checkpoint / "incsnap").mkdir(parents=True)
    (checkpoint / "spark").mkdir()
    (checkpoint / "incsnap" / NAME).write_text(json.dumps(dump(running(topic_prefix=checkpoint.name, **changed))))
    return checkpoint


def _as_nobody(call: Callable[[], object]) -> object:
    """Return what `call` returns to a user without rights. The value is sent as JSON."""
    if os.getuid():
        return call()
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
        with os.fdopen(writes, "w") as answer:
            try:
                answer.write(json.dumps(call()))
            except BaseException as error:  # noqa: BLE001 - shown by the parent
                answer.write(json.dumps(repr(error)))
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that every user may read: those above it are the test's user's alone."""
    for above in (tmp_path, *tmp_path.parents):
        if above == Path("/tmp") or above.parent == above:
            break
        above.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("above", ["incsnap", "spark", "incsnap/spark/incsnap"])
def test_folders_above_checkpoints_may_have_any_name(above: str, tmp_path: Path) -> None:
    shop = _job(tmp_path / above / "shop")

    assert checkpoints_below(tmp_path) == ([str(shop)], [])


def test_nothing_inside_a_checkpoint_is_a_checkpoint(tmp_path: Path) -> None:
    shop = _job(tmp_path / "shop")
    _job(shop / "spark" / "inner")

    assert checkpoints_below(tmp_path) == ([str(shop)], [])


def test_a_checkpoint_that_only_its_status_group_may_enter_is_listed(folder: Path) -> None:
    shop = _job(folder / "shop")
    for entered in (shop / "incsnap", shop):
        entered.chmod(0o711)

    assert _as_nobody(lambda: checkpoints_below(folder)) == [[str(shop)], []]


def test_a_checkpoint_that_may_not_be_read_hides_no_other(folder: Path) -> None:
    shop, closed, private = _job(folder / "shop"), _job(folder / "closed"), folder / "private"
    (closed / "incsnap").chmod(0o700)
    private.mkdir(mode=0o700)

    assert _as_nobody(lambda: checkpoints_below(folder)) == [[str(closed), str(shop)], [str(private)]]


def test_a_job_whose_status_cannot_be_read_is_a_line_of_json_too(tmp_path: Path) -> None:
    _job(tmp_path / "shop")
    broken = _job(tmp_path / "broken")
    (broken / "incsnap" / NAME).write_text("{")

    answer = CliRunner().invoke(commands, ["status", str(tmp_path), "--json"])
    first, second = (json.loads(line) for line in answer.stdout.splitlines())

    assert (first["checkpoint"], first["alive"], "is damaged" in first["problem"]) == (str(broken), None, True)
    assert (second["topic_prefix"], answer.exit_code) == ("shop", 1)


def test_jobs_that_seem_dead_are_looked_at_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    all_look = threading.Barrier(3)

    def pause(seconds: float) -> None:
        all_look.wait(5.0)
        looks.append(seconds)

    for name in ("a", "b", "c"):
        _job(tmp_path / name, written_ms=1)
    monkeypatch.setattr("incsnap.cli.status.time", SimpleNamespace(sleep=pause))
    assert CliRunner().invoke(commands, ["status", str(tmp_path)]).exit_code == 1

    assert looks == [2.0, 2.0, 2.0]


_NOW_MS = now_ms()
_STREAM = StreamStatus(7, "binlog.000002", 1234, "", needs_file="binlog.000002", purge_not_before_ms=0)
_PURGED_SOON = replace(_STREAM, purge_not_before_ms=_NOW_MS + 60_000)
_LOST = SnapshotStatus(tables=(TableStatus(1, "shop.orders", "s", quarantined=(KeyRange("26", "27"),)),))
_GAP = GapStatus("", 1, compared=9, ended_ms=2)


@pytest.mark.parametrize(
    ("changed", "is_well", "text"),
    [
        ({}, True, ""),
        ({"stream": _PURGED_SOON}, False, "MySQL may purge binlog.000002 from"),
        ({"snapshot": _LOST}, False, "keys of shop.orders were given up"),
        ({"verification": VerificationStatus(rounds=1)}, True, ""),
        ({"verification": VerificationStatus(rounds=1, failure="no answer")}, False, "comparison failed: no answer"),
        (
            {"verification": VerificationStatus(rounds=1, tables=(TableVerification("shop.orders", 9, 7),))},
            False,
            "shop.orders differs in 7 keys",
        ),
        ({"gap": _GAP}, True, ""),
        ({"gap": replace(_GAP, ended_ms=0, left=3)}, False, "9 done, 3 left"),
    ],
)
def test_a_job_that_somebody_must_look_at_is_not_called_well(
    changed: dict[str, object], *, is_well: bool, text: str
) -> None:
    well = {"stream": _STREAM, "snapshot": SnapshotStatus(), "verification": None, "gap": None}
    status = running(**{**well, **changed})
    job = ListedJob("/state/shop", "shop", status, Liveness(alive=True, since_ms=1))
    console = Console(file=io.StringIO(), width=500)
    console.print(listed([job], _NOW_MS))

    assert rank(job, _NOW_MS) == (WELL if is_well else SUSPICIOUS)
    assert text in console.file.getvalue()  # type: ignore[attr-defined]
