"""What `incsnap verify` says of a comparison that was stopped or had nothing to compare, and what Ctrl-C does to a
question. Nothing is compared here."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from py4j.protocol import Py4JNetworkError
from pymysql.err import OperationalError

from incsnap.cli import interrupts
from incsnap.cli.main import commands
from incsnap.config.settings import Settings
from incsnap.verify.allowance import VerificationStopped
from incsnap.verify.kept_sides import KeptSides, kept_folder
from incsnap.verify.kinds import MISSING, OF_HISTORY, UNVERIFIABLE
from incsnap.verify.live_job import NoLiveJob
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.verification import Choice, Repair
from tests.support.properties import NEEDED

#: What a comparison does, instead of reading.
Comparison = Callable[[Choice], list[TableReport]]


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A function that runs the command with a comparison, for a file of a job and a file of a worker."""
    session = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr(
        "incsnap.spark.launch.startup.launched", lambda settings: nullcontext(SimpleNamespace(session=lambda: session))
    )
    monkeypatch.setattr("incsnap.spark.worker_python.leave_pandas_out", lambda: None)
    monkeypatch.setattr("os.umask", lambda mask: mask)
    monkeypatch.setenv("INCSNAP_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    job = {**NEEDED, "signal.data.collection": "shop.signals"}
    Path("a.properties").write_text("".join(f"{name}={text}\n" for name, text in job.items()))
    Path("worker.properties").write_text("bootstrap.servers=k:9092\n")

    def verify_tables(
        comparison: Comparison, spark: object, settings: object, choice: Choice, repair: Repair | None
    ) -> list[TableReport]:
        reports = comparison(choice)
        if repair is not None:
            repair(reports, "server")
        return reports

    def run(comparison: Comparison, *options: str) -> Result:
        monkeypatch.setattr("incsnap.verify.verification.verify_tables", partial(verify_tables, comparison))
        arguments = ["verify", "a.properties", "--worker", "worker.properties", *options]
        return CliRunner().invoke(commands, ["--log-level", "error", *arguments])

    return run


@pytest.mark.parametrize(
    "error", [OperationalError(2013, "Lost connection to MySQL"), Py4JNetworkError("no JVM\nat java"), OSError("full")]
)
def test_a_comparison_that_fails_is_no_answer(verified: Callable[..., Result], error: Exception) -> None:
    def failing(choice: Choice) -> list[TableReport]:
        raise error

    result = verified(failing)

    assert result.exit_code == 2
    assert f"The comparison failed: {type(error).__name__}: " in result.stderr
    assert "java" not in result.stderr
    assert "Traceback" not in result.output


def test_differences_that_cannot_be_written_are_no_answer(verified: Callable[..., Result]) -> None:
    Path("taken").write_text("")

    result = verified(lambda choice: [TableReport("d.t", "p.d.t")], "--differences", "taken/below")

    assert result.exit_code == 2


def stopped(choice: Choice) -> list[TableReport]:
    raise VerificationStopped


def test_a_stopped_comparison_names_the_whole_command_that_goes_on(verified: Callable[..., Result]) -> None:
    def stopped_midway(choice: Choice) -> list[TableReport]:
        assert choice.folder is not None
        KeptSides.new(choice.folder, "compared")
        raise VerificationStopped

    result = verified(stopped_midway, "--table", "d.t", "--sample", "1/7")

    command = "incsnap verify a.properties --worker worker.properties --table d.t --sample 1/7 --resume"
    assert result.exit_code == 2
    assert f"To continue: {command}\n" in result.stderr


def test_nothing_is_resumed_where_nothing_is_kept(verified: Callable[..., Result]) -> None:
    result = verified(stopped)

    assert result.exit_code == 2
    assert "--resume" not in result.stderr
    assert "To compare again: incsnap verify a.properties --worker worker.properties\n" in result.stderr


def interrupted_in_spark() -> None:
    """Do what Spark's own handler of Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("options", [(), ("--resume",)])
@pytest.mark.parametrize(
    ("interrupt", "step"),
    [
        *((partial(signal.raise_signal, signal.SIGINT), step) for step in ("settings", "JVM", "session")),
        *((partial(signal.raise_signal, signal.SIGTERM), step) for step in ("settings", "JVM", "session")),
        (interrupted_in_spark, "session"),
    ],
)
def test_a_signal_during_the_start_stops_before_anything_is_compared(
    verified: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    interrupt: Callable[[], None],
    step: str,
    options: tuple[str, ...],
) -> None:
    # The default action of SIGTERM would end the tests.
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}

    def reached(now: str) -> None:
        if now == step:
            interrupt()

    def session() -> SimpleNamespace:
        reached("session")
        return SimpleNamespace(stop=lambda: None)

    def launched(settings: Settings) -> nullcontext[SimpleNamespace]:
        reached("JVM")
        KeptSides.new(kept_folder(settings, ("d.t",), ""), "compared")
        return nullcontext(SimpleNamespace(session=session))

    def offsets(*given: object) -> None:
        reached("settings")

    monkeypatch.setattr("incsnap.spark.launch.startup.launched", launched)
    monkeypatch.setattr("incsnap.verify.evidence.connector_offsets", offsets)
    try:
        result = verified(lambda choice: pytest.fail("It compares."), "--table", "d.t", *options)
        handlers = [signal.getsignal(number) for number in before]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert result.exit_code == 2
    assert "Stopped. " in result.stderr
    command = "incsnap verify a.properties --worker worker.properties --table d.t --resume"
    assert f"To continue: {command}\n" in result.stderr
    assert handlers == [signal.default_int_handler] * 2


@pytest.mark.parametrize(
    ("reports", "options", "code"),
    [
        ([], [], 2),
        ([TableReport("shop.signals", "p")], [], 2),
        ([TableReport("shop.signals", "p")], ["--table", "shop.signals"], 0),
        ([TableReport("shop.signals", "p"), TableReport("shop.t", "p.t")], [], 0),
    ],
)
def test_a_command_that_compares_no_table_does_not_say_equal(
    verified: Callable[..., Result], reports: list[TableReport], options: list[str], code: int
) -> None:
    result = verified(lambda choice: reports, *options)

    assert result.exit_code == code
    assert ("table.include.list" in result.stderr) is (code == 2)


def test_the_next_command_has_the_worker_and_the_sample(verified: Callable[..., Result]) -> None:
    report = TableReport("d.t", "p.d.t", 3, differences=[Difference(b'{"id":1}', UNVERIFIABLE)])

    result = verified(lambda choice: [report], "--sample", "1/7")

    command = "incsnap verify a.properties --worker worker.properties --table d.t --sample 1/7 "
    assert f"Next: {command}" in result.stdout


# -- exit codes


@pytest.mark.parametrize("kind", OF_HISTORY)
@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_faults_of_the_history_alone_are_named_and_count_only_if_strict(
    verified: Callable[..., Result], kind: str, options: tuple[str, ...], code: int
) -> None:
    report = TableReport("d.t", "p.d.t", 3)
    setattr(report, kind, 2)

    result = verified(lambda choice: [report], *options)

    assert result.exit_code == code
    assert "d.t: equal." in result.stdout
    assert f"In the topic: 2 {kind}" in result.stdout
    assert "Next:" not in result.stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 2), (("--strict",), 2), (("--allow-unverifiable",), 0), (("--strict", "--allow-unverifiable"), 0)],
)
def test_unverifiable_keys_are_no_answer_unless_they_are_allowed(
    verified: Callable[..., Result], options: tuple[str, ...], code: int
) -> None:
    report = TableReport("d.t", "p.d.t", 3, differences=[Difference(b'{"id":1}', UNVERIFIABLE)])

    assert verified(lambda choice: [report], *options).exit_code == code


# -- the number of keys that are repaired


def repaired(monkeypatch: pytest.MonkeyPatch, verified: Callable[..., Result], keys: int, *options: str) -> Result:
    """Return the end of a command that repairs so many keys. No job is there."""

    def no_way(*given: object) -> None:
        raise NoLiveJob("No job is there", "Start one.")

    monkeypatch.setattr("incsnap.verify.signal_way.SignalWay", no_way)
    log = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr("incsnap.kafka.announcement_log.AnnouncementLog", lambda *given: log)
    report = TableReport("d.t", "p.d.t", differences=[Difference(b'{"id":%d}' % key, MISSING) for key in range(keys)])
    return verified(lambda choice: [report], "--repair", "--yes", "--differences", "found", *options)


@pytest.mark.parametrize(
    ("keys", "options", "bound"), [(3, ("--at-most", "2"), "2"), (1_001, (), "1,000"), (7, ("--at-most", "1"), "1")]
)
def test_more_keys_than_at_most_are_refused_and_written_down(
    keys: int, options: tuple[str, ...], bound: str, monkeypatch: pytest.MonkeyPatch, verified: Callable[..., Result]
) -> None:
    result = repaired(monkeypatch, verified, keys, *options)

    assert result.exit_code == 1
    shown = " ".join(result.stderr.split())
    assert f"{keys:,} keys differ, more than --at-most {bound}. " in shown
    assert "Nothing was sent. The keys are in found" in shown
    assert f"repeat with --at-most {keys}." in shown
    assert "No job is there" not in shown
    assert len(Path("found/d.t.keys.jsonl").read_text().splitlines()) == keys


@pytest.mark.parametrize(("keys", "options"), [(2, ("--at-most", "2")), (1_000, ()), (1_001, ("--at-most", "1001"))])
def test_as_many_keys_as_at_most_are_not_refused_for_their_number(
    keys: int, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, verified: Callable[..., Result]
) -> None:
    result = repaired(monkeypatch, verified, keys, *options)

    assert "No job is there. Nothing was sent" in " ".join(result.stderr.split())
    assert result.exit_code == 1


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_at_most_is_a_positive_number(number: str, verified: Callable[..., Result]) -> None:
    result = verified(stopped, "--repair", "--yes", "--at-most", number)

    assert result.exit_code == 2
    assert "--at-most" in result.stderr


# -- the question


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[int], object]) -> Iterator[None]:
    """Let a person do `actions` at a question, one every 0.2 s. Each gets the number of the file that types."""
    reading, typing = os.pipe()

    def act() -> None:
        for action in actions:
            time.sleep(0.2)
            action(typing)

    person = threading.Thread(target=act, daemon=True)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        person.start()
        yield
        person.join()
    os.close(typing)


def answer_yes(typing: int) -> None:
    os.write(typing, b"y\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_question_means_no_and_a_later_yes_is_not_read(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping = threading.Event()
    before = signal.getsignal(number)
    with interrupts.noted(stopping):
        within = signal.getsignal(number)
        with terminal(monkeypatch, lambda typing: os.kill(os.getpid(), number), answer_yes):
            assert not interrupts.confirmed("Send?")
        assert signal.getsignal(number) is within
    assert signal.getsignal(number) is before


def test_a_yes_is_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, answer_yes):
        assert interrupts.confirmed("Send?")
