"""Tests of `make demo`: it reports the truth and removes its databases, topics and folders, also if interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.servers


@contextmanager
def running_demo(mysql: MySqlAddress, kafka: str, rows: int, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the demo until the block ends. It ignores SIGINT at first, as a shell's background jobs and CI runners do."""
    environment = {
        **os.environ,
        "INCSNAP_MYSQL": str(mysql),
        "INCSNAP_MYSQL_USER": mysql.user,
        "INCSNAP_MYSQL_PASSWORD": mysql.password,
        "INCSNAP_KAFKA": kafka,
        "TMPDIR": str(folder),
    }
    command = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    command += [sys.executable, "-m", "lab", "--rows", str(rows)]
    with (folder / "demo.log").open("w") as log:
        demo = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, text=True)
        try:
            yield demo
        finally:
            demo.kill()
            demo.wait(PATIENCE_SECONDS)


def left_behind(mysql: MySqlAddress, kafka: str) -> list[str]:
    """Return the databases and topics of demos."""
    with connect(mysql) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES LIKE 'incsnap\\_demo\\_%'")
        databases = [str(name) for (name,) in cursor.fetchall()]
    topics = AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=20).topics
    return databases + [topic for topic in topics if "incsnap-demo-" in topic]


def test_the_demo_ends_well_and_takes_everything_away(
    mysql_address: MySqlAddress, kafka_address: str, tmp_path: Path
) -> None:
    before = set(left_behind(mysql_address, kafka_address))
    with running_demo(mysql_address, kafka_address, 3_000, tmp_path) as demo:
        code = demo.wait(PATIENCE_SECONDS)

    log = (tmp_path / "demo.log").read_text()
    assert code == 0, log
    for table in ("orders", "order_lines"):
        assert re.search(rf"^incsnap_demo_\w+\.{table}: equal\. [0-9,]+ rows are in ", log, re.MULTILINE), log
    assert "In the topic:" not in log, log
    reads = re.search(r"^Snapshots: ([0-9,]+) rows sent", log, re.MULTILINE)
    assert reads, log
    assert reads[1] != "0", log
    wait_until(lambda: set(left_behind(mysql_address, kafka_address)) <= before)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_takes_everything_away(
    mysql_address: MySqlAddress, kafka_address: str, tmp_path: Path, number: signal.Signals
) -> None:
    before = set(left_behind(mysql_address, kafka_address))
    log = tmp_path / "demo.log"
    with running_demo(mysql_address, kafka_address, 3_000, tmp_path) as demo:
        wait_until(lambda: log.exists() and "Starting the job" in log.read_text())
        demo.send_signal(number)
        code = demo.wait(PATIENCE_SECONDS)

    assert code == 130, log.read_text()
    assert "Traceback" not in log.read_text()
    wait_until(lambda: set(left_behind(mysql_address, kafka_address)) <= before)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
