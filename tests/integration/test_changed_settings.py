"""Settings that were changed while a batch was planned and not finished, and topics that were deleted: nothing lost,
nothing twice, and no batch that fails for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.planned_batch import planned_end
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, OffsetError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import ensure_topics, partition_counts
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.unfinished_batch import take_back
from incsnap.snapshot.offset import Offset, digest
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, run, settings_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


class CapturedDatabase:
    def __init__(self, mysql: MySqlAddress, kafka: str, database: str, prefix: str, root: Path) -> None:
        self.mysql, self.kafka, self.database, self.prefix, self.root = mysql, kafka, database, prefix, root
        self.job: PlannedJob | None = None
        self._connection = connect(mysql, database=database)
        for table in "abs":
            self.run(f"CREATE TABLE {table} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")

    def run(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def insert(self, table: str, *ids: str) -> None:
        for id_ in ids:
            self.run(f"INSERT INTO {table} VALUES ('{id_}', 'x', '')")

    def settings(self, tables: str = "a", **more: str) -> Settings:
        names = ",".join(f"{self.database}\\.{table}" for table in tables)
        return settings_of(
            self.mysql,
            self.kafka,
            self.prefix,
            self.database,
            table__include__list=names,
            include__schema__changes="false",
            **{"checkpoint__location": str(self.root), **more},
        )

    def begun(self, settings: Settings) -> PlannedJob:
        self.job = PlannedJob(settings, str(self.root / "incsnap"))
        return self.job

    def under(self, settings: Settings) -> PlannedJob:
        """The job started again; raises what the start raises."""
        job = self.job
        assert job is not None
        job.planner.close()
        take_back(settings, job.root)
        job.settings = settings
        job.restart()
        return job

    def topic(self, table: str, delimiter: str = ".") -> str:
        return delimiter.join((self.prefix, self.database, table))

    def close(self) -> None:
        if self.job is not None:
            self.job.close()
        self._connection.close()


@pytest.fixture
def captured(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> Iterator[CapturedDatabase]:
    captured = CapturedDatabase(mysql_address, kafka_address, database, topic_prefix, tmp_path)
    yield captured
    captured.close()


def written_ahead(job: PlannedJob) -> Offset:
    """A batch is planned, Spark has written it down, and then the job dies."""
    end = job.offset

    def planned_one() -> bool:
        nonlocal end
        end = job.planner.plan(job.offset)
        return end is not job.offset

    wait_until(planned_one)
    spark = Path(job.settings.checkpoint_location) / "spark"
    for log in ("offsets", "commits"):
        (spark / log).mkdir(parents=True, exist_ok=True)
    (spark / "offsets" / str(end.batch - 1)).write_text("v1\n{}\n" + json.dumps(end.dump()))
    return end


def sent_by(job: PlannedJob, end: Offset, bucket: int) -> None:
    """Commit the batch of one bucket in Kafka, without records."""
    settings = job.settings
    writer = BucketWriter(ClientSettings(settings.kafka.bootstrap_servers, {}), settings.topic_prefix, end.job_id)
    transaction = writer.open(bucket, end.batch, digest(end.dump()))
    assert transaction is not None
    with transaction:
        transaction.commit()


def keys(job: PlannedJob, topic: str) -> list[str]:
    return [sent.key["id"] for sent in job.of(topic)]


def everything_sent(job: PlannedJob, topic: str, count: int) -> list[str]:
    job.until(topic, count)
    return keys(job, topic)


#: Changed properties, the delimiter then, and how the refusal names them.
CHANGES: dict[str, tuple[dict[str, str], str, str]] = {
    "a widened list": ({"tables": "ab"}, ".", "include and exclude lists (was"),
    "a signal table": ({"signal__data__collection": "{database}.s"}, ".", "signal.data.collection (was none"),
    "another delimiter": ({"topic__delimiter": "-"}, "-", "topic.delimiter (was ., is -)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_batch_of_which_nothing_was_sent_is_planned_again_with_the_new_settings(
    captured: CapturedDatabase, change: str
) -> None:
    more, delimiter, _ = CHANGES[change]
    job = captured.begun(captured.settings())
    captured.insert("a", "1")
    job.until(captured.topic("a"))
    captured.insert("a", "2")
    captured.insert("b", "1")
    captured.run("INSERT INTO s VALUES ('1', 'log', '{\"message\": \"hello\"}')")
    written_ahead(job)

    again = {name: value.format(database=captured.database) for name, value in more.items()}
    job = captured.under(captured.settings(**again))

    assert planned_end(Files(job.root)) is None
    assert not list((captured.root / "spark" / "offsets").iterdir())
    captured.insert("a", "3")
    assert everything_sent(job, captured.topic("a", delimiter), 2 + (delimiter == "."))[-2:] == ["2", "3"]
    if "tables" in more:
        assert everything_sent(job, captured.topic("b"), 1) == ["1"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_batch_sent_in_part_is_finished_with_its_own_settings(captured: CapturedDatabase, change: str) -> None:
    more, _, named = CHANGES[change]
    again = {name: value.format(database=captured.database) for name, value in more.items()}
    job = captured.begun(captured.settings())
    captured.insert("a", "1")
    end = written_ahead(job)
    sent_by(job, end, 1)

    with pytest.raises(ConfigError, match="cut short when a part of it had been sent") as raised:
        captured.under(captured.settings(**again))
    assert "Change them back" in raised.value.hint
    assert named in raised.value.message

    job = captured.under(captured.settings())  # changed back
    assert planned_end(Files(job.root)) is not None
    assert job.batch()
    assert job.offset == end


def test_the_rest_of_a_transaction_needs_the_same_captured_tables(captured: CapturedDatabase) -> None:
    job = captured.begun(captured.settings(max__batch__size="2048"))
    captured.run("BEGIN", *[f"INSERT INTO a VALUES ('{n}', 'x', REPEAT('.', 2000))" for n in range(9)], "COMMIT")
    captured.insert("a", "last")
    end = written_ahead(job)
    inside = {**end.dump(), "stream": {**end.stream.to_json(), "open_gtid": "u:9", "events_done": 3}}
    (captured.root / "spark" / "offsets" / str(end.batch - 1)).write_text("v1\n{}\n" + json.dumps(inside))
    (captured.root / "spark" / "commits" / str(end.batch - 1)).write_text("v1\n{}")
    with pytest.raises(ConfigError, match="a part of the transaction u:9 has been sent"):
        captured.under(captured.settings("ab"))


def test_another_prefix_is_refused_by_what_the_last_batch_was_planned_with(captured: CapturedDatabase) -> None:
    job = captured.begun(captured.settings())
    captured.insert("a", "1")
    job.until(captured.topic("a"))
    other = settings_of(
        captured.mysql, captured.kafka, "another", captured.database, checkpoint__location=str(captured.root)
    )
    with pytest.raises(ConfigError, match=f"another topic.prefix|topic.prefix {captured.prefix}"):
        captured.under(other)


def deleted(admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic], request_timeout=30)[topic].result(30)
    wait_until(lambda: not partition_counts(admin, [topic]))


def test_a_topic_that_was_deleted_is_made_again_for_the_batch_that_is_repeated(captured: CapturedDatabase) -> None:
    group = {"topic__creation__default__partitions": "3", "topic__creation__default__replication__factor": "1"}
    job = captured.begun(captured.settings(**group))
    captured.insert("a", "1")
    end = written_ahead(job)
    topic, admin = captured.topic("a"), AdminClient({"bootstrap.servers": captured.kafka})
    assert end.layout.partitions == {topic: 3}
    deleted(admin, topic)

    fewer = {**group, "topic__creation__default__partitions": "1"}
    job = captured.under(captured.settings(**fewer))
    parts = job.planner.parts(job.offset, end)
    assert partition_counts(admin, [topic]) == {topic: 3}
    assert [each.key["id"] for each in run(parts, job.settings, job.root)] == ["1"]

    deleted(admin, topic)
    ensure_topics(admin, [topic], 1, 1)
    job = captured.under(captured.settings(**group))
    with pytest.raises(OffsetError, match=f"{topic} has 1, not 3"):
        job.planner.parts(job.offset, end)


def test_the_layout_names_what_the_batch_and_windows_need_and_no_table_that_is_gone(captured: CapturedDatabase) -> None:
    job = captured.begun(captured.settings("abcdefgh", signal__data__collection=f"{captured.database}.s"))
    admin = AdminClient({"bootstrap.servers": captured.kafka})
    for table in "cdefgh":
        captured.run(f"CREATE TABLE {table} LIKE a")
        captured.insert(table, "1")
        job.until(captured.topic(table))
        assert list(job.offset.layout.partitions) == [captured.topic(table)]
        captured.run(f"DROP TABLE {table}")
    deleted(admin, captured.topic("c"))
    job = captured.under(job.settings)
    captured.insert("a", "1", "2")
    job.until(captured.topic("a"), 2)
    collections = json.dumps({"data-collections": [f"{captured.database}.a"]})
    captured.run(f"INSERT INTO s VALUES ('2', 'execute-snapshot', '{collections}')")
    wait_until(lambda: bool(job.batch() and job.offset.snapshot.in_flight))
    assert captured.topic("a") in job.offset.layout.partitions
    assert not partition_counts(admin, [captured.topic("c")])


def test_windows_in_flight_are_read_again_after_a_change_of_delimiter(
    captured: CapturedDatabase,
) -> None:
    signal = {"signal__data__collection": f"{captured.database}.s"}
    job = captured.begun(captured.settings(**signal))
    captured.insert("a", "1", "2", "3")
    collections = json.dumps({"data-collections": [f"{captured.database}.a"]})
    captured.run(f"INSERT INTO s VALUES ('2', 'execute-snapshot', '{collections}')")
    wait_until(lambda: bool(job.batch() and job.offset.snapshot.in_flight))
    before = {window.id for window in job.offset.snapshot.in_flight}

    job = captured.under(captured.settings(**signal, topic__delimiter="-"))

    begun = len(job.batches)
    job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")
    released = [each.window for _, end in job.batches[begun:] for each in end.snapshot.released]
    assert not before & {window.id for window in released}
    assert sum(window.result.rows for window in released if window.result) == 3
    assert partition_counts(AdminClient({"bootstrap.servers": captured.kafka}), [captured.topic("a", "-")])
