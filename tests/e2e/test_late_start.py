"""A start long after its take-over: it is refused if the connector has gone on meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from incsnap.mysql.watermarks import executed, high_watermark
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from tests.e2e.test_takeover import connector, incsnap
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


def offset_now(play: CapturedDatabase, file: Path) -> None:
    """Write the offset of a connector that has sent everything."""
    with play.connect() as connection:
        place, gtids = high_watermark(connection), executed(connection)
    offset: dict[str, Any] = {"file": place[0], "pos": place[1], "gtids": str(gtids)}
    file.write_text(json.dumps({"offsets": [{"partition": {"server": play.prefix}, "offset": offset}]}))


def produce(play: CapturedDatabase, topic: str, *, commits: bool) -> None:
    """Write a record into a topic, in a transaction that is committed or aborted."""
    producer = Producer({"bootstrap.servers": play.kafka, "transactional.id": play.prefix})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"{}", b'{"id":1}')
    producer.flush(30)
    producer.commit_transaction(30) if commits else producer.abort_transaction(30)


@pytest.mark.parametrize("commits", [True, False])
def test_a_start_is_refused_if_the_connector_has_sent_records_since(play: CapturedDatabase, commits: bool) -> None:
    orders = play.create(ORDERS, 5)
    settings, offsets = connector(play), play.folder / "offsets.json"
    file = write_properties(play.folder / "connector.properties", settings)
    offset_now(play, offsets)
    incsnap("takeover", file, "--offsets", offsets)
    # The topic did not exist at the take-over.
    produce(play, play.topic(orders), commits=commits)

    if not commits:
        with play.job(settings) as job:
            job.wait_until_streaming()
            job.stop()
        return
    command = [sys.executable, "-m", "incsnap", "run", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 2
    assert f"{play.topic(orders)} has records" in " ".join((done.stdout + done.stderr).split())
