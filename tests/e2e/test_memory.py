"""Values of 16 MB and a transaction of many batches, with a memory limit for each Python process.

The limit is for a process's own pages (RLIMIT_DATA), which any user may set: an allocation beyond it fails. The program
`benchmarks.memory` limits all processes together, by a control group, and has larger loads.
"""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.running_job import RunningJob

pytestmark = [
    pytest.mark.servers,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA of another process can be set on Linux only"),
]

_MB = 1 << 20
#: Limit of each process while texts of 16 MB pass. A worker that escaped a whole text at once would take 1,700 MB.
_LIMIT = 1_000 * _MB
#: Limit of each process while the transaction passes. A process that held the transaction twice would fail.
_TRANSACTION_LIMIT = 600 * _MB
#: Rows of 102,400 bytes: a transaction of 307 MB, and a queue of 8 MB.
_ROWS = 3_000
_SETTINGS = {
    "max.queue.size.in.bytes": str(8 * _MB),
    "topic.creation.default.max.message.bytes": str(90 * _MB),
    "producer.max.request.size": str(90 * _MB),
}


def limit(pids: Iterable[int], most: int) -> set[int]:
    """Set the limit of the processes, which processes that they fork later inherit. Return their former limits."""
    had = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            before, highest = resource.prlimit(pid, resource.RLIMIT_DATA)
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, highest))
            had.add(before)
    return had


def jvm(job: RunningJob) -> set[int]:
    """Return the ids of the JVM and of its launchers, which become shells."""
    return {pid for pid in job.remains() if {b"java", b"launcher.py", b"sh"} & _names(pid)}


def _names(pid: int) -> set[bytes]:
    return {word.rpartition(b"/")[2] for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")}


def test_long_texts_and_a_large_transaction_go_through_in_bounded_memory(play: CapturedDatabase) -> None:
    texts, rows = TableId(play.database, "texts"), TableId(play.database, "rows")
    long = f"REPEAT('\\n', {16 * _MB - 100})"
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {texts.sql} (id INT PRIMARY KEY, v LONGTEXT)")
        cursor.execute(f"CREATE TABLE {rows.sql} (id INT PRIMARY KEY, v MEDIUMTEXT)")
        cursor.execute(f"INSERT INTO {texts.sql} VALUES (1, {long})")
        with play.job({**_SETTINGS, "table.include.list": f"{play.database}\\..*"}) as job, play.notices() as notices:
            # Set the limit early: at its first use Arrow's allocator reserves a gigabyte of addresses, or less under a
            # limit.
            limit(job.remains(), _LIMIT)
            job.wait_until_streaming()
            # The JVM has its own limits. Its stacks of a hundred threads would count here although they are mostly
            # unused.
            limit(jvm(job), resource.RLIM_INFINITY)
            limit(set(job.remains()) - jvm(job), _TRANSACTION_LIMIT)
            cursor.execute(f"USE {play.database}")
            cursor.execute("SET SESSION cte_max_recursion_depth = 100000")
            cursor.execute(
                f"INSERT INTO {rows.sql} WITH RECURSIVE n (n) AS"
                f" (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {_ROWS})"
                " SELECT n, REPEAT(SHA2(n, 256), 1600) FROM n"
            )
            play.drain(job)
            assert limit(set(job.remains()) - jvm(job), _LIMIT) == {_TRANSACTION_LIMIT}
            cursor.execute(f"UPDATE {texts.sql} SET v = CONCAT('x', SUBSTR(v, 2))")
            play.execute_by_row("long", [texts])
            job.wait_until("the snapshot was complete", lambda: notices.completed("long"))
            play.drain(job)
            assert limit(set(job.remains()) - jvm(job), _LIMIT) == {_LIMIT}
            job.stop()
    assert "MemoryError" not in play.log.read_text(errors="replace")
    kinds: list[str] = []
    read_topics(play.kafka, [play.topic(texts)], lambda message: kinds.append(_op(message.value())))
    # The row's update may have overtaken it.
    assert kinds in (["u"], ["u", "r"], ["r", "u"])
    counted: list[int] = []
    read_topics(play.kafka, [play.topic(rows)], lambda message: counted.append(len(message.value() or b"")))
    assert len(counted) == _ROWS
    assert min(counted) > 100_000


def _op(value: bytes | None) -> str:
    assert value is not None
    return value[value.rindex(b'"op":"') + 6 :][:1].decode()
