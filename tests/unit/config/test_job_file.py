"""Settings that the command line gives beside a job's file."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from incsnap.cli.main import commands
from incsnap.config.documents import read_document
from incsnap.config.job_file import JobFile, command_line
from incsnap.config.load import checkpoint_of, given_names, read
from incsnap.config.older_names import FIRST_DEFAULTS
from lab.running_job import write_properties

_CONNECTOR = {
    "name": "shop",
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.hostname": "127.0.0.1",
    "database.user": "cdc",
    "table.include.list": "a.b",
    "topic.prefix": "shop",
    "signal.enabled.channels": "file",
}


@pytest.fixture
def connector(tmp_path: Path) -> str:
    """Return the path of a connector's file, which has no brokers and no checkpoint."""
    own = {**_CONNECTOR, "signal.file": str(tmp_path / "signals.txt")}
    return str(write_properties(tmp_path / "connector.properties", own))


def test_the_command_line_gives_what_a_connectors_file_lacks(connector: str, tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    file = JobFile(connector, {"bootstrap.servers": "kafka:9092", "checkpoint.location": place})

    settings = read(file).settings

    assert (settings.kafka.bootstrap_servers, settings.checkpoint_location) == ("kafka:9092", place)
    assert checkpoint_of(file)[0] == place
    assert given_names(file, None)[0]["bootstrap.servers"] == "kafka:9092"


def test_the_command_line_comes_before_the_file_and_before_the_worker(tmp_path: Path) -> None:
    own = {**_CONNECTOR, "bootstrap.servers": "own:1", "checkpoint.location": "/own"}
    file = JobFile(
        str(write_properties(tmp_path / "connector.properties", own)),
        {"bootstrap.servers": "given:1", "checkpoint.location": "/given"},
    )
    worker = write_properties(tmp_path / "worker.properties", {"bootstrap.servers": "worker:1"})

    settings = read(file, worker).settings

    assert (settings.kafka.bootstrap_servers, settings.checkpoint_location) == ("given:1", "/given")


@pytest.mark.parametrize("command", [["config"], ["signal", "pause-snapshot"], ["status"]], ids=lambda each: each[0])
def test_a_command_takes_both_options(command: list[str], connector: str, tmp_path: Path) -> None:
    place = str(tmp_path / "state")
    options = ["--bootstrap-servers", "127.0.0.1:1", "--checkpoint-location", place]

    result = CliRunner().invoke(commands, [command[0], connector, *command[1:], *options])

    assert {"config": "127.0.0.1:1", "signal": "Sent pause-snapshot", "status": place}[command[0]] in result.output


@pytest.mark.parametrize("option", ["--bootstrap-servers", "--checkpoint-location"])
def test_an_empty_option_is_refused(option: str, connector: str) -> None:
    """A shell's variable that is not set would let the job begin again elsewhere."""
    result = CliRunner().invoke(commands, ["config", connector, option, " "])
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': it is empty" in result.output


def test_a_corrected_file_has_nothing_of_the_command_line(tmp_path: Path) -> None:
    old = {**_CONNECTOR, "database.server.name": _CONNECTOR["topic.prefix"]}
    del old["topic.prefix"]
    file = write_properties(tmp_path / "connector.properties", old)

    alone = CliRunner().invoke(commands, ["config", "--fix", str(file)])
    result = CliRunner().invoke(commands, ["config", "--fix", str(file), "--bootstrap-servers", "kafka:9092"])

    assert (alone.exit_code, result.exit_code) == (2, 0), result.output
    fixed = tmp_path / "fixed.properties"
    fixed.write_text(result.stdout)
    assert read_document(fixed) == _CONNECTOR | FIRST_DEFAULTS


def test_the_next_command_has_the_options_of_this_one() -> None:
    file = JobFile("a b.json", {"checkpoint.location": "/x"})
    assert command_line("run", file, "w") == "incsnap run 'a b.json' --checkpoint-location /x --worker w"
    assert command_line("verify", "a.json", None, "--table", "d.t") == "incsnap verify a.json --table d.t"
