"""The command line: a user's mistake is told in words with exit code 2, never by a stack trace."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from incsnap.cli.main import commands
from signals.channels.file import SignalFile

_JOB = """
database.hostname=127.0.0.1
database.port=1
database.user=cdc
connect.timeout.ms=1000
topic.prefix=shop
bootstrap.servers=127.0.0.1:1
checkpoint.location={folder}/checkpoint
snapshot.mode=no_data
table.include.list=a.b
signal.enabled.channels=file
signal.file={folder}/signals.txt
"""


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` starts Spark before it asks the servers; what is tried here ends before Spark is used."""
    monkeypatch.setattr("incsnap.pipeline.starting.starting", lambda settings: nullcontext())
    monkeypatch.setattr("incsnap.pipeline.worker_python.leave_pandas_out", lambda: None)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    file = tmp_path / "job.properties"
    file.write_text(_JOB.format(folder=tmp_path))
    return file


def _run(*arguments: str) -> Result:
    result = CliRunner().invoke(commands, ["--log-level", "error", *arguments])
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.mark.parametrize("command", [["check"], ["run"], ["status"], ["signal", "pause-snapshot"]])
def test_wrong_settings_are_listed_with_exit_code_2(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "job.properties"
    file.write_text("database.port=x\n")
    result = _run(command[0], str(file), *command[1:])
    assert result.exit_code == 2
    for part in ("database.port: 'x' is not", "topic.prefix: missing", "bootstrap.servers: missing", "→"):
        assert part in result.output


def test_the_help_tells_of_every_command_what_the_command_says_of_itself() -> None:
    help_page = " ".join(_run("--help").output.split())
    context = click.Context(commands)
    names = commands.list_commands(context)
    assert names == ["check", "config", "demo", "run", "signal", "status"]
    for name in names:
        command = commands.get_command(context, name)
        assert command is not None
        said = command.get_short_help_str(limit=100).removesuffix(".")
        assert f" {name} {said}." in help_page


def test_the_help_waits_for_no_library() -> None:
    program = """
import sys
from click.testing import CliRunner
from incsnap.cli.main import commands
assert CliRunner().invoke(commands, ["--help"]).exit_code == 0
print(*sorted({"confluent_kafka", "numpy", "pyarrow", "pydantic", "pymysql", "pyspark", "rich"} & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.split() == []


def test_a_file_that_does_not_exist_is_named_with_exit_code_2() -> None:
    result = _run("run", "/nowhere/job.properties")
    assert result.exit_code == 2
    assert "/nowhere/job.properties cannot be read" in result.output


@pytest.mark.parametrize("command", ["check", "run"])
def test_servers_that_do_not_answer_are_findings_with_exit_code_2(
    command: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kafka's own check takes ten seconds to give a silent broker up.
    monkeypatch.setattr("incsnap.cli.check.cluster_check", lambda *rest: [("Kafka does not answer", "Start it.")])
    result = _run(command, str(job))
    assert result.exit_code == 2
    assert "MySQL at 127.0.0.1:1 does not answer" in result.output
    assert "Kafka does not answer" in result.output


def test_a_signal_is_sent_by_the_channel_the_job_listens_to(job: Path, tmp_path: Path) -> None:
    result = _run("signal", str(job), "execute-snapshot", "--table", "a.b", "--condition", "x > 1", "--id", "mine")
    assert result.exit_code == 0
    (record,) = SignalFile(tmp_path / "signals.txt").poll(None).records
    assert (record.id, record.type) == ("mine", "execute-snapshot")
    assert record.data == {
        "type": "incremental",
        "data-collections": ["a.b"],
        "additional-conditions": [{"data-collection": "a.b", "filter": "x > 1"}],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["execute-snapshot"], "data-collections is missing"),
        (["execute-snapshot", "--table", "a.("], "not a regular expression"),
        (["execute-snapshot", "--table", "a.b", "--condition", "x > 1)"], "closed that was not opened"),
        (["log"], "message is missing"),
        (["pause-snapshot", "--channel", "kafka"], "does not listen to the channel kafka"),
    ],
)
def test_a_signal_the_job_would_ignore_is_not_sent(arguments: list[str], said: str, job: Path, tmp_path: Path) -> None:
    result = _run("signal", str(job), *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "signals.txt").exists()


def test_a_table_that_is_not_captured_is_warned_about(job: Path) -> None:
    result = _run("signal", str(job), "execute-snapshot", "--table", "a.other")
    assert result.exit_code == 0
    assert "a.other is left out" in result.output


def test_status_of_a_job_that_never_ran_says_so(job: Path) -> None:
    result = _run("status", str(job))
    assert result.exit_code == 0
    assert "No batch has been written yet" in result.output


def test_a_checkpoint_of_something_else_is_refused(job: Path, tmp_path: Path) -> None:
    for folder in ("commits", "offsets"):
        (tmp_path / "checkpoint/spark" / folder).mkdir(parents=True)
    (tmp_path / "checkpoint/spark/commits/3").write_text("v1\n{}")
    (tmp_path / "checkpoint/spark/offsets/3").write_text('v1\n{}\n{"topic": {"0": 1}}')
    result = _run("status", str(job))
    assert result.exit_code == 1
    assert "not an offset of incsnap" in result.output
