"""The command line: a user's mistake is told in words with exit code 2, never by a stack trace."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from incsnap.checkpoint.files import Files
from incsnap.cli.main import commands
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.liveness import Liveness
from incsnap.monitoring.status import (
    FAILED,
    RUNNING,
    STOPPED,
    Failure,
    FinishedTable,
    JobStatus,
    KeyRange,
    SnapshotStatus,
    StreamStatus,
    TableStatus,
    dump,
)
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

_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Spark's start: `run` starts Spark before it asks the servers, but no test here uses Spark."""
    monkeypatch.setattr("incsnap.spark.launch.startup.launched", lambda settings: nullcontext())
    monkeypatch.setattr("incsnap.spark.worker_python.leave_pandas_out", lambda: None)


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


@pytest.mark.parametrize("command", [["check"], ["run"], ["signal", "pause-snapshot"]])
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
    assert names == [
        "check",
        "config",
        "hand-back",
        "package",
        "prepare",
        "run",
        "signal",
        "status",
        "takeover",
        "verify",
    ]
    for name in names:
        command = commands.get_command(context, name)
        assert command is not None
        short_help = command.get_short_help_str(limit=100).removesuffix(".")
        assert f" {name} {short_help}." in help_page


def test_the_help_waits_for_no_library() -> None:
    program = """
import sys
from click.testing import CliRunner
from incsnap.cli.main import commands
assert CliRunner().invoke(commands, ["--help"]).exit_code == 0
print(*sorted({"confluent_kafka", "numpy", "pyarrow", "pydantic", "pymysql", "pyspark", "rich"} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == []


def test_a_file_that_does_not_exist_is_named_with_exit_code_2() -> None:
    result = _run("run", "/nowhere/job.properties")
    assert result.exit_code == 2
    assert "/nowhere/job.properties cannot be read" in result.output


def test_a_repair_that_can_ask_nobody_is_refused_before_anything_is_compared(job: Path) -> None:
    result = _run("verify", str(job), "--repair")

    assert result.exit_code == 2
    assert "Add --yes" in result.stderr


def test_kafka_connect_is_not_asked_about_a_connector_without_a_name(job: Path, tmp_path: Path) -> None:
    offset = {"file": "binlog.000001", "pos": 4, "gtids": f"{_UUID}:1-5"}
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"offsets": [{"partition": {"server": "shop"}, "offset": offset}]}))
    result = _run("takeover", str(job), "--offsets", str(offsets), "--rest", "http://127.0.0.1:1")

    assert result.exit_code == 2
    assert "Add the line `name`" in " ".join(result.stderr.split())


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


def test_a_signal_topic_of_several_partitions_is_warned_of(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_text(job.read_text().replace("signal.enabled.channels=file", "signal.enabled.channels=kafka"))
    monkeypatch.setattr("incsnap.cli.check.cluster_check", lambda *rest: [])
    monkeypatch.setattr("incsnap.cli.check.partitions_of_signals", lambda *rest: 3)

    result = _run("check", str(job))
    assert "shop-signal has 3 partitions, and only signals in partition 0 are read" in " ".join(result.output.split())


def test_a_signal_topic_that_is_missing_is_warned_of(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_text(job.read_text().replace("signal.enabled.channels=file", "signal.enabled.channels=kafka"))
    monkeypatch.setattr("incsnap.cli.check.cluster_check", lambda *rest: [])
    output = {}
    for count in (0, None):
        monkeypatch.setattr("incsnap.cli.check.partitions_of_signals", lambda *rest, count=count: count)
        output[count] = " ".join(_run("check", str(job)).output.split())

    assert "signal.kafka.topic: shop-signal does not exist" in output[0]
    assert "shop-signal" not in output[None]


def test_a_throttle_is_sent_with_the_limits_that_are_named(job: Path, tmp_path: Path) -> None:
    result = _run("signal", str(job), "incsnap-throttle", "--limit", "threads-running", "40", "--rows-per-second", "0")

    assert result.exit_code == 0, result.output
    (record,) = SignalFile(tmp_path / "signals.txt").poll(None).records
    assert record.data == {"threads-running": 40, "rows-per-second": 0}


@pytest.mark.parametrize(
    ("options", "data"),
    [
        (["--gtid-set", f"{_UUID}:1-9"], {"gtid_set": f"{_UUID}:1-9"}),
        (["--binlog", "binlog.000012", "157"], {"binlog_filename": "binlog.000012", "binlog_position": 157}),
    ],
    ids=["set", "file"],
)
def test_a_place_in_the_binlog_is_sent_in_the_words_of_debezium(
    job: Path, tmp_path: Path, options: list[str], data: dict[str, object]
) -> None:
    result = _run("signal", str(job), "set-binlog-position", *options)

    assert result.exit_code == 0, result.output
    (record,) = SignalFile(tmp_path / "signals.txt").poll(None).records
    assert record.data == data


def test_a_lag_of_replicas_that_nobody_has_named_is_not_sent(job: Path, tmp_path: Path) -> None:
    result = _run("signal", str(job), "incsnap-throttle", "--limit", "replica-lag-ms", "100")

    assert result.exit_code == 2
    assert "incsnap.snapshot.throttle.replicas=host:port" in " ".join(result.output.split())
    assert not (tmp_path / "signals.txt").exists()


@pytest.mark.parametrize(("option", "field"), [("--keys", "incsnap-keys"), ("--from", "incsnap-from")])
def test_a_signal_keeps_the_digits_of_numbers(job: Path, tmp_path: Path, option: str, field: str) -> None:
    key = '{"n":12345678901234567890.1234567891}'
    value = f"[{key}]" if option == "--keys" else key
    result = _run("signal", str(job), "execute-snapshot", "--table", "a.b", option, value)
    assert result.exit_code == 0
    sent = json.loads((tmp_path / "signals.txt").read_text(), parse_float=Decimal)
    assert sent["data"][field] == json.loads(value, parse_float=Decimal)


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
    ("arguments", "reason"),
    [
        (["execute-snapshot"], "data-collections is missing"),
        (["execute-snapshot", "--table", "a.("], "not a regular expression"),
        (["execute-snapshot", "--table", "a.b", "--condition", "x > 1)"], "closed that was not opened"),
        (["log"], "message is missing"),
        (["pause-snapshot", "--channel", "kafka"], "does not listen to the channel kafka"),
    ],
)
def test_a_signal_the_job_would_ignore_is_not_sent(
    arguments: list[str], reason: str, job: Path, tmp_path: Path
) -> None:
    result = _run("signal", str(job), *arguments)
    assert result.exit_code == 2
    assert reason in result.output
    assert not (tmp_path / "signals.txt").exists()


def test_a_table_that_is_not_captured_is_warned_about(job: Path, tmp_path: Path) -> None:
    both = _run("signal", str(job), "execute-snapshot", "--table", "a.other", "--table", "a.b")
    assert both.exit_code == 0
    assert "a.other is left out" in both.output
    assert "not checked on MySQL" in both.output
    (tmp_path / "signals.txt").unlink()

    alone = _run("signal", str(job), "execute-snapshot", "--table", "a.other")
    assert alone.exit_code == 2
    assert "it names no table that can be read" in alone.output
    assert not (tmp_path / "signals.txt").exists()


def test_status_of_a_job_that_never_ran_says_so(job: Path) -> None:
    result = _run("status", str(job))
    assert result.exit_code == 1
    assert "No batch has been written yet" in result.output
    as_json = _run("status", str(job), "--json")
    assert (as_json.exit_code, as_json.output) == (1, "null\n")


def test_status_needs_the_place_of_the_checkpoint_and_no_password(job: Path, tmp_path: Path) -> None:
    job.write_text(
        job.read_text() + "\ndatabase.password=${env:NOT_IN_THIS_SHELL}\nincsnap.page.token=${env:NOR_THIS}\n"
    )
    assert "No batch has been written yet" in _run("status", str(job)).output
    placeless = tmp_path / "placeless.properties"
    placeless.write_text("database.port=x\n")
    result = _run("status", str(placeless))
    assert (result.exit_code, "topic.prefix: missing" in result.output) == (2, True)


def test_status_shows_what_failed_first(job: Path, tmp_path: Path) -> None:
    tables = [FinishedTable("shop.keyless", "s", "NO_PRIMARY_KEY", 0, 1)]
    tables += [FinishedTable(f"shop.t{number}", "s", "SUCCEEDED", 9, 2) for number in range(5)]
    _leaves(tmp_path, snapshot=SnapshotStatus(finished=tuple(tables)))
    shown = _run("status", str(job)).output
    named = [name for name in ("shop.keyless", "shop.t1", "shop.t2", "shop.t4") if name in shown]
    assert named == ["shop.keyless", "shop.t2", "shop.t4"]
    assert shown.index("shop.keyless") < shown.index("shop.t2")


def test_following_without_a_terminal_prints_a_line_each_second(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incsnap.cli.status._FOLLOW_SECONDS", 0.01)
    looks = iter([True, True, False])
    _leaves(tmp_path)
    monkeypatch.setattr(
        "incsnap.cli.status.liveness_of", lambda status, _: Liveness(next(looks, False), status.written_ms)
    )
    lines = _run("status", str(job), "--follow").output.splitlines()
    assert [line for line in lines if " running; Lag 0.063 s; 0 events/s" in line][1:], lines


def test_a_checkpoint_of_something_else_is_refused(job: Path, tmp_path: Path) -> None:
    for folder in ("commits", "offsets"):
        (tmp_path / "checkpoint/spark" / folder).mkdir(parents=True)
    (tmp_path / "checkpoint/spark/commits/3").write_text("v1\n{}")
    (tmp_path / "checkpoint/spark/offsets/3").write_text('v1\n{}\n{"topic": {"0": 1}}')
    result = _run("status", str(job))
    assert result.exit_code == 1
    assert "not an offset of incsnap" in result.output


def _leaves(tmp_path: Path, **changed: object) -> None:
    """A job of another machine left its status so."""
    now_ms = time.time_ns() // 1_000_000
    table = TableStatus(
        1,
        "shop.orders",
        "s",
        rows_done=500_000,
        rows_expected=2_000_000,
        rows_low=1_000_000,
        rows_high=4_000_000,
        rows_per_second=50_000.0,
        seconds_left=30.0,
        seconds_low=10.0,
        seconds_high=70.0,
        read_again=2,
        readings=3,
        lost_readings=1_657,
        quarantined=(KeyRange("26", "27"),),
    )
    made = JobStatus("0.1.0", "shop", "elsewhere", 1, now_ms - 60_000, RUNNING, now_ms - 60_000, now_ms, 1_000, now_ms)
    stream = StreamStatus(7, "binlog.000002", 1_234, "", lag_ms=63, lag_bytes=0, needs_file="binlog.000002")
    snapshot = SnapshotStatus(tables=(table,), windows_in_flight=3, waiting=2, waits_for="paused by a signal")
    status = replace(made, stream=stream, **{"snapshot": snapshot, **changed})  # type: ignore[arg-type]
    Files(str(tmp_path / "checkpoint/incsnap")).write(NAME, json.dumps(dump(status)).encode())


def test_status_shows_a_living_job_with_its_tables(job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path, failure=Failure("MySQL does not answer", "start it", 1))

    result = _run("status", str(job))

    assert result.exit_code == 0
    shown = " ".join(result.output.split())
    for part in (
        "shop running for",
        "0.063 s, 0 B of binlog behind the server",
        "1 being read, 2 waiting; 3 windows in flight that hold 0 rows; paused by a signal",
        "25 % 500,000 rows of about 2,000,000 (1,000,000 to 4,000,000), 50,000 rows/s, 30 s left (10 s to 1 min 10 s)",
        "2 ranges are read again, one of them 3 times so far",
        "1,657 readings of its chunks were lost and repeated",
        "given up (quarantine), keys (26, 27]",
        "MySQL does not answer",
        "(it has passed)",
    ):
        assert part in shown


def test_a_table_of_which_nobody_knows_the_size_has_neither_bar_nor_share(job: Path, tmp_path: Path) -> None:
    table = TableStatus(1, "shop.orders", "s", condition="a = 1", rows_done=5_000, rows_per_second=100.0)
    _leaves(tmp_path, snapshot=SnapshotStatus(tables=(table,), windows_in_flight=1))

    shown = [" ".join(line.split()) for line in _run("status", str(job)).output.splitlines()]

    assert shown[-1] == "shop.orders 5,000 rows, 100 rows/s"
    assert any("1 window in flight that holds 0 rows" in line for line in shown)


def test_status_of_a_checkpoint_that_cannot_be_read_says_so(job: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("a file, not a folder")

    result = _run("status", str(job))
    assert result.exit_code == 1
    assert "cannot be read: Not a directory" in result.output


def test_status_of_a_silent_job_says_since_when_it_is_dead_and_ends_with_1(job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path, written_ms=1_000, every_ms=1)

    result = _run("status", str(job))

    assert result.exit_code == 1
    assert "dead since 1970-01-01" in " ".join(result.output.split())


@pytest.mark.parametrize("renewed", [False, True])
def test_a_job_whose_process_is_not_here_is_looked_at_twice(
    renewed: bool, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines may share a name."""
    monkeypatch.setattr("incsnap.cli.status.is_gone", lambda _: True)
    _leaves(tmp_path)

    def sleep(seconds: float) -> None:
        if renewed:
            _leaves(tmp_path)

    monkeypatch.setattr(time, "sleep", sleep)

    assert _run("status", str(job)).exit_code == (0 if renewed else 1)


@pytest.mark.parametrize(("state", "code"), [(STOPPED, 0), (FAILED, 1)])
def test_status_of_a_job_that_has_ended_says_how(state: str, code: int, job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path, state=state, since_ms=1_000)

    # To follow what has ended is to look at it once.
    result = _run("status", str(job), "--follow")

    assert result.exit_code == code
    assert f"{state} since 1970-01-01" in " ".join(result.output.split())


def test_status_of_a_folder_has_a_line_for_each_job_the_worst_first(tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    paused = SnapshotStatus(paused=True, waiting=1)
    broken = SnapshotStatus(finished=(FinishedTable("shop.odd", "s", "NO_PRIMARY_KEY", 0, 1),))
    failure = Failure("MySQL at db:3306 does not answer", "start it", 1, 3)
    stream = StreamStatus(7, "binlog.000002", 1234, "", lag_ms=2_000)
    made = JobStatus("0.1.0", "", "elsewhere", 1, now_ms, RUNNING, now_ms, now_ms, 1_000, now_ms, stream)
    jobs: dict[str, dict[str, Any]] = {
        "a-well": {},
        "b-stopped": {"state": STOPPED},
        "c-paused": {"snapshot": paused},
        "d-table": {"snapshot": broken},
        "e-waits": {"state": "retrying", "failure": failure},
        "f-failed": {"state": FAILED, "failure": failure},
        "g-dead": {"written_ms": now_ms - 60_000, "every_ms": 1},
    }
    for name, changed in jobs.items():
        folder = tmp_path / "jobs" / name / "incsnap"
        folder.mkdir(parents=True)
        status = replace(made, topic_prefix=name, **changed)
        (folder / "status.json").write_text(json.dumps(dump(status)))

    result = _run("status", str(tmp_path))

    lines = result.output.splitlines()
    order = ["g-dead", "f-failed", "e-waits", "c-paused", "d-table", "a-well", "b-stopped"]
    assert [line.split()[0] for line in lines if line.split()[0] in order] == order
    shown = " ".join(result.output.split())
    assert "MySQL at db" in shown
    assert "shop.odd" in shown
    assert len(lines) == 7
    # The lag of a job that does not run is no present figure.
    assert [line.split()[0] for line in lines if "lag 2 s" in line] == ["c-paused", "d-table", "a-well"]
    assert result.exit_code == 1
    assert len(_run("status", str(tmp_path), "--json").output.splitlines()) == 7
    assert _run("status", str(tmp_path), "--follow").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert _run("status", str(tmp_path / "empty")).exit_code == 1


def test_old_figures_are_not_shown_as_present_ones(job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path, state=STOPPED)
    shown = " ".join(_run("status", str(job)).output.split())
    assert "0.063 s, 0 B of binlog behind the server, when the job was seen last" in shown
    assert "took 0 ms" not in shown


def test_status_for_programs_has_every_figure(job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path)

    status = json.loads(_run("status", str(job), "--json").output)

    assert (status["alive"], status["dead_since_ms"]) == (True, None)
    assert (status["format"], status["version"]) == ("incsnap-status", 1)
    assert status["snapshot"]["tables"][0]["rows_high"] == 4_000_000


def test_status_is_followed_until_the_job_ends(job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _leaves(tmp_path)
    states = iter([RUNNING, STOPPED])
    monkeypatch.setattr(time, "sleep", lambda _: _leaves(tmp_path, state=next(states)))

    lines = [json.loads(line) for line in _run("status", str(job), "--follow", "--json").output.splitlines()]

    assert [line["state"] for line in lines] == [RUNNING, RUNNING, STOPPED]


def test_status_needs_no_spark(job: Path, tmp_path: Path) -> None:
    _leaves(tmp_path)
    program = """
import sys
from click.testing import CliRunner
from incsnap.cli.main import commands
assert CliRunner().invoke(commands, ["status", sys.argv[1]]).exit_code == 0
print(*sorted({"confluent_kafka", "pyspark", "py4j", "prometheus_client"} & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, str(job)], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.split() == []
