"""A job that checks itself: rounds over different samples find a strange record, and say so everywhere."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from incsnap.checkpoint.files import Files
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import load
from incsnap.monitoring.verification_status import VerificationStatus
from incsnap.spark.verification_notice import TYPE
from lab.captured_database import CapturedDatabase
from lab.running_job import running_job, write_properties
from lab.table_designs import ORDERS
from tests.support.kafka import read_all

pytestmark = pytest.mark.servers

#: `incsnap` with rounds that rest a ninth of the time, where those of a job rest most of it.
_QUICK = (
    "from incsnap.spark import standing_verification as s; s.SHARE = 0.9; from incsnap.cli.main import main; main()"
)


def test_a_job_finds_a_difference_in_its_topic_while_it_runs(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 200)
    topic = play.topic(orders)
    properties = {
        "snapshot.mode": "initial",
        "topic.creation.default.partitions": "1",
        "incsnap.verify.interval": "1s",
        "incsnap.verify.sample": "1/2",
    }
    path = write_properties(play.folder / "incsnap.properties", play.properties(properties))

    def shown() -> VerificationStatus:
        status = load(Files(str(play.checkpoint / "incsnap")).read_json(NAME))
        return status.verification or VerificationStatus()

    def differing() -> int:
        assert not shown().failure
        return sum(table.differing for table in shown().tables if table.table == str(orders))

    with running_job(path, play.log, play.checkpoint, program=("-c", _QUICK)) as job:
        job.wait_until_streaming()
        play.drain(job)
        job.wait_until("two rounds", lambda: shown().rounds >= 2)
        assert differing() == 0
        assert str(orders) in {table.table for table in shown().tables}

        # An event's record has an exact place, so its copy with another value is wrong and not stale. A snapshot's
        # record has the place of the stream, which may be behind the row's INSERT.
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET qty = 7 WHERE id = 10")
        play.drain(job)
        value = [each.value for each in read_all(play.kafka, topic) if each.key == b'{"id":10}'][-1]
        producer = Producer({"bootstrap.servers": play.kafka})
        producer.produce(topic, key=b'{"id":10}', value=(value or b"").replace(b'"status":"', b'"status":"un'))
        producer.flush(30)
        job.wait_until("the difference", lambda: differing() == 1)
        notes = [json.loads(each.value or b"{}") for each in read_all(play.kafka, play.notifications)]
        sent = [note["additional_data"] for note in notes if note["type"] == TYPE]
        assert {data["data_collection"] for data in sent} == {str(orders)}
        assert sent[0]["wrong"] == "1"
        assert f"Next: incsnap verify FILE --table {orders} --differences FOLDER" in play.log.read_text()

        # The row's next change repairs the topic, and the next round of its sample says so.
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET qty = qty + 1 WHERE id = 10")
        job.wait_until("no difference", lambda: differing() == 0)
        assert shown().failures == 0
        job.stop()
