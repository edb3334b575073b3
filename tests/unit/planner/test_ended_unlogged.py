"""Tests of prepared XA transactions that have ended unlogged: none is let go while its end may still come."""

from __future__ import annotations

import random

import pytest

from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.ended_unlogged import EndedUnlogged, XaRecovery

SID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
X = PreparedXa("X'61',X'',1", f"{SID}:5")
EXECUTED = GtidSet.parse(f"{SID}:1-9")


def asked(listed: set[str] | None, end: int, executed: GtidSet = EXECUTED) -> XaRecovery:
    return XaRecovery(lambda: executed, lambda: listed, lambda: ("binlog.000001", end))


def at(pos: int, log: str = SID) -> StreamPosition:
    return StreamPosition(EXECUTED, "binlog.000001", pos, server_uuid=log)


def looked(*answers: XaRecovery, log: str = SID) -> EndedUnlogged:
    ended = EndedUnlogged()
    for number, answer in enumerate(answers):
        ended.ask_server([X], log, answer, number * 10.0)
    return ended


def test_transactions_missing_in_two_answers_end_when_the_stream_passes_the_second() -> None:
    ended = looked(asked(set(), 100), asked(set(), 200))

    assert ended.among([X], at(199)) == []
    assert ended.among([X], at(200)) == [X]


def test_one_answer_is_not_enough() -> None:
    assert looked(asked(set(), 100)).among([X], at(500)) == []
    assert looked(asked(set(), 100), asked({X.xid}, 200)).among([X], at(500)) == []


def test_a_listed_transaction_has_not_ended() -> None:
    assert looked(asked({X.xid}, 100), asked({X.xid}, 200)).among([X], at(500)) == []


def test_a_transaction_not_yet_executed_may_be_unlisted() -> None:
    early = GtidSet.parse(f"{SID}:1-4")
    assert looked(asked(set(), 100, early), asked(set(), 200, early)).among([X], at(500)) == []


def test_an_answer_says_nothing_of_one_that_bears_the_name_since() -> None:
    again = PreparedXa(X.xid, f"{SID}:8")
    assert looked(asked(set(), 100), asked(set(), 200)).among([again], at(500)) == []


def test_places_of_another_binlog_say_nothing() -> None:
    assert looked(asked(set(), 100), asked(set(), 200)).among([X], at(500, f"{SID}/1")) == []


def test_a_user_who_may_not_ask_is_not_asked_again() -> None:
    ended = EndedUnlogged()
    ended.ask_server([X], SID, asked(None, 1), 0.0)
    ended.ask_server([X], SID, XaRecovery(pytest.fail, pytest.fail, pytest.fail), 100.0)

    assert ended.among([X], at(500)) == []


def test_the_server_is_asked_at_most_every_few_seconds_and_only_if_needed() -> None:
    ended = EndedUnlogged()
    never = XaRecovery(pytest.fail, pytest.fail, pytest.fail)
    ended.ask_server([], SID, never, 0.0)
    ended.ask_server([X], SID, asked(set(), 1), 1.0)
    ended.ask_server([X], SID, never, 4.0)


class _Server:
    """A server that commits as MySQL does: first into the binlog, then off the list of XA RECOVER.

    Half of the servers do not write to the binlog.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.end = 0
        self.end_before = 0
        self.listed = {X.xid}
        self.commit_at: int | None = None
        self.logs = rng.random() < 0.5
        self.state = "prepared"

    def step(self) -> None:
        self.end += self.rng.randint(0, 2)
        for _ in range(self.rng.randint(0, 2)):
            if self.state == "prepared":
                self.state = "written"
                if self.logs:
                    self.end += 1
                    self.commit_at = self.end
            elif self.state == "written":
                self.state = "ended"
                self.listed.clear()

    def asked(self, *, end_first: bool) -> XaRecovery:
        """Return the questions for the next look. Time passes between any two questions.

        With `end_first` they use a wrong end of the binlog: the one before the answer in front of this one.
        """
        early, self.end_before = ("binlog.000001", self.end_before), self.end
        self.step()

        def listed() -> set[str]:
            names = set(self.listed)
            self.step()
            return names

        return XaRecovery(lambda: EXECUTED, listed, lambda: early if end_first else ("binlog.000001", self.end))


def _let_go_with_its_commit_to_come(seed: int, *, end_first: bool = False) -> bool:
    rng = random.Random(seed)
    server, ended, passed = _Server(rng), EndedUnlogged(), 0
    for number in range(40):
        server.step()
        ended.ask_server([X], SID, server.asked(end_first=end_first), number * 10.0)
        passed = rng.randint(passed, server.end)
        if server.commit_at is not None and server.commit_at <= passed:
            return False  # the stream has brought it
        if ended.among([X], at(passed)):
            return server.commit_at is not None
    return False


def test_a_transaction_stays_while_its_commit_may_still_come() -> None:
    assert not any(map(_let_go_with_its_commit_to_come, range(2_000)))


def test_the_end_of_the_binlog_read_before_the_answers_would_let_one_go_too_early() -> None:
    assert any(_let_go_with_its_commit_to_come(seed, end_first=True) for seed in range(2_000))
