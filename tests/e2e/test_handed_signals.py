"""A real Debezium obeys the signals in Kafka that come behind the job's, and none that the job has obeyed."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.debezium import VERSION, connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDER_LINES, ORDERS
from tests.e2e.test_hand_back import ask
from tests.e2e.test_takeover import connector, incsnap, sent_by_connector
from tests.support.kafka import read_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.long]

_ROWS = 300


def test_a_connector_obeys_no_signal_in_kafka_that_the_job_has_obeyed(play: CapturedDatabase) -> None:
    orders, lines = play.create(ORDERS, _ROWS), play.create(ORDER_LINES, _ROWS)
    topic, log = f"{play.prefix}-signal", play.folder / "connect.log"
    settings = connector(play) | {"signal.enabled.channels": "source,kafka", "signal.kafka.groupId": topic}
    file = write_properties(play.folder / "connector.properties", settings)
    admin = AdminClient({"bootstrap.servers": play.kafka})
    admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=30)[topic].result(30)

    def rows_read(table: TableId, *, by_connector: bool) -> int:
        values = [json.loads(each.value) for each in read_all(play.kafka, play.topic(table), range(2)) if each.value]
        read = [value["source"]["version"] == VERSION for value in values if value["op"] == "r"]
        return read.count(by_connector)

    with play.job(settings) as job, play.notices() as notices:
        job.wait_until_streaming()
        play.execute_by_message("of-job", [orders])
        job.wait_until("the table was read", lambda: notices.completed("of-job"))
        play.drain(job)
        job.stop()
    assert rows_read(orders, by_connector=False) == _ROWS
    with connect_worker(play.kafka, log) as worker:
        ask(f"{worker.url}/connectors", "POST", {"name": play.prefix, "config": settings, "initial_state": "STOPPED"})
        printed = incsnap("hand-back", file, "--to-rest", worker.url)
        assert f"The connector obeys the signals of {topic} from 1 on." in printed
        ask(f"{worker.url}/connectors/{play.prefix}/resume", "PUT")
        sent_by_connector(play, 1)
        play.execute_by_message("of-connector", [lines])
        ended = f"incremental snapshotting of table '{lines}' finished"
        wait_until(lambda: ended in log.read_text(errors="replace"))
        sent_by_connector(play, 2)
    assert rows_read(lines, by_connector=True) == _ROWS
    assert rows_read(orders, by_connector=True) == 0
