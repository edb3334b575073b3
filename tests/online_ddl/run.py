"""One run of a tool for online schema changes beside a job, a snapshot and a writer, and what was left of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka.admin import AdminClient

from incsnap.checkpoint.status import newest_offset
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.listening import Follower, Notices
from lab.progress import tell
from lab.running_job import RunningJob, end_of
from lab.table_designs import ORDERS
from lab.workload import Writer
from tests.online_ddl.tools import Tool
from tests.support.mysql_versions import end_of_binlog

#: Moments at which the job is killed.
KILLS = {"between": "between the copy's ALTER and the swap", "behind": "behind the swap"}
_SNAPSHOT = "before-the-swap"
_PATIENCE_SECONDS = 1_800.0
#: Seconds between two looks at the table's columns, which the swap changes.
_LOOK_SECONDS = 0.05
_LOG = "tool.log"


@dataclass(slots=True)
class Result:
    """The result of one run."""

    name: str  #: tool and alteration
    seconds: float = 0.0  #: of the tool
    written: int = 0  #: changed rows while the tool ran
    hit: list[str] = field(default_factory=list)  #: cases that the run truly hit
    wrong: list[str] = field(default_factory=list)  #: what is not as it should be


def play(captured: CapturedDatabase, table: TableId, tool: Tool, alter: str, rate: float, *, kills: str) -> Result:
    """Alter `table` by `tool` beside a job, a snapshot of the table and `rate` changed rows a second.

    `kills`: when the job is killed with all its processes and started again, a key of `KILLS`; "" for never. The run is
    wrong if it misses this moment.
    """
    result = Result(f"{tool.name}, {alter}")
    own = {
        "table.include.list": f"{captured.database}\\..*",
        "include.schema.changes": "true",
        "incsnap.online.ddl.reread": "all",
        "signal.enabled.channels": "source",
    }
    with ExitStack() as running, captured.notices() as notices:
        job = running.enter_context(captured.job(own))
        job.wait_until_streaming()

        def start_again() -> RunningJob:
            running.close()
            return running.enter_context(captured.job(own))

        with Writer(captured.connect, [(ORDERS, table)], seed=7, rate=rate) as writer:
            captured.execute_by_row(_SNAPSHOT, [table])
            job.wait_until("the snapshot had begun", captured.has_windows_in_flight, _PATIENCE_SECONDS)
            began, before, begin = time.monotonic(), _columns(captured, table), _end_of_binlog(captured)
            process = tool.started(captured.mysql, table, alter, captured.folder / _LOG)
            if kills == "between":
                while process.poll() is None and not any(
                    _columns(captured, copy) not in (before, ()) for copy in _copies(table)
                ):
                    time.sleep(_LOOK_SECONDS)
                if process.poll() is None:
                    job.kill(workers_too=True)
                    if _columns(captured, table) == before:
                        result.hit.append(f"the job killed {KILLS[kills]}")
                    job = start_again()
            while process.poll() is None and _columns(captured, table) in (before, ()):
                time.sleep(_LOOK_SECONDS)
            if captured.has_windows_in_flight():
                result.hit.append("a window in flight at the swap")
            if not notices.completed(_SNAPSHOT):
                result.hit.append("a snapshot under way at the swap")
            if kills == "behind" and _columns(captured, table) not in (before, ()):
                job.kill(workers_too=True)
                side = "behind" if _has_done_swap(captured, table, begin) else "before"
                result.hit.append(f"the job killed {KILLS[kills]}, {side} the end of the swap's batch")
                job = start_again()
            process.wait(_PATIENCE_SECONDS)
            result.seconds, result.written = time.monotonic() - began, writer.written.changes
        if kills and not any(KILLS[kills] in case for case in result.hit):
            result.wrong.append(f"the job was not killed {KILLS[kills]}: the tool was too fast, or has not swapped")
        if process.returncode:
            result.wrong.append(f"the tool ended with code {process.returncode}: {end_of(captured.folder / _LOG)}")
        _judge(captured, table, job, notices, result)
    return result


def _end_of_binlog(captured: CapturedDatabase) -> tuple[str, int]:
    with captured.connect() as connection:
        return end_of_binlog(connection)


def _has_done_swap(captured: CapturedDatabase, table: TableId, begin: tuple[str, int]) -> bool:
    """Return True if a batch with the table's swap is done. The swap is the last RENAME of the table behind `begin`.

    The job must stand still.
    """
    file, pos = begin
    places: list[tuple[str, int]] = []
    with captured.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        for name in sorted(str(row[0]) for row in cursor.fetchall() if str(row[0]) >= file):
            cursor.execute(f"SHOW BINLOG EVENTS IN '{name}' FROM {pos if name == file else 4}")
            places += [
                (name, int(end))
                for _, _, kind, _, end, info in cursor.fetchall()
                if kind == "Query" and " rename" in f" {info.lower()}" and f"`{table.table}`" in info
            ]
    offset = newest_offset(str(captured.checkpoint), "commits")
    return offset is not None and offset.stream.reached(*places[-1])


def _copies(table: TableId) -> list[TableId]:
    """Return the names that tools give to a copy of the table."""
    return [TableId(table.database, f"_{table.table}_{ending}") for ending in ("gho", "new")]


def _judge(captured: CapturedDatabase, table: TableId, job: RunningJob, notices: Notices, result: Result) -> None:
    """Wait until all snapshots have ended, and note what is wrong with the topics."""
    tell(f"{result.name}: the tool has ended")
    job.wait_until("the snapshot ended", lambda: notices.completed(_SNAPSHOT), _PATIENCE_SECONDS)
    captured.drain(job, _PATIENCE_SECONDS)
    notices.poll(2.0)
    for id_ in {str(note["id"]) for note in notices.all if str(note["id"]).startswith("reread-")}:
        job.wait_until("the re-read ended", partial(notices.completed, id_), _PATIENCE_SECONDS)
        result.hit.append("old rows read again")
    captured.drain(job, _PATIENCE_SECONDS)
    recognised = {note["additional_data"]["data_collections"] for note in notices.of("ONLINE_DDL_TABLE")}
    tell(f"{result.name}: recognised {', '.join(sorted(recognised))}")
    result.wrong += _faults(captured, table)
    result.wrong += _differences(captured, table)


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
