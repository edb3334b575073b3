"""Values of 16 MB and a transaction of many batches, with a limit of the operating system on each Python process.

It is that of a process's own pages (RLIMIT_DATA), which anybody may set: what would go beyond it fails. All
processes together, under a control group, and larger loads: ``python -m benchmarks.memory``.
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
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA of another process can be set on Linux only"),
]

_MB = 1 << 20
#: Of each process, while texts of 16 MB go through. Before texts were escaped in stretches, one took a worker 1,700 MB.
_LIMIT = 1_000 * _MB
#: Of each process, while the transaction goes through: a process that held the transaction twice would fail.
_TRANSACTION_LIMIT = 600 * _MB
#: Rows of 102,400 bytes: a transaction of 307 MB, and a queue of 8 MB.
_ROWS = 3_000
_SETTINGS = {
    "max.queue.size.in.bytes": str(8 * _MB),
    "topic.creation.default.max.message.bytes": str(90 * _MB),
    "producer.max.request.size": str(90 * _MB),
}


def limit(pids: Iterable[int], most: int) -> set[int]:
    """What is forked later is born with it. Returns what they had."""
    had = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            before, highest = resource.prlimit(pid, resource.RLIMIT_DATA)
            resource.prlimit(pid, resource.RLIMIT_DATA, (most, highest))
            had.add(before)
    return had


def jvm(job: RunningJob) -> set[int]:
    """And the launchers that it starts, which become shells."""
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
            # At birth: Arrow's allocator takes a gigabyte of addresses at its first use, or less where it cannot.
            limit(job.remains(), _LIMIT)
            job.wait_until_streaming()
            # It has bounds of its own, and the stacks of a hundred threads count here though nobody uses them.
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
    # The row may have been overtaken by its update.
    assert kinds in (["u"], ["u", "r"], ["r", "u"])
    counted: list[int] = []
    read_topics(play.kafka, [play.topic(rows)], lambda message: counted.append(len(message.value() or b"")))
    assert len(counted) == _ROWS
    assert min(counted) > 100_000


def _op(value: bytes | None) -> str:
    assert value is not None
    return value[value.rindex(b'"op":"') + 6 :][:1].decode()
