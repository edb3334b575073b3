"""A take-over of a connector that runs: what is checked before its end, and what counts as its end."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from unittest.mock import Mock, patch

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaError, KafkaException

from incsnap.checkpoint.taken_over import TakenOver
from incsnap.cli.main import commands
from incsnap.cli.takeover import _await_end, _Running
from incsnap.config.settings import Settings
from incsnap.envelope.seam import PartitionEnd, RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.takeover import connector_state
from incsnap.takeover.connect_rest import NoAnswer
from incsnap.takeover.java_writing import write_map
from incsnap.takeover.join import Joined
from incsnap.takeover.offset_place import STOP_CLEANLY
from incsnap.takeover.partitioners import refuse_partitioner
from incsnap.takeover.written_records import TOO_MANY_KEYLESS, WrittenRecords
from lab.running_job import write_properties
from tests.support.connect_rest import connect_rest
from tests.support.job_settings import loaded_with
from tests.support.properties import QUIET

_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_RUNNING, _STOPPED = ["RUNNING", "RUNNING"], ["STOPPED"]
_FOUND = Joined(TakenOver("shop", "", Seam(_UUID, RecordPlace(1, 4))), ("The place was found.",), ("rows come twice",))
_PURGED = ConfigError("the binlog no longer holds the offset", "Start a job without a take-over.")


@pytest.fixture
def settings() -> Settings:
    return loaded_with(topic__prefix="shop").settings


@pytest.mark.parametrize("is_given", [True, False], ids=["--rest", "the worker's file"])
def test_an_error_of_rest_is_no_end_and_rest_is_asked_again(settings: Settings, is_given: bool) -> None:
    with connect_rest([503, ["RUNNING", "RUNNING"], 500, ["STOPPED"]]) as (address, asked):
        seen = _Running("it runs", by_connect=True, rest=address)
        _await_end(settings, address if is_given else None, {"listeners": address}, "shop", Event(), seen)

    assert len(asked) == 4


def test_topics_are_watched_if_no_worker_listens_any_more(settings: Settings) -> None:
    with connect_rest([404]) as (address, _):
        pass
    with (
        patch.object(connector_state, "arriving_records", side_effect=["records arrive", ""]) as watched,
        patch("incsnap.mysql.session.connect"),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        _await_end(settings, address, {}, "shop", Event(), _Running("it runs", by_connect=True, rest=address))

    assert watched.call_count == 2


def test_topics_are_watched_if_the_address_leads_nowhere_and_the_group_is_empty(settings: Settings) -> None:
    alive, empty = (Mock(id="g", members=members, error=None) for members in ([1], []))
    denied = Mock(id="g", members=[], error="not allowed")
    groups = Mock(side_effect=[[alive], [], [denied], KafkaException(KafkaError(KafkaError._TRANSPORT)), [empty]])
    with (
        patch.object(connector_state, "running_by_rest", side_effect=NoAnswer("no such host")),
        patch.object(connector_state, "admin_client", return_value=Mock(list_groups=groups)),
        patch.object(connector_state, "arriving_records", return_value="") as watched,
        patch("incsnap.mysql.session.connect"),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        seen = _Running("it runs", by_connect=True, rest="http://gone:8083")
        _await_end(settings, "http://gone:8083", {"group.id": "g"}, "shop", Event(), seen)

    assert (groups.call_count, watched.call_count) == (5, 1)


@dataclass
class Taking:
    """A connector's file and its offset, and what the search for the place answers: one of `answers` each time."""

    folder: Path  #: folder of all files
    answers: list[Joined | ConfigError] = field(default_factory=lambda: [_FOUND])
    was_written: list[bool] = field(default_factory=list)  #: whether the checkpoint had the place at each search
    where: ConfigError | None = None  #: error of the search for the offset's place in the binlog
    is_of_worker: bool = False  #: whether the file with the offset is that of a standalone worker
    has_signal_table: bool = True
    is_printed_again: bool = False  #: whether a person writes the file again while the command waits

    @property
    def is_written(self) -> bool:
        """Whether the checkpoint has the place."""
        return (self.folder / "checkpoint" / "incsnap" / "taken-over.json").exists()

    def join(self, *_: object) -> Joined:
        """Stand for `join`."""
        if self.is_printed_again:
            os.utime(self.folder / "offsets.json", (1, len(self.was_written) + 1))
        self.was_written.append(self.is_written)
        answer = self.answers[min(len(self.was_written), len(self.answers)) - 1]
        if isinstance(answer, ConfigError):
            raise answer
        return answer

    def run(self, address: str, *options: str) -> Result:
        """Run `incsnap takeover` with Kafka Connect at `address`; "": without --rest."""
        properties = {**QUIET, "name": "shop", "checkpoint.location": str(self.folder / "checkpoint")}
        if self.has_signal_table:
            properties |= {"signal.enabled.channels": "source", "signal.data.collection": "shop.signals"}
        file, offsets = write_properties(self.folder / "shop.properties", properties), self.folder / "offsets.json"
        offset = {"file": "binlog.000001", "pos": 4, "gtids": f"{_UUID}:1-5"}
        offsets.write_text(json.dumps({"offsets": [{"partition": {"server": "shop"}, "offset": offset}]}))
        if self.is_of_worker:
            offsets.write_bytes(write_map({b'["shop",{"server":"shop"}]': json.dumps(offset).encode()}))
        with (
            patch("incsnap.takeover.join.join", self.join),
            patch("incsnap.mysql.session.connect"),
            patch("incsnap.takeover.offset_place.place_of", side_effect=self.where),
        ):
            rest = ["--rest", address] if address else []
            command = ["takeover", str(file), "--offsets", str(offsets), *rest, *options]
            return CliRunner().invoke(commands, command)


@pytest.fixture
def taking(tmp_path: Path) -> Taking:
    return Taking(tmp_path)


def test_a_running_connector_is_refused_without_waiting(taking: Taking) -> None:
    with connect_rest([_RUNNING]) as (address, _):
        result = taking.run(address)

    assert result.exit_code == 2, result.output
    assert "the connector shop still runs" in result.stderr
    assert "wait for it with --wait" in " ".join(result.stderr.split())
    assert not taking.is_written


def test_what_is_found_is_said_before_the_connector_is_to_stop_and_written_after_its_end(taking: Taking) -> None:
    later = Joined(_FOUND.place, ("The later place was found.",))
    taking.answers = [_FOUND, later]
    with connect_rest([_RUNNING, _RUNNING, _STOPPED]) as (address, asked):
        result = taking.run(address, "--wait")

    assert result.exit_code == 0, result.output
    before, _, after = result.output.partition("Ready. Stop the connector now")
    assert "as of now" in before
    assert "The place was found." in before
    assert "rows come twice" in before
    assert "The later place was found." in after
    assert (len(asked), taking.was_written, taking.is_written) == (3, [False, False], True)


@pytest.mark.parametrize(
    "kind", ["printed before", "printed again", "worker's file", "connector had ended", "no signals"]
)
def test_an_offset_that_was_printed_before_the_connectors_end_is_a_warning(taking: Taking, kind: str) -> None:
    states = [_STOPPED] if kind == "connector had ended" else [_RUNNING, _RUNNING, _STOPPED]
    taking.is_printed_again, taking.is_of_worker = kind == "printed again", kind == "worker's file"
    taking.has_signal_table = kind != "no signals"
    with (
        connect_rest(states) as (address, _),
        patch.object(connector_state, "arriving_records", return_value=""),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        result = taking.run(address, "--wait")

    assert result.exit_code == 0, result.output
    assert ("was not written again" in " ".join(result.stderr.split())) == (kind == "printed before")
    assert taking.is_written


def test_what_a_stop_does_not_cure_is_refused_before_the_connector_is_to_stop(taking: Taking) -> None:
    taking.answers = [_PURGED]
    with connect_rest([_RUNNING]) as (address, asked):
        result = taking.run(address, "--wait")

    assert result.exit_code == 2, result.output
    assert "the binlog no longer holds" in result.stderr
    assert "Ready" not in result.output
    assert (len(asked), taking.is_written) == (1, False)


def refusal_of_a_partitioner() -> ConfigError:
    """Return the error about records behind the offset in partitions that their keys do not choose."""
    behind = WrittenRecords(RecordPlace(1, 4), ends=[PartitionEnd("all", 0, RecordPlace(1, 400))])
    with pytest.raises(ConfigError) as refused:
        refuse_partitioner("partitioner.class=x", behind, {"all": (1, 0)}, STOP_CLEANLY)
    return refused.value


@pytest.mark.parametrize(
    "refusal", [refusal_of_a_partitioner(), ConfigError("more than 1,000,000 records without a key", TOO_MANY_KEYLESS)]
)
def test_what_a_clean_stop_cures_is_a_warning_while_the_connector_runs(taking: Taking, refusal: ConfigError) -> None:
    taking.answers = [refusal, _FOUND]
    with connect_rest([_RUNNING, _STOPPED]) as (address, _):
        result = taking.run(address, "--wait")

    assert result.exit_code == 0, result.output
    before, _, after = result.output.partition("Ready. Stop the connector now")
    assert refusal.message in " ".join(before.split())
    assert "A clean stop changes that" in " ".join(before.split())
    assert "The place was found." in after
    assert taking.is_written


def test_an_offset_of_another_server_is_refused_before_the_connector_is_to_stop(taking: Taking) -> None:
    taking.answers = [ConfigError("the binlog of this server does not have binlog.000001:4", STOP_CLEANLY)]
    taking.where = ConfigError("the connector read another server", STOP_CLEANLY)
    with connect_rest([_RUNNING]) as (address, _):
        result = taking.run(address, "--wait")

    assert result.exit_code == 2, result.output
    assert "the connector read another server" in result.stderr
    assert "Ready" not in result.output


@pytest.fixture
def dead_address() -> str:
    """Return an address of Kafka Connect at which no worker listens any more."""
    with connect_rest([404]) as (address, _):
        return address


@pytest.mark.parametrize("options", [(), ("--wait",)], ids=["alone", "--wait"])
def test_a_worker_that_was_killed_before_runs_no_connector_and_its_address_is_named(
    taking: Taking, dead_address: str, options: tuple[str, ...]
) -> None:
    with (
        patch.object(connector_state, "arriving_records", return_value="") as watched,
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        result = taking.run(dead_address, *options)

    assert result.exit_code == 0, result.output
    assert f"Kafka Connect at {dead_address} does not answer" in " ".join(result.stderr.split())
    assert "No worker listens there" in " ".join(result.stderr.split())
    assert (watched.call_count, taking.is_written) == (1, True)


def test_a_connector_that_connect_does_not_have_is_named_and_its_topics_are_watched(taking: Taking) -> None:
    with (
        connect_rest([404]) as (address, _),
        patch.object(connector_state, "arriving_records", side_effect=["records arrive", ""]),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        refused, result = taking.run(address), taking.run(address)

    assert (refused.exit_code, result.exit_code, taking.is_written) == (2, 0, True), result.output
    for each in (refused, result):
        words = " ".join(each.stderr.split())
        assert f"Kafka Connect at {address} has no connector shop" in words
        assert "correct `name`" in words
        assert "with --rest" in words


@pytest.mark.parametrize("kind", ["no worker's file", "a worker that is not understood", "a worker that has ended"])
def test_a_connector_of_which_nothing_but_the_topics_tells_is_a_warning(
    taking: Taking, dead_address: str, kind: str
) -> None:
    worker = taking.folder / "worker.properties"
    with (
        connect_rest([401]) as (protected, _),
        patch.object(connector_state, "_LISTENERS", protected if kind == "no worker's file" else dead_address),
        patch.object(connector_state, "arriving_records", return_value=""),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        address = protected if kind == "a worker that is not understood" else dead_address
        worker.write_text(f"bootstrap.servers=k:9092\nlisteners={address}\n")
        result = taking.run("", *([] if kind == "no worker's file" else ["--worker", str(worker)]))

    assert result.exit_code == 0, result.output
    is_unseen = "So only records that arrive show whether the connector shop runs" in " ".join(result.stderr.split())
    assert is_unseen == (kind != "a worker that has ended")


def test_records_that_arrive_count_if_no_worker_listens(taking: Taking, dead_address: str) -> None:
    with (
        patch.object(connector_state, "arriving_records", side_effect=["records arrive", "records arrive", ""]),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        refused = taking.run(dead_address)
        assert (refused.exit_code, taking.is_written) == (2, False), refused.output
        assert "the connector shop still runs: records arrive" in " ".join(refused.stderr.split())

        assert taking.run(dead_address, "--wait").exit_code == 0
        assert taking.is_written


@pytest.mark.parametrize("options", [(), ("--wait",)], ids=["alone", "--wait"])
def test_a_dry_run_shows_what_is_found_while_the_connector_runs_and_ends(
    taking: Taking, options: tuple[str, ...]
) -> None:
    with connect_rest([_RUNNING]) as (address, asked):
        result = taking.run(address, "--dry-run", *options)

    assert result.exit_code == 0, result.output
    assert "The connector still runs" in result.stdout
    assert "The place was found." in result.stdout
    assert "rows come twice" in result.stderr
    assert "Nothing was written" in result.stdout
    assert (len(asked), taking.is_written) == (1, False)


def test_a_dry_run_behind_the_connectors_end_writes_nothing(taking: Taking) -> None:
    with (
        connect_rest([_STOPPED]) as (address, _),
        patch.object(connector_state, "arriving_records", return_value=""),
        patch("incsnap.mysql.catalog.tables", return_value=()),
    ):
        result = taking.run(address, "--dry-run")
        assert (result.exit_code, taking.is_written) == (0, False), result.output
        assert "The connector still runs" not in result.output

        assert taking.run(address).exit_code == 0
        assert taking.is_written


def test_a_refusal_with_run_comes_before_spark_starts(taking: Taking) -> None:
    taking.answers = [_PURGED]
    with connect_rest([_RUNNING]) as (address, _), patch("incsnap.cli.run.run_job") as job:
        result = taking.run(address, "--wait", "--run")

    assert (result.exit_code, job.called) == (2, False), result.output
