"""`incsnap takeover` with servers, a topic of a connector, and a stand-in for Kafka Connect."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.cli.main import commands
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import ends_by_topic
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.connector_state import arriving_records
from lab.addresses import MySqlAddress
from lab.running_job import write_properties
from tests.integration.test_taken_over_records import UNWRAPPED, Topic, places_of_rows, written
from tests.support.connect_rest import connect_rest
from tests.support.properties import dotted

pytestmark = pytest.mark.servers

_READY = "Ready. Stop the connector now"


class Stage:
    """A connector's file and offset, with its table `t`."""

    def __init__(
        self, mysql: MySqlAddress, connection: Connection[Any], kafka: str, database: str, prefix: str, folder: Path
    ) -> None:
        self.topic, self.client = Topic(kafka, prefix, database), ClientSettings(kafka, {})
        self.table = f"{database}.t"
        self._connection, self._folder = connection, folder
        self.settings = {
            **mysql.properties(),
            "name": "shop",
            "topic.prefix": prefix,
            "database.include.list": database,
            "snapshot.mode": "no_data",
            "bootstrap.servers": kafka,
            "checkpoint.location": str(folder / "checkpoint"),
        }

    def written(self, *statements: str) -> tuple[ConnectorOffset, list[tuple[str, int]]]:
        """Execute the statements. See `test_taken_over_records.written`."""
        return written(self._connection, *statements)

    def ends(self) -> tuple[int, ...]:
        """Return the ends of the topic's partitions."""
        return ends_by_topic(self.client, [self.topic.name])[self.topic.name]

    def is_written(self) -> bool:
        """Whether the checkpoint has the place."""
        return Files(own_part(self.settings["checkpoint.location"])).exists("taken-over.json")

    def run(self, offset: ConnectorOffset, *options: str, more: Mapping[str, str] = MappingProxyType({})) -> Result:
        """Run `incsnap takeover` for a connector with this offset. `more`: further settings of the connector."""
        file = write_properties(self._folder / "connector.properties", {**self.settings, **more})
        offsets = self._folder / "offsets.json"
        content = {"file": offset.file, "pos": offset.pos, "gtids": str(offset.gtids), "ts_sec": int(time.time())}
        partition = {"server": self.settings["topic.prefix"]}
        offsets.write_text(json.dumps({"offsets": [{"partition": partition, "offset": content}]}))
        return CliRunner().invoke(commands, ["takeover", str(file), "--offsets", str(offsets), *options])


@pytest.fixture
def stage(
    mysql_address: MySqlAddress,
    connection: Connection[Any],
    kafka_address: str,
    database: str,
    topic_prefix: str,
    tmp_path: Path,
) -> Stage:
    return Stage(mysql_address, connection, kafka_address, database, topic_prefix, tmp_path)


def words_of(result: Result) -> str:
    """Return all that was printed, as one line."""
    return " ".join(result.output.split())


def test_a_dry_run_beside_a_connector_says_what_comes_twice_and_writes_nothing(stage: Stage) -> None:
    stage.written(f"CREATE TABLE {stage.table} (id INT)")
    offset, events = stage.written(f"INSERT INTO {stage.table} VALUES (1)")
    (place,) = places_of_rows(events)
    stage.topic.row(offset.file, place, key=None)
    stage.settings |= dotted(UNWRAPPED)
    before = stage.ends()

    with connect_rest([["RUNNING", "RUNNING"]]) as (address, asked):
        result = stage.run(offset, "--dry-run", "--wait", "--rest", address)

    assert result.exit_code == 0, result.output
    assert "The connector still runs" in words_of(result)
    assert f"{stage.topic.name}: 1 records that the connector has sent come twice" in words_of(result)
    assert "Nothing was written" in result.output
    assert (len(asked), stage.is_written(), stage.ends()) == (1, False, before)


def test_a_place_is_found_before_the_connector_stops_and_written_behind_its_end(stage: Stage) -> None:
    stage.written(f"CREATE TABLE {stage.table} (id INT PRIMARY KEY)")
    offset, events = stage.written(f"INSERT INTO {stage.table} VALUES (1)")
    (place,) = places_of_rows(events)
    stage.topic.envelope("c", "", offset.file, place)
    before = stage.ends()

    with connect_rest([["RUNNING", "RUNNING"], ["STOPPED"]]) as (address, _):
        result = stage.run(offset, "--wait", "--rest", address)

    assert result.exit_code == 0, result.output
    sentence = f"The topics go on up to {offset.file}:{place}"
    assert [sentence in part for part in result.output.split(_READY)] == [True, True]
    assert (stage.is_written(), stage.ends()) == (True, before)


def test_the_brokers_and_the_checkpoint_may_be_options(stage: Stage, tmp_path: Path) -> None:
    offset, _ = stage.written(f"CREATE TABLE {stage.table} (id INT PRIMARY KEY)")
    place, brokers = str(tmp_path / "other"), stage.settings.pop("bootstrap.servers")
    del stage.settings["checkpoint.location"]
    options = ["--bootstrap-servers", brokers, "--checkpoint-location", place]

    with connect_rest([["STOPPED"]]) as (address, _):
        result = stage.run(offset, *options, "--rest", address)

    assert result.exit_code == 0, result.output
    assert Files(own_part(place)).exists("taken-over.json")
    assert f"Next: incsnap run {tmp_path / 'connector.properties'} {' '.join(options)}" in result.output


@pytest.mark.parametrize(
    ("gtids", "moved", "why"),
    [
        ("00000000-0000-0000-0000-000000000001:1-7", 0, "the server does not know"),
        ("", 1, "the connector read another server"),
    ],
    ids=["unknown GTIDs", "no event begins there"],
)
def test_what_no_stop_cures_is_refused_before_the_connector_is_to_stop(
    stage: Stage, gtids: str, moved: int, why: str
) -> None:
    offset, _ = stage.written(f"CREATE TABLE {stage.table} (id INT PRIMARY KEY)")
    wrong = ConnectorOffset(offset.gtids if not gtids else offset.gtids.parse(gtids), offset.file, offset.pos + moved)

    with connect_rest([["RUNNING", "RUNNING"]]) as (address, _):
        result = stage.run(wrong, "--wait", "--rest", address)

    assert result.exit_code == 2, result.output
    assert why in words_of(result)
    assert _READY not in result.output


@pytest.mark.parametrize("counts", [False, True], ids=["rows alone", "transactions are counted"])
def test_a_compressed_transaction_is_a_warning_while_the_connector_runs_and_refused_behind_its_end(
    stage: Stage, counts: bool
) -> None:
    stage.written(f"CREATE TABLE {stage.table} (id INT PRIMARY KEY)", "SET SESSION binlog_transaction_compression = ON")
    insert = f"INSERT INTO {stage.table} VALUES"
    offset, events = stage.written("BEGIN", f"{insert} (1)", f"{insert} (2)", "COMMIT")
    (payload,) = (pos for kind, pos in events if kind == "Transaction_payload")
    stage.topic.envelope("c", "", offset.file, payload)

    more = {"provide.transaction.metadata": "true"} if counts else {}
    with connect_rest([["RUNNING", "RUNNING"], ["STOPPED"]]) as (address, _):
        result = stage.run(offset, "--wait", "--rest", address, more=more)

    end = "only behind a heartbeat" if counts else "now"
    before, ready, after = words_of(result).partition(f"Ready. Stop the connector {end}")
    assert ready, result.output
    assert "As of now the take-over is refused: the last record of partition" in before
    assert ("set heartbeat.interval.ms=1000" in before) == counts
    assert ("A clean stop changes that" in before) == (not counts)
    assert "compressed transaction" in after
    assert "set heartbeat.interval.ms=1000" in after
    assert (result.exit_code, stage.is_written()) == (2, False)


@contextmanager
def arriving(topic: Topic, places: Sequence[tuple[str, int]]) -> Iterator[None]:
    """Write records to the topic, ten a second, until the block ends."""
    ended = Event()

    def write() -> None:
        while not ended.wait(0.1):
            for file, pos in places:
                topic.envelope("c", "", file, pos)

    writer = Thread(target=write, name="a connector")
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def test_records_that_still_arrive_are_a_connector_that_runs(stage: Stage) -> None:
    stage.written(f"CREATE TABLE {stage.table} (id INT PRIMARY KEY)")
    offset, events = stage.written(f"INSERT INTO {stage.table} VALUES (1)")
    place = (offset.file, places_of_rows(events)[0])
    stage.topic.envelope("c", "", *place)
    with arriving(stage.topic, [place]):
        assert arriving_records(stage.client, [stage.topic.name]) == f"records arrive in {stage.topic.name}"
        refused = stage.run(offset)
    assert (refused.exit_code, stage.is_written()) == (2, False), refused.output
    assert f"the connector shop still runs: records arrive in {stage.topic.name}" in words_of(refused)

    assert arriving_records(stage.client, [stage.topic.name], 1.0) == ""
    taken = stage.run(offset)
    assert (taken.exit_code, stage.is_written()) == (0, True), taken.output
