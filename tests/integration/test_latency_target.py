"""A test of `incsnap.latency.target.ms`: how many bytes of a snapshot a batch sends."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from incsnap.snapshot.pacing import LEAST_BYTES
from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers
_ROWS, _ROW_BYTES = 120, 200_000


@pytest.mark.parametrize(("target_ms", "grows"), [("1", False), ("60000", True)])
def test_a_batch_sends_more_of_a_snapshot_if_the_target_allows_it(
    cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path,
    target_ms: str, grows: bool,
) -> None:  # fmt: skip
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
    cursor.executemany(f"INSERT INTO t VALUES (%s, REPEAT('x', {_ROW_BYTES}))", [(row,) for row in range(_ROWS)])
    signals = tmp_path / "signals"
    signals.touch()
    more = {
        "signal.enabled.channels": "file",
        "signal.file": str(signals),
        "incremental.snapshot.chunk.size": "5",
        "incsnap.latency.target.ms": target_ms,
    }
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, **more)
    with closing(PlannedJob(settings, str(tmp_path / "checkpoint"))) as job:
        job.batch()
        data = {"type": "incremental", "data-collections": [f"{database}.t"]}
        signals.write_text(json.dumps({"id": "s", "type": "execute-snapshot", "data": data}) + "\n")
        job.batches_until(lambda: bool(job.offset.snapshot.notifications) and not job.offset.snapshot.active, "the end")
        rows = [each for each in job.sent if each.value is not None and each.value.get("op") == "r"]
        assert len(rows) == _ROWS, (len(job.sent), job.offset.snapshot.notifications)
    sent = [sum(part.bytes for part in end.snapshot.released) for _, end in job.batches]
    assert sum(sent) > _ROWS * _ROW_BYTES
    # A part is sent whole, so a batch may send one part more than its bytes.
    most = LEAST_BYTES + 5 * _ROW_BYTES * 1.1
    assert (max(sent) > most) == grows, sent
