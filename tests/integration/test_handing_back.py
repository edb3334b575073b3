"""`incsnap hand-back` with a checkpoint and servers, but without Kafka Connect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, remember
from incsnap.cli.main import commands
from incsnap.errors import ServerUnreachable
from incsnap.events import StreamPosition
from incsnap.kafka.client_settings import ClientSettings
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.planner.choices import PREFIX
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.takeover import schema_history
from incsnap.takeover.schema_history import HistoryTopic
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.running_job import write_properties
from signals import send
from tests.support.kafka import read_all
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


class Xa:
    """An XA transaction with a row of a new table. It ends with the test at the latest."""

    def __init__(self, mysql: MySqlAddress, database: str) -> None:
        self._mysql, self._database, self._name = mysql, database, f"'{database}'"
        self._is_prepared = False
        self._run(f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")

    def prepare(self, *rows: int, one_phase: bool = False) -> None:
        """Prepare the transaction, or commit it in one phase."""
        inserts = [f"INSERT INTO {self._database}.t VALUES ({row})" for row in rows]
        ends = f"XA COMMIT {self._name} ONE PHASE" if one_phase else f"XA PREPARE {self._name}"
        self._run(f"XA START {self._name}", *inserts, f"XA END {self._name}", ends)
        self._is_prepared = not one_phase

    def end(self, verb: str) -> None:
        """Commit the transaction or roll it back."""
        self._run(f"XA {verb} {self._name}")
        self._is_prepared = False

    def close(self) -> None:
        """Roll the transaction back if it is prepared."""
        if self._is_prepared:
            self.end("ROLLBACK")

    def _run(self, *statements: str) -> None:
        # A session of its own: it may leave no transaction open.
        with closing(connect(self._mysql, database=self._database)) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


@pytest.fixture
def xa(mysql_address: MySqlAddress, database: str) -> Iterator[Xa]:
    with closing(Xa(mysql_address, database)) as transaction:
        yield transaction


class Stopped:
    """A job that has stopped, with a connector's file and a signal topic of three messages.

    The connector has obeyed the first message, and the job the next one.
    """

    def __init__(
        self, mysql: MySqlAddress, connection: Connection[Any], kafka: str, database: str, prefix: str, folder: Path
    ) -> None:
        self.topic, self.group, self.offsets = f"{prefix}-signal", f"{prefix}-group", folder / "offsets"
        self.admin = AdminClient({"bootstrap.servers": kafka})
        self._kafka, self._folder = kafka, folder
        self.end = Offset("job", 1, StreamPosition(executed(connection), *high_watermark(connection)), TopicLayout(1))
        self.settings = {
            **mysql.properties(),
            "name": "shop",
            "topic.prefix": prefix,
            "database.include.list": database,
            "snapshot.mode": "no_data",
            "bootstrap.servers": kafka,
            "signal.enabled.channels": "kafka",
            "signal.kafka.topic": self.topic,
            "signal.kafka.groupId": self.group,
            "checkpoint.location": str(folder / "checkpoint"),
        }
        self._connection = connection
        with closing(self.consumer()) as consumer:
            consumer.commit(offsets=[TopicPartition(self.topic, 0, 1)], asynchronous=False)

    def go_on(self) -> None:
        """Let the job have ended behind all that is executed now."""
        place = StreamPosition(executed(self._connection), *high_watermark(self._connection))
        self.end = replace(self.end, stream=place)

    def keep_history(self) -> str:
        """Let the connector have a table, and a schema history in a topic that does not exist. Return its name."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {self.settings['database.include.list']}.described (id INT PRIMARY KEY)")
        self.go_on()
        topic = f"{self.topic}-history"
        self.settings["schema.history.internal.kafka.topic"] = topic
        return topic

    def statements(self, topic: str) -> list[str]:
        """Return the statements of a schema history; none if the topic does not exist."""
        if topic not in self.admin.list_topics(timeout=30).topics:
            return []
        return [json.loads(each.value or b"")["ddl"] for each in read_all(self._kafka, topic, [0])]

    def consumer(self) -> Consumer:
        return Consumer({"bootstrap.servers": self._kafka, "group.id": self.group})

    def committed(self) -> int:
        """Return the place of the connector's group in the signal topic."""
        with closing(self.consumer()) as consumer:
            (place,) = consumer.committed([TopicPartition(self.topic, 0)], timeout=30)
        return int(place.offset)

    def is_marked(self) -> bool:
        """Whether the job can no longer go on."""
        return Files(own_part(self.settings["checkpoint.location"])).exists("handed-back.json")

    def unmark(self) -> None:
        """Let the job go on again."""
        Files(own_part(self.settings["checkpoint.location"])).delete("handed-back.json")

    def hand_back(self, *options: str, **signal_positions: object) -> Result:
        """Run `incsnap hand-back` with a checkpoint whose job has ended at these positions of signal channels."""
        dumped = Offset.dump(self.end) | {"signal_positions": signal_positions}
        for log, content in (("offsets", f"v1\n{{}}\n{json.dumps(dumped)}"), ("commits", "v1\n{}")):
            file = self._folder / "checkpoint" / "spark" / log / "1"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        file = write_properties(self._folder / "connector.properties", self.settings)
        return CliRunner().invoke(commands, ["hand-back", str(file), *options])


@contextmanager
def answering(code: int) -> Iterator[str]:
    """Answer each PATCH with `code` like Kafka Connect, which has stopped the connector. Yield the address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"connector": {"state": "STOPPED"}, "tasks": []}')

        def do_PATCH(self) -> None:
            self.send_response(code)
            self.end_headers()

    with ThreadingHTTPServer(("localhost", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()


@pytest.fixture
def stopped(
    mysql_address: MySqlAddress,
    connection: Connection[Any],
    kafka_address: str,
    database: str,
    topic_prefix: str,
    tmp_path: Path,
) -> Iterator[Stopped]:
    admin, topic = AdminClient({"bootstrap.servers": kafka_address}), f"{topic_prefix}-signal"
    admin.create_topics([NewTopic(topic, 1, 1)], request_timeout=30)[topic].result(30)
    for name in ("a", "b", "c"):
        send.to_topic(kafka_address, topic, topic_prefix, name, "pause-snapshot", {})
    yield Stopped(mysql_address, connection, kafka_address, database, topic_prefix, tmp_path)
    made = [name for name in admin.list_topics(timeout=30).topics if name.startswith(topic)]
    for deleted in admin.delete_topics(made, request_timeout=30).values():
        deleted.result(30)


def test_a_connector_does_not_obey_again_what_the_job_has_obeyed(stopped: Stopped) -> None:
    printed = stopped.hand_back(kafka=2)
    assert (printed.exit_code, stopped.committed()) == (0, 1), printed.output
    assert f"--group {stopped.group} --topic {stopped.topic}:0 --to-offset 2" in printed.stderr
    assert "do not start this job again" in printed.stderr

    written = stopped.hand_back("--to-file", str(stopped.offsets), kafka=2)
    assert (written.exit_code, stopped.committed()) == (0, 2), written.output
    assert stopped.offsets.exists()


def test_a_job_that_has_read_no_signal_leaves_the_connectors_place(stopped: Stopped) -> None:
    written = stopped.hand_back("--to-file", str(stopped.offsets))
    assert (written.exit_code, stopped.committed()) == (0, 1), written.output


def test_the_lines_of_a_signal_file_are_said_to_be_obeyed_again(stopped: Stopped) -> None:
    again = f"The connector obeys each line of {stopped.offsets}.signals again"
    stopped.settings |= {"signal.enabled.channels": "file", "signal.file": f"{stopped.offsets}.signals"}

    assert again in stopped.hand_back(file=[120, 7, 7]).stderr
    assert again not in stopped.hand_back(file=[0, 7, 7]).stderr
    assert again not in stopped.hand_back().stderr


def test_the_last_lines_name_the_file_of_a_schema_history_that_must_be_renewed(stopped: Stopped) -> None:
    stopped.settings |= {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": "/var/lib/history.dat",
    }

    written = stopped.hand_back("--to-file", str(stopped.offsets))

    assert written.exit_code == 0, written.output
    renewal, following = written.stdout.splitlines()[-2:]
    assert "give schema.history.internal.file.filename (now /var/lib/history.dat) a new name" in renewal
    assert "snapshot.mode=recovery" in renewal
    assert following.startswith("Next: ")


def test_the_file_of_another_connector_is_refused(stopped: Stopped) -> None:
    prefix = stopped.settings["topic.prefix"]
    files = Files(own_part(stopped.settings["checkpoint.location"]))
    remember(files, KeptOffsets(files), stopped.end, PlannedWith("0.1.0", {PREFIX: prefix}))
    assert stopped.hand_back().exit_code == 0

    stopped.settings["topic.prefix"] = "other"
    refused = stopped.hand_back("--to-file", str(stopped.offsets))

    assert refused.exit_code == 2, refused.output
    assert f"a job with topic.prefix {prefix}" in refused.stderr
    assert not stopped.offsets.exists()


def test_a_topic_of_offsets_that_does_not_exist_is_refused_and_not_created(stopped: Stopped) -> None:
    missing = f"{stopped.topic}-misspelt"
    stopped.settings["offsets.storage.topic"] = missing

    refused = stopped.hand_back("--to-topic")

    assert refused.exit_code == 2, refused.output
    assert f"the topic {missing} does not exist" in refused.stderr
    assert missing not in stopped.admin.list_topics(timeout=30).topics
    assert not stopped.is_marked()


def test_a_connector_that_runs_is_refused_where_no_worker_may_run(stopped: Stopped) -> None:
    states, worker = f"{stopped.topic}-states", stopped.offsets.with_name("worker.properties")
    stopped.admin.create_topics([NewTopic(states, 1, 1)], request_timeout=30)[states].result(30)
    producer = Producer({"bootstrap.servers": stopped.settings["bootstrap.servers"]})
    producer.produce(states, key=b"status-connector-shop", value=b'{"state": "RUNNING"}')
    assert producer.flush(30) == 0
    write_properties(worker, {"group.id": stopped.group, "status.storage.topic": states})

    with closing(stopped.consumer()) as member:
        member.subscribe([stopped.topic])
        wait_until(lambda: member.poll(0.1) is not None or bool(member.assignment()))
        refused = stopped.hand_back("--to-file", str(stopped.offsets), "--worker", str(worker))

    assert refused.exit_code == 2, refused.output
    assert "the connector shop still runs: 1 workers of the group" in refused.stderr
    assert not stopped.offsets.exists()
    assert not stopped.is_marked()


def test_a_group_in_use_is_refused_before_anything_is_written(stopped: Stopped) -> None:
    with closing(stopped.consumer()) as other:
        other.subscribe([stopped.topic])
        wait_until(lambda: other.poll(0.1) is not None or bool(other.assignment()))
        refused = stopped.hand_back("--to-file", str(stopped.offsets), kafka=2)

    assert refused.exit_code == 2, refused.output
    assert f"the group {stopped.group}" in refused.stderr
    assert not stopped.offsets.exists()
    assert not stopped.is_marked()


def test_xa_transactions_behind_the_job_go_back_because_debezium_reads_their_xa_prepare(
    xa: Xa, stopped: Stopped
) -> None:
    xa.prepare(1)
    prepared = stopped.hand_back("--to-file", str(stopped.offsets))
    assert prepared.exit_code == 0, prepared.output
    stopped.unmark()

    xa.end("COMMIT")
    xa.prepare(2, one_phase=True)
    ended = stopped.hand_back("--to-file", str(stopped.offsets))
    assert ended.exit_code == 0, ended.output


def test_an_xa_transaction_that_was_prepared_before_the_job_and_that_the_job_does_not_know_is_refused(
    xa: Xa, stopped: Stopped
) -> None:
    xa.prepare(1)
    stopped.go_on()
    prepared = stopped.hand_back("--to-file", str(stopped.offsets))
    assert (prepared.exit_code, stopped.is_marked()) == (2, False), prepared.output
    assert "the binlog has no XA PREPARE of them behind the place" in " ".join(prepared.stderr.split())

    xa.end("COMMIT")
    committed = stopped.hand_back("--to-file", str(stopped.offsets))
    assert (committed.exit_code, stopped.is_marked()) == (2, False), committed.output
    assert "committed behind it" in " ".join(committed.stderr.split())

    stopped.go_on()
    assert stopped.hand_back("--to-file", str(stopped.offsets)).exit_code == 0


def test_an_xa_transaction_that_is_rolled_back_behind_the_job_is_not_missed(xa: Xa, stopped: Stopped) -> None:
    xa.prepare(1)
    stopped.go_on()
    xa.end("ROLLBACK")

    given = stopped.hand_back("--to-file", str(stopped.offsets))
    assert given.exit_code == 0, given.output


def test_a_schema_history_stays_as_it_was_if_the_offset_is_refused(stopped: Stopped, database: str) -> None:
    history = stopped.keep_history()
    with answering(409) as url:
        refused = stopped.hand_back("--to-rest", url)
    assert refused.exit_code == 2, refused.output
    assert "must exist and be STOPPED" in " ".join(refused.stderr.split())
    no_folder = stopped.hand_back("--to-file", str(stopped.offsets / "missing" / "offsets"))
    assert no_folder.exit_code == 2, no_folder.output
    assert stopped.statements(history) == []

    with answering(200) as url:
        accepted = stopped.hand_back("--to-rest", url)
    assert accepted.exit_code == 0, accepted.output
    # Debezium takes it for a database that names no character set.
    assert stopped.statements(history)[0] == "SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci"
    assert f"DROP DATABASE IF EXISTS `{database}`" in stopped.statements(history)


def test_an_accepted_offset_whose_schema_history_is_not_written_is_named_and_another_run_writes_it(
    stopped: Stopped, database: str
) -> None:
    history = stopped.keep_history()
    with patch.object(HistoryTopic, "append", side_effect=ServerUnreachable("Kafka does not answer")):
        failed = stopped.hand_back("--to-file", str(stopped.offsets))
    assert failed.exit_code != 0
    assert stopped.offsets.exists()
    output = " ".join(failed.output.split())
    assert f"Do not start the connector yet: {history} does not have the tables" in output
    assert "run it again before you start the connector" in output

    again = stopped.hand_back("--to-file", str(stopped.offsets))
    assert again.exit_code == 0, again.output
    assert f"DROP DATABASE IF EXISTS `{database}`" in stopped.statements(history)


def test_a_file_without_the_connectors_offset_is_named_and_the_right_one_gets_it_afterwards(stopped: Stopped) -> None:
    right = ("--to-file", str(stopped.offsets))
    assert "had no offset of the connector shop" in " ".join(stopped.hand_back(*right).stderr.split())
    stopped.unmark()
    assert stopped.hand_back(*right).stderr == ""
    stopped.unmark()

    wrong = stopped.hand_back("--to-file", f"{stopped.offsets}-misspelt")
    assert wrong.exit_code == 0, wrong.output
    words = " ".join(wrong.stderr.split())
    assert f"{stopped.offsets}-misspelt had no offset of the connector shop" in words
    assert "handed-back.json, and run `incsnap hand-back` again" in words
    assert stopped.hand_back(*right).exit_code == 2

    stopped.unmark()
    assert stopped.hand_back(*right).exit_code == 0


def test_a_schema_history_may_have_more_records_than_the_clients_queue(
    kafka_address: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {"queue.buffering.max.messages": 10}
    monkeypatch.setattr(schema_history, "Producer", lambda settings: Producer({**settings, **short}))
    topic = f"{topic_prefix}-history"

    HistoryTopic(topic, ClientSettings(kafka_address)).append(b"%d" % number for number in range(1_000))

    assert [int(each.value or b"") for each in read_all(kafka_address, topic, [0])] == list(range(1_000))
