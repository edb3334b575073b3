"""A connector that was stopped inside a compressed transaction: the job sends the rest, from the next row on."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pymysql.connections import Connection

from incsnap.binlog.compressed_search import inner_events
from incsnap.binlog.protocol.control_events import ROWS
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import write_taken_over
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.mysql.session import dial
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.join import join
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.integration.test_taken_over_records import written
from tests.support.planned_job import PlannedJob, settings_of

pytestmark = pytest.mark.servers

#: Operation and key of each record of the transaction, by rows events.
RECORDS = [[("c", 1), ("c", 2), ("c", 3)], [("u", 1), ("u", 2)], [("d", 3)], [("c", 4)]]
ALL = [record for records in RECORDS for record in records]


@dataclass
class Stopped:
    """A connector that was stopped somewhere in the transaction."""

    settings: Settings  #: those of the job
    before: ConnectorOffset  #: offset before the transaction
    payload: int  #: position of the compressed transaction
    at: list[int]  #: of each of `RECORDS` the number of the rows event among all events
    topic: str  #: topic of the table

    def offset(self, sent: int) -> ConnectorOffset:
        """Return the offset behind this number of records."""
        event = next(number for number in count() if sum(map(len, RECORDS[: number + 1])) >= sent)
        row = sent - sum(map(len, RECORDS[:event]))
        return replace(self.before, pos=self.payload, event=self.at[event], row=row)

    def send(self, sent: int, *, tombstones: bool = True) -> None:
        """Write as many records as Debezium does. `tombstones`: whether those of deletions are there too."""
        producer = Producer({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        rows = [(row, *record) for records in RECORDS for row, record in enumerate(records)]
        for row, op, key in rows[:sent]:
            source: dict[str, object] = {
                "version": "3.6.1.Final",
                "connector": "mysql",
                "name": self.settings.topic_prefix,
            }
            source |= {"snapshot": "false", "file": self.before.file, "pos": self.payload, "row": row}
            images = {"before": None if op == "c" else {"id": key}, "after": None if op == "d" else {"id": key}}
            value = json.dumps({**images, "source": source, "op": op, "ts_ms": 1}, separators=(",", ":")).encode()
            producer.produce(self.topic, value, b'{"id":%d}' % key)
            if op == "d" and tombstones:
                producer.produce(self.topic, None, b'{"id":%d}' % key)
        assert producer.flush(30) == 0


@pytest.fixture(params=[False, True], ids=["the stream alone", "statements too"])
def stopped(
    request: pytest.FixtureRequest, mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str
) -> Stopped:
    """Return a connector whose transaction has rows of a table that is not captured, and a savepoint."""
    settings = settings_of(mysql_address, kafka_address, topic_prefix, database, table__exclude__list=rf"{database}\.x")
    t, x = f"{database}.t", f"{database}.x"
    with closing(connect(mysql_address)) as connection:
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {t} (id INT PRIMARY KEY, v INT)")
            cursor.execute(f"CREATE TABLE {x} (id INT PRIMARY KEY)")
            cursor.execute("SET SESSION binlog_transaction_compression = ON")
            cursor.execute(f"SET SESSION binlog_rows_query_log_events = {int(request.param)}")
        before, events = written(
            connection,
            "BEGIN",
            f"INSERT INTO {t} VALUES (1, 1), (2, 1), (3, 1)",
            "SAVEPOINT s",
            f"INSERT INTO {x} VALUES (1), (2)",
            f"UPDATE {t} SET v = 2 WHERE id < 3",
            f"DELETE FROM {t} WHERE id = 3",
            f"INSERT INTO {t} VALUES (4, 1)",
            "COMMIT",
            f"INSERT INTO {t} VALUES (5, 1)",
        )
    payload = next(pos for kind, pos in events if kind == "Transaction_payload")
    inner = list(inner_events(partial(dial, settings.mysql), settings.mysql.server_id, before.gtids))
    of_rows = [number for number, event in enumerate(inner) if event.kind in ROWS]
    return Stopped(settings, before, payload, [of_rows[0], *of_rows[2:]], f"{topic_prefix}.{database}.t")


@pytest.mark.parametrize("sent", range(1, len(ALL) + 1))
def test_the_rest_of_a_compressed_transaction_is_sent_from_the_next_row_on(
    stopped: Stopped, sent: int, tmp_path: Path
) -> None:
    stopped.send(sent)
    joined = join(stopped.settings, stopped.offset(sent))
    assert not joined.warnings
    write_taken_over(Files(str(tmp_path)), joined.place)
    with closing(PlannedJob(stopped.settings, str(tmp_path))) as job:
        job.until(stopped.topic, len(ALL) - sent + 1 + (sent < ALL.index(("d", 3)) + 1))
        records = [each for each in job.of(stopped.topic) if each.value is not None]
        images = [(each.value["op"], each.value["after"] or each.value["before"]) for each in records]
    assert [(op, image["id"]) for op, image in images] == [*ALL[sent:], ("c", 5)]


def test_the_offset_counts_if_the_topics_have_no_record_of_the_transaction(stopped: Stopped, tmp_path: Path) -> None:
    write_taken_over(Files(str(tmp_path)), join(stopped.settings, stopped.offset(4)).place)
    with closing(PlannedJob(stopped.settings, str(tmp_path))) as job:
        job.until(stopped.topic, len(ALL) - 4 + 2)
        records = [each for each in job.of(stopped.topic) if each.value is not None]
    assert [each.value["op"] for each in records] == ["u", "d", "c", "c"]


@pytest.mark.parametrize("written_too", [-1, 1])
def test_topics_with_another_number_of_records_than_the_offset_says_are_refused(
    stopped: Stopped, written_too: int
) -> None:
    stopped.send(3 + written_too)
    with pytest.raises(ConfigError, match="compressed transaction"):
        join(stopped.settings, stopped.offset(3))


def test_a_part_without_the_tombstone_of_its_last_deletion_is_refused(stopped: Stopped) -> None:
    sent = ALL.index(("d", 3)) + 1
    stopped.send(sent, tombstones=False)
    with pytest.raises(ConfigError, match="compressed transaction") as refused:
        join(stopped.settings, stopped.offset(sent))
    assert "let it send a later change" in refused.value.hint

    join(stopped.settings.model_copy(update={"tombstones_on_delete": False}), stopped.offset(sent))


def test_the_first_events_of_a_transaction_that_is_not_compressed_are_not_asked_for(
    mysql_address: MySqlAddress, connection: Connection[Any], database: str
) -> None:
    settings = settings_of(mysql_address, "127.0.0.1:1", "p", database)
    before, _ = written(connection, f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    assert list(inner_events(partial(dial, settings.mysql), settings.mysql.server_id, before.gtids)) == []
