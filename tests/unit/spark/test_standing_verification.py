"""What a job says of the differences that it knows: over rounds, in the log and in a notification."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import pytest

from incsnap.config.load import from_properties
from incsnap.connect.json_text import literal
from incsnap.errors import IncsnapError, ServerUnreachable
from incsnap.kafka.refusals import SinkRefused
from incsnap.monitoring.status import FinishedTable, JobStatus, SnapshotStatus, clock_ms
from incsnap.monitoring.verification_status import TableVerification, VerificationStatus
from incsnap.spark import standing_verification, verification_notice
from incsnap.spark.standing_verification import KnownDifferences, StandingVerification, difference_line
from incsnap.spark.verification_notice import notice
from incsnap.verify.kinds import MISSING, UNVERIFIABLE, WRONG
from incsnap.verify.report import Difference, TableReport
from tests.support.job_statuses import running
from tests.support.properties import NEEDED


def report(*kinds: str, refused: str = "") -> TableReport:
    differences = [Difference(literal(f"{number}").encode(), kind) for number, kind in enumerate(kinds)]
    return TableReport("shop.orders", "shop.shop.orders", 40, "u:1-9", refused, differences)


def differing(known: KnownDifferences, rounds: Sequence[tuple[int, TableReport]]) -> list[int]:
    """Return how many keys are known to differ after each round."""
    counts = []
    for number, each in rounds:
        known.note(number, [each])
        counts.append(known.of(each).differing)
    return counts


def test_a_sample_counts_until_it_is_compared_again() -> None:
    known = KnownDifferences()
    rounds = [(0, report(MISSING, WRONG)), (1, report()), (2, report(WRONG)), (0, report(WRONG)), (0, report())]

    assert differing(known, rounds) == [2, 2, 3, 2, 1]


def test_a_table_that_was_not_compared_keeps_its_count() -> None:
    known = KnownDifferences()
    refused = report(refused="It has no primary key, so its records have no keys.")

    assert differing(known, [(0, report(WRONG)), (0, refused)]) == [1, 1]
    assert known.of(refused).refused.startswith("It has no primary key")


def test_unverifiable_keys_are_no_differences() -> None:
    known = KnownDifferences()
    seen = report(UNVERIFIABLE)
    known.note(0, [seen])

    assert known.of(seen) == TableVerification("shop.orders", 40, 0, 1)
    assert not seen.differs


def test_the_line_names_the_table_the_counts_and_the_next_command() -> None:
    assert difference_line(report(MISSING, WRONG, WRONG), 24) == (
        "shop.orders and its topic shop.shop.orders differ: 1 missing, 2 wrong, of one key in 24, at u:1-9."
        " Next: incsnap verify FILE --table shop.orders --differences FOLDER"
    )


def test_the_notification_has_the_form_of_debeziums() -> None:
    value = notice("shop", report(MISSING), 1_700_000_000_000)

    assert set(value) == {"id", "type", "aggregate_type", "additional_data", "timestamp"}
    assert (value["aggregate_type"], value["type"]) == ("Verification", "DIFFERENCES")
    assert value["additional_data"]["missing"] == "1"
    assert value["additional_data"]["data_collection"] == "shop.orders"
    assert json.dumps(value)


def test_the_settings_are_times_and_shares() -> None:
    def verify(**given: str) -> tuple[int | None, int]:
        settings = from_properties({**NEEDED, **{f"incsnap.verify.{name}": text for name, text in given.items()}})
        return settings.settings.verify.interval_seconds, settings.settings.verify.sample

    assert verify() == (None, 24)
    assert verify(interval="90s", sample="1/7") == (90, 7)
    assert verify(interval="12h") == (43_200, 24)


class Rounds:
    """A comparison that finds each time that a key is missing. `meanwhile` happens while it compares."""

    failures, failure = 0, ""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile
        self.left = 2

    def sleep(self, seconds: float) -> bool:
        self.left -= 1
        return self.left >= 0

    def attempt(self, choice: object, share: float) -> list[TableReport]:
        self._meanwhile()
        return [report(MISSING)]

    def note_failure(self, error: Exception) -> None:
        self.failures, self.failure = self.failures + 1, str(error)


class StatusBoard:
    """A watch of a job whose snapshot is as the test says."""

    def __init__(self) -> None:
        self.shown: list[VerificationStatus] = []
        self.snapshot = SnapshotStatus()

    def status(self) -> JobStatus:
        return running(snapshot=self.snapshot)

    def verified(self, status: VerificationStatus) -> None:
        self.shown.append(status)

    def ends_a_snapshot(self) -> None:
        ended = FinishedTable("shop.orders", "s", "SUCCEEDED", 1, ended_ms=clock_ms())
        self.snapshot = SnapshotStatus(finished=(ended,))


@pytest.mark.parametrize(("reads", "rounds"), [(False, 1), (True, 0)])
def test_a_round_counts_only_if_no_snapshot_has_ended_meanwhile(
    reads: bool, rounds: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(standing_verification, "announce", lambda *arguments: None)
    board = StatusBoard()
    comparison = Rounds(board.ends_a_snapshot if reads else lambda: None)
    settings = from_properties({**NEEDED, "incsnap.verify.interval": "1s"}).settings
    comparison.left = 1
    StandingVerification(comparison, settings, board)._run()  # type: ignore[arg-type]
    assert board.shown[-1].rounds == rounds
    assert sum(table.differing for table in board.shown[-1].tables) == rounds
    assert ("a snapshot ran meanwhile" in caplog.text) == reads


def test_a_round_with_an_error_is_counted_and_the_next_round_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [RuntimeError("the disk is full")]

    def announced(*arguments: object) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(standing_verification, "announce", announced)
    board, settings = StatusBoard(), from_properties({**NEEDED, "incsnap.verify.interval": "1s"}).settings
    comparison = Rounds(lambda: None)
    StandingVerification(comparison, settings, board)._run()  # type: ignore[arg-type]
    failed = [each for each in board.shown if each.failures and not each.running_since_ms]
    assert (failed[0].failure, failed[0].rounds) == ("the disk is full", 0)
    assert (board.shown[-1].failures, board.shown[-1].rounds, board.shown[-1].running_since_ms) == (1, 1, 0)


@pytest.mark.parametrize("error", [ServerUnreachable("the registry does not answer"), SinkRefused("no such subject")])
def test_a_schema_registry_that_refuses_the_notification_is_one_line_of_the_log(
    error: IncsnapError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(*arguments: object) -> bytes:
        raise error

    formats = SimpleNamespace(struct=refusing)
    monkeypatch.setattr(verification_notice, "struct_formats", lambda settings: (formats, formats))
    properties = {**NEEDED, "notification.enabled.channels": "sink", "notification.sink.topic.name": "notes"}
    verification_notice.announce(from_properties(properties).settings, [report(MISSING)], 1)
    assert f"The notification of differences was not sent to notes: {error.message}" in caplog.text


def test_a_round_does_not_begin_right_behind_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    board = StatusBoard()
    board.ends_a_snapshot()
    comparison = Rounds(lambda: pytest.fail("rows of the snapshot may be on their way"))
    settings = from_properties({**NEEDED, "incsnap.verify.interval": "1s"}).settings
    StandingVerification(comparison, settings, board)._run()  # type: ignore[arg-type]
    assert comparison.left < 0
