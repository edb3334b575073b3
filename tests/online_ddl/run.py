"""One run of a tool for online schema changes beside a job, a snapshot and a writer, and what was left of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pymysql
from confluent_kafka.admin import AdminClient
from pymysql.cursors import SSCursor

from incsnap.checkpoint.status import newest_offset
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.fetched_lake import Lake
from lab.listening import Follower, Notices
from lab.progress import tell
from lab.running_job import RunningJob, end_of
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.online_ddl.lake import LAST, KeptLake, kept_lake
from tests.online_ddl.result import KILLED, REREAD, SNAPSHOT, WINDOW, Result
from tests.online_ddl.tools import Tool
from tests.support.mysql_versions import end_of_binlog

#: Moments at which the job is killed.
KILLS = {
    "between": "between the copy's ALTER and the swap",
    "halves": "between the two renames of the cut-over",
    "behind": "behind the swap",
}
_SNAPSHOT = "before-the-swap"
_PATIENCE_SECONDS = 3_600.0
#: Seconds between two looks at the table's columns, which the swap changes.
_LOOK_SECONDS = 0.05
#: How long the job may take for the batch of the first rename, while a real tool waits for the second one.
_HALF_SECONDS = 10.0
_LOG = "tool.log"


class _Run:
    """The run of a tool, and the job beside the tool."""

    def __init__(
        self, captured: CapturedDatabase, table: TableId, tool: Tool, result: Result, settings: dict[str, str]
    ) -> None:
        self._captured, self._table, self._tool, self._result = captured, table, tool, result
        self._settings = settings
        self._running = ExitStack()
        self._before: Sequence[Any] = ()
        self._begin = ("", 0)
        self._process: Any = None
        self.job = self._running.enter_context(captured.job(settings))

    def close(self) -> None:
        """End the job."""
        self._running.close()

    def start(self, alter: str) -> None:
        """Start the tool."""
        self._before = _columns(self._captured, self._table)
        self._begin = _end_of_binlog(self._captured)
        self._process = self._tool.started(self._captured.mysql, self._table, alter, self._captured.folder / _LOG)

    def wait_until_swapped(self) -> None:
        """Wait until the tool has swapped the tables, or has ended."""
        self._wait(lambda: not self._is_old() and not self._is_away())

    def wait_until_ended(self) -> None:
        """Wait until the tool has ended, and note its error."""
        self._process.wait(_PATIENCE_SECONDS)
        if self._process.returncode:
            log = end_of(self._captured.folder / _LOG)
            self._result.wrong.append(f"the tool ended with code {self._process.returncode}: {log}")

    def kill_between(self) -> None:
        """Kill the job behind the batch of the copy's ALTER. The kill is a hit if the tool has not swapped by then."""
        copies = _copies(self._table)
        self._wait(lambda: any(_columns(self._captured, copy) not in (self._before, ()) for copy in copies))
        end = _end_of_binlog(self._captured)
        self._wait(lambda: _is_done(self._captured, end) or not self._is_old())
        if self._goes_on() and self._is_old():
            self._kill("between", is_hit=self._is_old)
            self._start_again("behind the end of the ALTER's batch")

    def kill_between_halves(self) -> None:
        """Kill the job while the table is away. A real tool is held there until the job is dead."""
        with ExitStack() as held:
            if not self._tool.pauses:
                self._wait(lambda: _holds(self._captured, _copies(self._table), held))
            self._wait(lambda: self._is_away() or not self._is_old())
            if self._goes_on() and self._is_away():
                end, deadline = _end_of_binlog(self._captured), time.monotonic() + _HALF_SECONDS
                self._wait(lambda: _is_done(self._captured, end) or not self._is_away() or time.monotonic() > deadline)
                self._kill("halves", is_hit=self._is_away)
                side = "behind" if _is_done(self._captured, end) else "before"
                self._start_again(f"{side} the end of the first rename's batch")

    def kill_behind(self) -> None:
        """Kill the job behind the swap."""
        if not self._is_old() and not self._is_away():
            self._kill("behind", is_hit=lambda: True)
            side = "behind" if _has_done_swap(self._captured, self._table, self._begin) else "before"
            self._start_again(f"{side} the end of the swap's batch")

    def _wait(self, reached: Callable[[], bool]) -> None:
        while self._goes_on() and not reached():
            time.sleep(_LOOK_SECONDS)

    def _goes_on(self) -> bool:
        return self._process.poll() is None

    def _is_old(self) -> bool:
        return _columns(self._captured, self._table) == self._before

    def _is_away(self) -> bool:
        return _columns(self._captured, self._table) == ()

    def _kill(self, moment: str, *, is_hit: Callable[[], bool]) -> None:
        self.job.kill(workers_too=True)
        self._result.cases[killed(moment)] = is_hit()

    def _start_again(self, side: str) -> None:
        self._result.side = side
        self._running.close()
        self.job = self._running.enter_context(self._captured.job(self._settings))


def killed(moment: str) -> str:
    """Return the case of a job that was killed at that moment, a key of `KILLS`."""
    return f"{KILLED} {KILLS[moment]}"


def play(
    captured: CapturedDatabase,
    table: TableId,
    tool: Tool,
    alter: str,
    rate: float,
    *,
    kills: str,
    lake: Lake | None = None,
    snapshot_rate: int = 0,
) -> Result:
    """Alter `table` by `tool` beside a job, a snapshot of the table and `rate` changed rows a second.

    `kills`: when the job is killed with all its processes and started again, a key of `KILLS`; "" for never.
    `lake`: the format of a lake's table that is kept beside the job. `snapshot_rate`: most rows that the snapshot may
    read a second until the swap; 0 for no limit.
    """
    result = Result(f"{tool.name}, {alter}")
    result.cases = dict.fromkeys([SNAPSHOT, WINDOW, REREAD, *([killed(kills)] if kills else [])], False)
    own = {
        "table.include.list": f"{captured.database}\\..*",
        "include.schema.changes": "true",
        "incsnap.online.ddl.reread": "all",
        "signal.enabled.channels": "source",
    }
    with ExitStack() as stack, captured.notices() as notices:
        run = _Run(captured, table, tool, result, own)
        stack.callback(run.close)
        kept = None if lake is None else stack.enter_context(kept_lake(captured, table, lake))
        run.job.wait_until_streaming(_PATIENCE_SECONDS)
        if kept is not None:
            kept.wait_until_streaming()
        with Writer(captured.connect, [(ORDERS, table)], seed=7, rate=rate) as writer:
            if snapshot_rate:
                captured.signal_by_row("slow", "incsnap-throttle", {"rows-per-second": snapshot_rate})
            captured.execute_by_row(_SNAPSHOT, [table])
            run.job.wait_until("the snapshot had begun", captured.has_windows_in_flight, _PATIENCE_SECONDS)
            began, before = time.monotonic(), writer.written.changes
            run.start(alter)
            if kills == "between":
                run.kill_between()
            if kills == "halves":
                run.kill_between_halves()
            run.wait_until_swapped()
            result.seconds = time.monotonic() - began
            result.cases[WINDOW] = captured.has_windows_in_flight()
            result.cases[SNAPSHOT] = not notices.completed(_SNAPSHOT)
            if kills == "behind":
                run.kill_behind()
            if snapshot_rate:
                captured.signal_by_row("fast", "incsnap-throttle", {"rows-per-second": 0})
            run.wait_until_ended()
            result.written = writer.written.changes
            result.rate = (result.written - before) / (time.monotonic() - began)
        _judge(captured, table, run.job, notices, result, kept)
    return result


def _end_of_binlog(captured: CapturedDatabase) -> tuple[str, int]:
    with captured.connect() as connection:
        return end_of_binlog(connection)


def _is_done(captured: CapturedDatabase, place: tuple[str, int]) -> bool:
    """Return True if all of the binlog up to `place` lies in batches that are done."""
    offset = newest_offset(str(captured.checkpoint), "commits")
    return offset is not None and offset.stream.reached(*place)


def _has_done_swap(captured: CapturedDatabase, table: TableId, begin: tuple[str, int]) -> bool:
    """Return True if a batch with the table's swap is done. The swap is the last RENAME of the table behind `begin`.

    The job must stand still.
    """
    file, pos = begin
    places: list[tuple[str, int]] = []
    with captured.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        names = sorted(str(row[0]) for row in cursor.fetchall() if str(row[0]) >= file)
    # Millions of events: they are not read at once.
    with captured.connect() as connection, connection.cursor(SSCursor) as cursor:
        for name in names:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{name}' FROM {pos if name == file else 4}")
            places += [
                (name, int(end))
                for _, _, kind, _, end, info in cursor
                if kind == "Query" and " rename" in f" {info.lower()}" and f"`{table.table}`" in info
            ]
    return _is_done(captured, places[-1])


def _holds(captured: CapturedDatabase, copies: Sequence[TableId], held: ExitStack) -> bool:
    """Read a row of a copy in a transaction, so that the copy keeps its name while `held` is open.

    Return False if no copy has a row yet. The tool alters its copy while the copy is empty.
    """
    connection = captured.connect()
    for copy in copies:
        with suppress(pymysql.MySQLError), connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.begin()
            cursor.execute(f"SELECT 1 FROM {copy.sql} LIMIT 1")
            if cursor.fetchall():
                held.callback(connection.close)
                return True
    connection.close()
    return False


def _copies(table: TableId) -> list[TableId]:
    """Return the names that tools give to a copy of the table."""
    return [TableId(table.database, f"_{table.table}_{ending}") for ending in ("gho", "new")]


def _judge(
    captured: CapturedDatabase,
    table: TableId,
    job: RunningJob,
    notices: Notices,
    result: Result,
    kept: KeptLake | None = None,
) -> None:
    """Wait until all snapshots have ended, and note what is wrong with the topics and with the lake's table."""
    tell(f"{result.name}: the tool has ended")
    job.wait_until("the snapshot ended", lambda: notices.completed(_SNAPSHOT), _PATIENCE_SECONDS)
    captured.drain(job, _PATIENCE_SECONDS)
    notices.poll(2.0)
    for id_ in {str(note["id"]) for note in notices.all if str(note["id"]).startswith("reread-")}:
        job.wait_until("the re-read ended", partial(notices.completed, id_), _PATIENCE_SECONDS)
        result.cases[REREAD] = True
    if kept is not None:
        kept.wait_until_read({_SNAPSHOT, *(["reread-"] if result.cases[REREAD] else [])})
        with captured.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table.sql} SET version = {LAST} ORDER BY id LIMIT 1")
    captured.drain(job, _PATIENCE_SECONDS)
    recognised = {note["additional_data"]["data_collections"] for note in notices.of("ONLINE_DDL_TABLE")}
    tell(f"{result.name}: recognised {', '.join(sorted(recognised))}")
    result.wrong += _faults(captured, table)
    result.wrong += _differences(captured, table)
    if kept is not None:
        result.wrong += kept.faults()


def _faults(captured: CapturedDatabase, table: TableId) -> list[str]:
    """Return what is wrong: topics of a tool's tables, and other schema changes than one ALTER of the table."""
    admin = AdminClient({"bootstrap.servers": captured.kafka})
    prefix = f"{captured.prefix}.{captured.database}."
    tables = {name.removeprefix(prefix) for name in admin.list_topics(timeout=10).topics if name.startswith(prefix)}
    wrong = [f"a topic of {name}" for name in sorted(tables - {table.table, "signals", "marks"})]
    changes: list[Any] = []
    with Follower(captured.kafka, captured.prefix) as follower:
        while messages := follower.poll(3.0):
            changes += [json.loads(message.value() or b"{}") for message in messages]
    alters = Counter(
        (change["type"], change["id"].rpartition(".")[2].strip('"'))
        for value in changes
        for change in value["tableChanges"]
        if value["source"]["snapshot"] == "false"
    )
    if alters != {("ALTER", table.table): 1}:
        wrong.append(f"schema changes: {dict(alters)}")
    return wrong


def _differences(captured: CapturedDatabase, table: TableId) -> list[str]:
    """Return what `incsnap verify` says if it finds a difference."""
    command = [sys.executable, "-m", "incsnap", "verify", str(captured.folder / "incsnap.properties")]
    command += ["--table", str(table)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False)
    tell(done.stdout.strip())
    return [] if done.returncode == 0 else [f"verify: code {done.returncode}: {done.stdout}{done.stderr[-2_000:]}"]


def _columns(captured: CapturedDatabase, table: TableId) -> Sequence[Any]:
    """Return the table's columns; () if the table is away for a moment."""
    with suppress(Exception), captured.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, column_type, collation_name FROM information_schema.columns"
            " WHERE (table_schema, table_name) = (%s, %s) ORDER BY ordinal_position",
            (table.database, table.table),
        )
        return cursor.fetchall()
    return ()
