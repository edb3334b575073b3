"""Values of 16 MB and a transaction of many batches, under a limit of the operating system for each process of the job.

It is that of a process's own pages (RLIMIT_DATA), which anybody may set: what would go beyond it fails. All
processes together, under a control group, and larger loads: ``python -m benchmarks.memory``.
"""

from __future__ import annotations

import resource
import sys

import pytest

from incsnap.sandbox.replay import read_topics
from incsnap.sandbox.running_job import RunningJob
from incsnap.sandbox.scene import Scene
from incsnap.tables import TableId

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA of another process can be set on Linux only"),
]

_MB = 1 << 20
#: Of each process. Before texts were escaped in stretches, one of 16 MB took a worker 1,700 MB.
_LIMIT = 1_000 * _MB
_SETTINGS = {
    "spark.driver.memory": "512m",
    "max.queue.size.in.bytes": str(8 * _MB),
    "topic.creation.default.max.message.bytes": str(90 * _MB),
    "producer.max.request.size": str(90 * _MB),
}


def limit(job: RunningJob) -> None:
    """At once: what the job starts is born with it."""
    for pid in job.remains():
        resource.prlimit(pid, resource.RLIMIT_DATA, (_LIMIT, _LIMIT))


def test_long_texts_and_a_large_transaction_go_through_in_bounded_memory(play: Scene) -> None:
    texts, rows = TableId(play.database, "texts"), TableId(play.database, "rows")
    long = f"REPEAT('\\n', {16 * _MB - 100})"
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {texts.sql} (id INT PRIMARY KEY, v LONGTEXT)")
        cursor.execute(f"CREATE TABLE {rows.sql} (id INT PRIMARY KEY, v MEDIUMTEXT)")
        cursor.execute(f"INSERT INTO {texts.sql} VALUES (1, {long})")
        with play.job({**_SETTINGS, "table.include.list": f"{play.database}\\..*"}) as job, play.notices() as notices:
            limit(job)
            job.wait_until_streaming()
            cursor.execute(f"USE {play.database}")
            cursor.execute("SET SESSION cte_max_recursion_depth = 100000")
            cursor.execute(
                f"INSERT INTO {rows.sql} WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 640)"
                " SELECT n, REPEAT(SHA2(n, 256), 1600) FROM n"
            )
            cursor.execute(f"UPDATE {texts.sql} SET v = CONCAT('x', SUBSTR(v, 2))")
            play.execute_by_row("long", [texts])
            job.wait_until("the snapshot was complete", lambda: notices.completed("long"), 120)
            play.drain(job)
            limits = {resource.prlimit(pid, resource.RLIMIT_DATA)[0] for pid in job.remains()}
            job.stop()
    assert limits == {_LIMIT}
    assert "MemoryError" not in play.log.read_text(errors="replace")
    kinds: list[str] = []
    read_topics(play.kafka, [play.topic(texts)], lambda message: kinds.append(_op(message.value())))
    # The row may have been overtaken by its update.
    assert kinds in (["u"], ["u", "r"], ["r", "u"])
    counted: list[int] = []
    read_topics(play.kafka, [play.topic(rows)], lambda message: counted.append(len(message.value() or b"")))
    assert len(counted) == 640
    assert min(counted) > 100_000


def _op(value: bytes | None) -> str:
    assert value is not None
    return value[value.rindex(b'"op":"') + 6 :][:1].decode()
