"""Tests of the ledger of online schema changes, with a job that is to be killed at a moment of the tool's run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.tables import TableId
from lab.running_job import JobFailed
from tests.online_ddl import __main__ as program
from tests.online_ddl import run
from tests.online_ddl.result import REREAD, SNAPSHOT, WINDOW, Result, json_line
from tests.online_ddl.run import killed, play

ORDERS = TableId("shop", "orders")
COPY = TableId("shop", "_orders_gho")


class Play:
    """A captured database, its job and a tool that goes one step further with each look at the columns of a table.

    `steps`: columns of the table and of its copy, and the tool's exit code. The last step stays. `swaps_at_kill`:
    whether the tool swaps the tables while the job is killed. `pauses`: as `Tool.pauses`.
    """

    def __init__(
        self,
        *steps: tuple[str, str, int | None],
        swaps_at_kill: bool = False,
        pauses: bool = True,
        under_way: bool = True,
    ) -> None:
        self.pauses, self.under_way = pauses, under_way
        self.database, self.folder, self.mysql = "shop", Path("nowhere"), None
        self.returncode: int | None = None
        self.kills = 0
        self.throttles: list[int] = []
        self.checkpoint = "nowhere"
        self._steps, self._swaps_at_kill = list(steps), swaps_at_kill

    # -- the captured database

    @contextmanager
    def job(self, _: object) -> Iterator[Any]:
        yield self

    @contextmanager
    def notices(self) -> Iterator[Any]:
        yield SimpleNamespace(completed=lambda _: not self.under_way)

    def connect(self) -> None:
        raise AssertionError("the test has no server")

    def execute_by_row(self, *_: object) -> None:
        pass

    def signal_by_row(self, name: str, kind: str, data: dict[str, int]) -> None:
        self.throttles.append(data["rows-per-second"])

    def has_windows_in_flight(self) -> bool:
        return self.under_way

    def columns(self, _: object, table: TableId) -> str:
        of, copy, _code = self._steps[0]
        return {ORDERS: of, COPY: copy}.get(table, "")

    # -- the job

    def wait_until_streaming(self, _: float) -> None:
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


def _played(
    monkeypatch: pytest.MonkeyPatch, kills: str, tool: Play, *, is_done: bool = False, snapshot_rate: int = 0
) -> Result:
    def judge(*given: Any) -> None:
        given[4].cases[REREAD] = True

    monkeypatch.setattr(run, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(run, "_HALF_SECONDS", 0.0)
    monkeypatch.setattr(run, "Writer", _writer)
    monkeypatch.setattr(run, "_columns", lambda captured, table: captured.columns(captured, table) or ())
    monkeypatch.setattr(run, "_end_of_binlog", lambda _: ("binlog.000001", 4))
    monkeypatch.setattr(run, "_is_done", lambda *_: is_done)
    monkeypatch.setattr(run, "_has_done_swap", lambda *_: is_done)
    monkeypatch.setattr(run, "_judge", judge)
    given: Any = tool
    return play(given, ORDERS, given, "ADD n INT", 1.0, kills=kills, snapshot_rate=snapshot_rate)


BEGUN = (("old", "", None), ("old", "old", None), ("old", "new", None))
SWAPPED = ("new", "", None)
AWAY = ("", "new", None)
ALL = {SNAPSHOT: True, WINDOW: True, REREAD: True}


def test_a_job_that_is_killed_between_the_alter_and_the_swap_is_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Play(*BEGUN, *[("old", "new", None)] * 3, SWAPPED)
    result = _played(monkeypatch, "between", tool, is_done=True)
    assert result.cases == {**ALL, "the job killed between the copy's ALTER and the swap": True}
    assert result.side == "behind the end of the ALTER's batch"
    assert (tool.kills, result.wrong) == (1, [])


def test_a_job_that_has_not_done_the_alters_batch_by_the_swap_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Play(*BEGUN, *[("old", "new", None)] * 3, SWAPPED)
    result = _played(monkeypatch, "between", tool, is_done=False)
    assert (tool.kills, result.cases[killed("between")], result.side) == (0, False, "")


@pytest.mark.parametrize(
    "tool",
    [Play(*BEGUN[:2], ("new", "", 0)), Play(*BEGUN[:2], ("old", "", 0)), Play(*BEGUN, swaps_at_kill=True)],
    ids=["too fast", "given up", "swapped meanwhile"],
)
def test_a_run_that_is_not_killed_between_the_alter_and_the_swap_is_a_miss(
    tool: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _played(monkeypatch, "between", tool, is_done=True)
    assert result.cases[killed("between")] is False
    assert (result.verdict, result.wrong) == ("not hit", [])


@pytest.mark.parametrize(("is_done", "side"), [(True, "behind"), (False, "before")])
@pytest.mark.parametrize("pauses", [True, False])
def test_a_job_that_is_killed_between_two_renames_is_a_hit_while_the_table_is_away(
    is_done: bool, side: str, pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[int] = []

    def holds(_: object, copies: list[TableId], held: ExitStack) -> bool:
        assert COPY in copies
        held.callback(lambda: released.append(tool.kills))
        return True

    monkeypatch.setattr(run, "_holds", holds)
    tool = Play(*BEGUN, *[AWAY] * 9, SWAPPED, pauses=pauses)
    result = _played(monkeypatch, "halves", tool, is_done=is_done)
    assert result.cases == {**ALL, "the job killed between the two renames of the cut-over": True}
    assert result.side == f"{side} the end of the first rename's batch"
    # A real tool is let go only behind the kill.
    assert released == ([] if pauses else [1])


@pytest.mark.parametrize("tool", [Play(*BEGUN, SWAPPED), Play(*BEGUN, AWAY, AWAY, swaps_at_kill=True)])
def test_a_job_that_is_not_killed_between_two_renames_is_a_miss(tool: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _played(monkeypatch, "halves", tool)
    assert result.cases == {**ALL, killed("halves"): False}


@pytest.mark.parametrize(("is_done", "side"), [(True, "behind"), (False, "before")])
def test_a_job_that_is_killed_behind_the_swap_says_whether_the_swaps_batch_was_done(
    is_done: bool, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _played(monkeypatch, "behind", Play(*BEGUN, SWAPPED), is_done=is_done)
    assert result.cases == {**ALL, "the job killed behind the swap": True}
    assert result.side == f"{side} the end of the swap's batch"
    assert f"  hit: the job killed behind the swap ({side} the end of the swap's batch)" in result.lines()
    assert not result.wrong


def test_a_run_without_a_swap_is_not_killed_behind_it_and_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Play(*BEGUN, ("old", "new", 0))
    result = _played(monkeypatch, "behind", tool)
    assert (tool.kills, result.cases[killed("behind")], result.side) == (0, False, "")
    assert "  not hit: the job killed behind the swap" in result.lines()


def test_a_run_that_kills_nothing_asks_for_no_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _played(monkeypatch, "", Play(*BEGUN, SWAPPED))
    assert (result.cases, result.wrong, result.verdict) == (ALL, [], "right")


def test_a_snapshot_that_ends_before_the_swap_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    result = _played(monkeypatch, "", Play(*BEGUN, SWAPPED, under_way=False))
    assert result.cases == {SNAPSHOT: False, WINDOW: False, REREAD: True}
    assert (result.verdict, result.wrong) == ("not hit", [])


def test_the_snapshot_is_slow_up_to_the_swap_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Play(*BEGUN, SWAPPED)
    _played(monkeypatch, "", tool, snapshot_rate=500)
    assert tool.throttles == [500, 0]


def test_runs_are_summed_in_a_line_of_json() -> None:
    results = [
        Result("a", 2.04, rate=99.6, cases={"x": True, "y": False}, side="behind"),
        Result("b", 3.0, rate=80.0, cases={"x": True, "y": True}),
        Result("c", wrong=["a topic"]),
    ]
    assert json.loads(json_line(results[:2], tool="played", rows=7)) == {
        "tool": "played",
        "rows": 7,
        "runs": 2,
        "hits": {"x": [2, 2], "y": [1, 2]},
        "sides": ["behind"],
        "seconds": [2.0, 3.0],
        "written_per_second": [100, 80],
        "wrong": 0,
        "verdict": "not hit",
    }
    assert json.loads(json_line(results))["verdict"] == "wrong"
    assert json.loads(json_line(results[1:2]))["verdict"] == "right"
    assert json.loads(json_line([]))["verdict"] == "wrong"


def test_the_exit_code_says_whether_a_run_was_wrong_or_missed_a_case(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
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
    monkeypatch.setattr(program, "mkdtemp", lambda prefix: mkdtemp(prefix=prefix, dir=tmp_path))
    monkeypatch.setattr(program, "servers", nothing)
    monkeypatch.setattr(program, "captured_database", nothing)
    monkeypatch.setattr("sys.argv", ["online_ddl", "--alter", "ADD n INT", "--runs", "2"])
    for result, code in (
        (Result("a run", cases={"a case": False}, wrong=["a topic"]), 1),
        (Result("a run", cases={"a case": False}), 3),
        (Result("a run", cases={"a case": True}), 0),
    ):
        monkeypatch.setattr(program, "play", lambda *_, result=result, **__: result)
        assert program.main() == code
        lines = capsys.readouterr().out.splitlines()
        assert ("  WRONG: a topic" in lines) is (code == 1)
        assert ("  not hit: a case" in lines) is (code != 0)
        assert f"hit {2 * (code == 0)} of 2: a case" in lines
        assert json.loads(lines[-1])["hits"] == {"a case": [2 * (code == 0), 2]}


def test_an_error_of_a_run_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> NoReturn:
        raise JobFailed("the job ended with code 1")

    monkeypatch.setattr(program, "captured_database", fails)
    given: Any = SimpleNamespace(mysql=None, kafka="", tool="played")
    result = program._run(given, given, "ADD n INT", None, Path("nowhere"), "online0")
    assert (result.wrong, result.verdict) == (["the job ended with code 1"], "wrong")


def test_only_a_cut_over_in_two_renames_has_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["online_ddl", "--kill", "halves", "--tool", "played-spirit"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 2


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

        def cursor(self, *_: object) -> _Connection:
            return self

        def __iter__(self) -> Iterator[Any]:
            return iter(self.rows)

        def execute(self, sql: str) -> None:
            self.rows = answers[sql]

        def fetchall(self) -> list[Any]:
            return self.rows

    stream = StreamPosition(GtidSet(), "binlog.000002", pos)
    monkeypatch.setattr(run, "newest_offset", lambda *_: SimpleNamespace(stream=stream))
    captured: Any = SimpleNamespace(connect=_Connection, checkpoint="nowhere")
    assert run._has_done_swap(captured, ORDERS, ("binlog.000002", 4)) is is_done
