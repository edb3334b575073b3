"""Tests of the repair: which keys are sent again, when nothing is sent, and what is waited for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ServerUnreachable
from incsnap.kafka.announcements import ALIVE_SECONDS, Announcement, StartFacts
from incsnap.planner.signal_commands import chosen_rows
from incsnap.snapshot.commands import ChosenRows
from incsnap.verify import signal_way
from incsnap.verify.allowance import Allowance, VerificationStopped
from incsnap.verify.kinds import EXTRA, KINDS, MISSING, NO_TOMBSTONE, UNVERIFIABLE, WRONG
from incsnap.verify.live_job import LiveJob, NoLiveJob
from incsnap.verify.repair import RepairRefused, TableRepair, repair, repair_of
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.signal_way import SignalWay, Waiting
from signals.channels.file import SignalFile
from signals.parse import parse
from signals.records import Signal
from signals.resolve import resolve
from tests.support.properties import NEEDED, QUIET


def differing(table: str, *kinds: str) -> TableReport:
    """Return the report of a table with a key of each of `kinds`."""
    keys = [Difference(b'{"id":%d}' % number, kind) for number, kind in enumerate(kinds)]
    return TableReport(table, f"p.{table}", differences=keys)


class Asked:
    """A way that notes what it is asked for. `fails`: tables that it refuses."""

    def __init__(self, fails: Sequence[str] = ()) -> None:
        self.proofs, self.waits, self.fails = 0, 0, fails
        self.repairs: list[TableRepair] = []

    def __call__(self) -> Asked:
        self.proofs += 1
        return self

    def __str__(self) -> str:
        return "the way"

    def ask(self, repair: TableRepair) -> None:
        if repair.table in self.fails:
            raise ServerUnreachable("away")
        self.repairs.append(repair)

    def finish(self) -> None:
        self.waits += 1


def yes(_text: str) -> bool:
    return True


def test_only_keys_that_were_proved_to_differ_are_sent_again() -> None:
    report = differing("d.t", *KINDS)
    report.sent_twice = 7
    made = repair_of(report)
    assert made is not None
    assert made.keys == tuple(b'{"id":%d}' % number for number in range(5))
    assert made.kinds == {"missing": 1, "stale": 1, "wrong": 1, "extra": 1, "no_tombstone": 1}
    assert made.lines() == [
        "  d.t: 3 keys as rows and 2 keys as deletions with tombstones"
        " (1 missing, 1 stale, 1 wrong, 1 extra, 1 no_tombstone)"
    ]


@pytest.mark.parametrize(
    "report",
    [
        TableReport("d.t", "p", sent_twice=3, back_in_time=1),
        differing("d.t", UNVERIFIABLE),
        replace(differing("d.t", MISSING), refused="A statement changed the table while it was compared."),
    ],
)
def test_nothing_is_asked_where_nothing_was_proved(report: TableReport) -> None:
    way = Asked()
    assert repair([report], way, yes, 1_000) == []
    assert way.proofs == 0


def test_keys_that_the_job_would_refuse_are_left_out_and_named() -> None:
    report = replace(differing("d.t", MISSING, EXTRA, NO_TOMBSTONE), undeletable="the row is gone")
    way = Asked()
    assert repair([report], way, yes, 1_000) == [("p.d.t", b'{"id":0}')]
    assert not way.repairs[0].deletes
    assert way.repairs[0].lines()[1] == "  d.t: 2 keys cannot be repaired: the row is gone"
    with pytest.raises(RepairRefused, match="1 keys cannot be repaired: a transform"):
        repair([replace(differing("d.t", WRONG), unrepairable="a transform")], way, yes, 1_000)


def test_a_key_that_no_row_can_have_keeps_no_other_key_back() -> None:
    report = replace(differing("d.t", MISSING, EXTRA, EXTRA), odd={b'{"id":1}'})
    way = Asked()
    assert repair([report], way, yes, 1_000) == [("p.d.t", b'{"id":0}'), ("p.d.t", b'{"id":2}')]
    assert way.repairs[0].lines() == [
        "  d.t: 1 keys as rows and 1 keys as deletions with tombstones (1 missing, 1 extra)",
        "  d.t: 1 keys cannot be repaired: no row of the table can have such a key, so a job refuses it",
    ]


def test_more_keys_than_allowed_are_refused_before_a_job_is_looked_for() -> None:
    way = Asked()
    with pytest.raises(RepairRefused, match="3 keys differ, more than --at-most 2"):
        repair([differing("d.t", MISSING, EXTRA), differing("d.u", WRONG)], way, yes, 2)
    assert way.proofs == 0


def test_the_question_names_what_is_sent_and_a_no_sends_nothing() -> None:
    way, asked = Asked(), list[str]()

    def refuses(text: str) -> bool:
        asked.append(text)
        return False

    with pytest.raises(RepairRefused, match="The answer was no"):
        repair([differing("d.t", MISSING)], way, refuses, 2)
    assert asked == ["the way:\n  d.t: 1 keys as rows (1 missing)"]
    assert not way.repairs


def test_a_job_that_dies_during_the_question_gets_no_signal() -> None:
    way, dead = Asked(), list[str]()

    def proved() -> Asked:
        if dead:
            raise NoLiveJob("it is dead", "")
        return way

    def agrees(text: str) -> bool:
        dead.append(text)
        return True

    with pytest.raises(NoLiveJob):
        repair([differing("d.t", MISSING)], proved, agrees, 2)
    assert not way.repairs


def test_a_table_whose_signal_fails_does_not_hide_what_was_sent() -> None:
    reports = [differing("d.t", MISSING), differing("d.u", MISSING)]
    way = Asked(fails=["d.u"])
    assert repair(reports, way, yes, 9) == [("p.d.t", b'{"id":0}')]
    assert way.waits == 1
    with pytest.raises(ServerUnreachable):
        repair(reports, Asked(fails=["d.t"]), yes, 9)


def test_no_more_tables_are_asked_for_at_a_time_than_the_job_remembers() -> None:
    way = Asked()
    repair([differing(f"d.t{number}", MISSING) for number in range(40)], way, yes, 100)
    assert (len(way.repairs), way.waits) == (40, 3)


@pytest.mark.parametrize("proofs", [0, 1])
def test_a_command_that_is_stopped_before_or_behind_the_question_sends_nothing(proofs: int) -> None:
    way = Asked()

    def stopped() -> Asked:
        if way.proofs == proofs:
            raise VerificationStopped
        return way()

    with pytest.raises(RepairRefused, match="was stopped"):
        repair([differing("d.t", MISSING)], stopped, yes, 2)
    assert not way.repairs


def test_a_signal_has_the_keys_with_all_their_digits(tmp_path: Path) -> None:
    file = tmp_path / "signals.txt"
    settings = from_properties({**QUIET, "signal.file": str(file)}).settings
    key = b'{"n":12345678901234567890.1234567891}'
    job = LiveJob(FACTS, "file")

    with patch.multiple(signal_way, live_job=lambda *_, **__: job, admin_client=Mock()):
        way = SignalWay(settings, "server", 30.0, Mock(), Allowance())
    way.ask(TableRepair("d.t", "p.d.t", (key,), {"wrong": 1}, deletes=True))

    (record,) = SignalFile(file).poll(None).records
    signal = parse(record)
    assert isinstance(signal, Signal)
    assert chosen_rows(signal) == ChosenRows(keys=f"[{key.decode()}]", deletes=True)


@pytest.mark.parametrize("digits", [1, 3_000])
def test_a_signal_means_only_the_table_that_differs(monkeypatch: pytest.MonkeyPatch, digits: int) -> None:
    sent: list[Any] = []
    way = way_to_a_job(monkeypatch, Allowance())
    monkeypatch.setattr(signal_way, "send_signal", lambda *signal: sent.append(signal[3]["data-collections"]))
    monkeypatch.setattr(SignalWay, "_write", lambda *_: "keys")

    for table in ("d.t", "d.a+b"):
        way.ask(TableRepair(table, f"p.{table}", (b"1" * digits,), {"wrong": 1}, deletes=True))

    (plain,), (quoted,) = sent
    assert plain == "d.t"
    assert resolve([quoted], ["d.aab", "d.a+b"]).tables == ("d.a+b",)


# -- waiting

FACTS = StartFacts("s", "job", beat_ms=1, snapshots={"paused": "", "repairs": {}})


def seen(changes: Callable[[StartFacts], StartFacts], now: float = 1.0) -> tuple[str, list[str]]:
    """Return why a wait for the signal `a` ends at the time `now`, and the signals that are open then."""
    waiting = Waiting("job", 30.0, {"a": 0.0}, ("s", 1, 0.0))
    why = waiting.see(Announcement(changes(FACTS)), now)
    return why, list(waiting.open)


def repairs(state: str) -> Callable[[StartFacts], StartFacts]:
    return lambda facts: replace(facts, beat_ms=9, snapshots={"paused": "", "repairs": {"a": state}})


def test_a_wait_ends_with_the_signal() -> None:
    assert seen(repairs("open"), 99.0) == ("", ["a"])
    assert seen(repairs("done")) == ("", [])


@pytest.mark.parametrize(
    ("changes", "now", "why"),
    [
        (lambda facts: replace(facts, job="other"), 1.0, "another job"),
        (lambda facts: replace(facts, ended=True), 1.0, "has ended"),
        (lambda facts: facts, ALIVE_SECONDS + 1, "no beat"),
        (lambda facts: replace(facts, beat_ms=9, snapshots={"paused": "p"}), 1.0, "paused by the signal p"),
        (lambda facts: replace(facts, beat_ms=9), 31.0, "has not begun"),
    ],
)
def test_a_wait_ends_where_nothing_more_is_to_be_expected(
    changes: Callable[[StartFacts], StartFacts], now: float, why: str
) -> None:
    assert why in seen(changes, now)[0]


def test_a_restart_of_the_job_is_waited_for() -> None:
    assert seen(lambda facts: replace(facts, start="again", beat_ms=9)) == ("", ["a"])


class Beats:
    """A log of announcements that shows a job which never begins with the signal."""

    def owner(self, seconds: float) -> Announcement:
        return Announcement(FACTS)


def way_to_a_job(monkeypatch: pytest.MonkeyPatch, allowance: Allowance) -> SignalWay:
    """Return a way to the job of `Beats`. Signals go nowhere."""
    monkeypatch.setattr(signal_way, "admin_client", lambda client: None)
    monkeypatch.setattr(signal_way, "send_signal", lambda *signal: "kafka")
    monkeypatch.setattr(signal_way, "live_job", lambda *given, **more: LiveJob(FACTS, "kafka"))
    return SignalWay(from_properties(NEEDED).settings, "", 600.0, Beats(), allowance)  # type: ignore[arg-type]


def test_a_wait_ends_at_once_if_the_command_is_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    allowance = Allowance()
    way = way_to_a_job(monkeypatch, allowance)
    way.ask(TableRepair("d.t", "p", (b'{"id":1}',), {MISSING: 1}, deletes=True))
    threading.Timer(0.2, allowance.stopping.set).start()
    began = time.monotonic()

    with caplog.at_level(logging.WARNING), pytest.raises(VerificationStopped):
        way.finish()

    assert time.monotonic() - began < ALIVE_SECONDS / 2
    assert "The command was stopped. The job still obeys the signal: incsnap-repair-" in caplog.text


def test_a_stopped_command_finds_no_way(monkeypatch: pytest.MonkeyPatch) -> None:
    allowance = Allowance()
    allowance.stopping.set()

    with pytest.raises(VerificationStopped):
        way_to_a_job(monkeypatch, allowance)
