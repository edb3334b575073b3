"""Tests of the ledger of online schema changes, with a job that is to be killed at a moment of the tool's run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from tests.online_ddl import __main__ as program
from tests.online_ddl import run
from tests.online_ddl.run import Result, play

ORDERS = TableId("shop", "orders")
COPY = TableId("shop", "_orders_gho")


class Play:
    """A captured database, its job and a tool that goes one step further with each look at the columns of a table.

    `steps`: columns of the table and of its copy, and the tool's exit code. The last step stays. `swaps_at_kill`:
    whether the tool swaps the tables while the job is killed.
    """

    def __init__(self, *steps: tuple[str, str, int | None], swaps_at_kill: bool = False) -> None:
        self.database, self.folder, self.mysql = "shop", Path("nowhere"), None
        self.returncode: int | None = None
        self.kills = 0
        self._steps, self._swaps_at_kill = list(steps), swaps_at_kill

    # -- the captured database

    @contextmanager
    def job(self, _: object) -> Iterator[Any]:
        yield self

    @contextmanager
    def notices(self) -> Iterator[Any]:
        yield SimpleNamespace(completed=lambda _: True)

    def connect(self) -> None:
        raise AssertionError("the test has no server")

    def execute_by_row(self, *_: object) -> None:
        pass

    def has_windows_in_flight(self) -> bool:
        return False

    def columns(self, _: object, table: TableId) -> str:
        of, copy, _code = self._steps[0]
        return {ORDERS: of, COPY: copy}.get(table, "")

    # -- the job

    def wait_until_streaming(self) -> None:
        pass

    def wait_until(self, *_: object) -> None:
        pass

    def kill(self, *, workers_too: bool) -> None:
        assert workers_too
        self.kills += 1
        if self._swaps_at_kill:
            self._steps = [("new", "", 0)]

    # -- the tool

    name = "tool"

    def started(self, *_: object) -> Play:
        return self

    def poll(self) -> int | None:
        if len(self._steps) > 1:
            del self._steps[0]
        self.returncode = self._steps[0][2]
        return self.returncode

    def wait(self, _: float) -> None:
        self.returncode = 0


@contextmanager
def _writer(*_: object, **__: object) -> Iterator[Any]:
    yield SimpleNamespace(written=SimpleNamespace(changes=7))


def _played(monkeypatch: pytest.MonkeyPatch, kills: str, tool: Play, *, is_done: bool = False) -> Result:
    monkeypatch.setattr(run, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(run, "Writer", _writer)
    monkeypatch.setattr(run, "_columns", lambda captured, table: captured.columns(captured, table) or ())
    monkeypatch.setattr(run, "_end_of_binlog", lambda _: ("binlog.000001", 4))
    monkeypatch.setattr(run, "_has_done_swap", lambda *_: is_done)
    monkeypatch.setattr(run, "_judge", lambda *_: None)
    given: Any = tool
    return play(given, ORDERS, given, "ADD n INT", 1.0, kills=kills)


BEGUN = (("old", "", None), ("old", "old", None), ("old", "new", None))
SWAPPED = ("new", "", None)


def test_a_job_that_is_killed_between_the_alter_and_the_swap_is_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _played(monkeypatch, "between", Play(*BEGUN, ("old", "new", None), SWAPPED))
    assert result.hit == ["the job killed between the copy's ALTER and the swap"]
    assert not result.wrong


@pytest.mark.parametrize(
    "tool",
    [Play(*BEGUN[:2], ("new", "", 0)), Play(*BEGUN[:2], ("old", "", 0)), Play(*BEGUN, swaps_at_kill=True)],
    ids=["too fast", "given up", "swapped meanwhile"],
)
def test_a_run_that_is_not_killed_between_the_alter_and_the_swap_is_wrong(
    tool: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _played(monkeypatch, "between", tool)
    assert not result.hit
    assert len(result.wrong) == 1
    assert result.wrong[0].startswith("the job was not killed between the copy's ALTER and the swap")


@pytest.mark.parametrize(("is_done", "side"), [(True, "behind"), (False, "before")])
def test_a_job_that_is_killed_behind_the_swap_says_whether_the_swaps_batch_was_done(
    is_done: bool, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _played(monkeypatch, "behind", Play(*BEGUN, SWAPPED), is_done=is_done)
    assert result.hit == [f"the job killed behind the swap, {side} the end of the swap's batch"]
    assert not result.wrong


def test_a_run_without_a_swap_is_not_killed_behind_it_and_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Play(*BEGUN, ("old", "new", 0))
    result = _played(monkeypatch, "behind", tool)
    assert (tool.kills, result.hit, len(result.wrong)) == (0, [], 1)
    assert result.wrong[0].startswith("the job was not killed behind the swap")


def test_a_run_that_kills_nothing_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _played(monkeypatch, "", Play(*BEGUN, SWAPPED))
    assert (result.hit, result.wrong) == ([], [])


def test_a_wrong_run_ends_with_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    @contextmanager
    def nothing(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(mysql=None, kafka="", create=lambda *_: ORDERS, connect=_connection)

    @contextmanager
    def _connection() -> Iterator[Any]:
        yield SimpleNamespace(cursor=lambda: cursor)

    class _Cursor:
        def __enter__(self) -> _Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def execute(self, _: str) -> None:
            pass

    cursor = _Cursor()
    monkeypatch.setattr(program, "servers", nothing)
    monkeypatch.setattr(program, "captured_database", nothing)
    monkeypatch.setattr("sys.argv", ["online_ddl", "--kill", "behind", "--alter", "ADD n INT"])
    for result, code in ((Result("a run", wrong=["the job was not killed"]), 1), (Result("a run"), 0)):
        monkeypatch.setattr(program, "play", lambda *_, result=result, **__: result)
        assert program.main() == code
        assert ("WRONG: the job was not killed" in capsys.readouterr().out) is bool(code)


@pytest.mark.parametrize(("pos", "is_done"), [(500, False), (700, True), (900, True)])
def test_the_swaps_batch_is_done_if_the_committed_offset_lies_behind_the_swap(
    pos: int, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        ("binlog.000002", 4, "Format_desc", 1, 126, ""),
        ("binlog.000002", 126, "Query", 1, 300, "rename table `shop`.`other` to `shop`.`o`"),
        ("binlog.000002", 300, "Query", 1, 700, "use `shop`; RENAME TABLE `shop`.`orders` TO `shop`.`_orders_old`"),
        ("binlog.000002", 700, "Query", 1, 800, "ALTER TABLE `shop`.`child` ADD FOREIGN KEY (a) REFERENCES `orders`"),
    ]
    answers: dict[str, list[Any]] = {
        "SHOW BINARY LOGS": [("binlog.000001", 9), ("binlog.000002", 800)],
        "SHOW BINLOG EVENTS IN 'binlog.000002' FROM 4": events,
    }

    class _Connection:
        def __enter__(self) -> _Connection:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def cursor(self) -> _Connection:
            return self

        def execute(self, sql: str) -> None:
            self.rows = answers[sql]

        def fetchall(self) -> list[Any]:
            return self.rows

    stream = StreamPosition(GtidSet(), "binlog.000002", pos)
    monkeypatch.setattr(run, "newest_offset", lambda *_: SimpleNamespace(stream=stream))
    captured: Any = SimpleNamespace(connect=_Connection, checkpoint="nowhere")
    assert run._has_done_swap(captured, ORDERS, ("binlog.000002", 4)) is is_done
