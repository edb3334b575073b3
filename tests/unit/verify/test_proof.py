"""Tests of the rules of `incsnap verify`, one by one."""

from __future__ import annotations

from dataclasses import replace

from incsnap.gtid import GtidSet
from incsnap.verify.kinds import EXTRA, MISSING, NO_TOMBSTONE, STALE, WRONG, kind_of, older_record
from incsnap.verify.proof import Events, Judgement, LastRecord, Low, Reached, RowPlace, Verdict, judge
from incsnap.verify.rounds import Outcome

KEY = ("shop.orders", b'{"id":1}')
LOW = Low(GtidSet(), RowPlace(3, 500))
ALIVE = LastRecord(b"old", 0, 7, place=RowPlace(3, 100))
DELETED = LastRecord(None, 0, 7, place=RowPlace(3, 100))


def test_a_difference_is_proved_once_the_partition_has_passed_the_low_watermark() -> None:
    past = Reached(RowPlace(3, 500))

    assert judge(KEY, b"new", ALIVE, LOW, Events(LOW.end), past) == Judgement(Verdict.DIFFERENT)
    assert judge(KEY, b"old", ALIVE, LOW, Events(LOW.end), Reached()) == Judgement(Verdict.EQUAL)


def test_a_partition_that_has_passed_the_last_event_of_a_key_is_enough() -> None:
    since = Events(RowPlace(3, 100), {KEY: RowPlace(3, 200)})

    assert judge(KEY, b"new", None, LOW, since, Reached(RowPlace(3, 200, 1))).verdict is Verdict.DIFFERENT
    assert judge(KEY, b"new", None, LOW, since, Reached(RowPlace(3, 199))).verdict is Verdict.BEHIND


def test_at_the_place_of_an_event_only_the_record_of_the_key_itself_is_a_proof() -> None:
    since, there = Events(RowPlace(3, 100), {KEY: RowPlace(3, 200)}), Reached(RowPlace(3, 200))

    # A change of a key is two records with one place. The other one may have come alone.
    assert judge(KEY, b"new", ALIVE, LOW, since, there).verdict is Verdict.BEHIND
    own = replace(ALIVE, place=RowPlace(3, 200))
    assert judge(KEY, b"new", own, LOW, since, there).verdict is Verdict.DIFFERENT


def test_an_event_that_is_due_later_needs_a_record_of_a_later_transaction() -> None:
    late = Events(RowPlace(3, 100), {KEY: RowPlace(3, 200)}, {KEY: RowPlace(3, 200, 1 << 62)})
    own = replace(ALIVE, place=RowPlace(3, 200, 7))

    assert judge(KEY, b"new", own, LOW, late, Reached(RowPlace(3, 200, 8))).verdict is Verdict.BEHIND
    assert judge(KEY, b"new", own, LOW, late, Reached(RowPlace(3, 201))).verdict is Verdict.DIFFERENT


def test_nothing_is_proved_if_the_binlog_begins_behind_the_evidence() -> None:
    assert judge(KEY, b"new", None, LOW, Events(RowPlace(3, 300)), Reached(RowPlace(3, 200))).verdict is Verdict.BEHIND


def test_nothing_is_proved_if_the_known_events_of_a_topic_begin_behind_the_evidence() -> None:
    events = Events(RowPlace(3, 100), begins={KEY[0]: RowPlace(3, 300)})

    assert judge(KEY, b"new", None, LOW, events, Reached(RowPlace(3, 299))).verdict is Verdict.BEHIND
    assert judge(KEY, b"new", None, LOW, events, Reached(RowPlace(3, 300))).verdict is Verdict.DIFFERENT
    assert judge(("other", KEY[1]), b"new", None, LOW, events, Reached(RowPlace(3, 299))).verdict is Verdict.DIFFERENT


def test_evidence_of_other_partitions_is_weak() -> None:
    judged = judge(KEY, b"new", None, LOW, Events(LOW.end), Reached(None, RowPlace(4, 4)))

    assert judged == Judgement(Verdict.DIFFERENT, weak=True)


def test_a_key_that_changed_proves_nothing() -> None:
    changed = Events(LOW.end, {KEY: RowPlace(3, 600)}, changed={KEY})

    assert judge(KEY, b"old", ALIVE, LOW, changed, Reached(RowPlace(9, 9))).verdict is Verdict.CHANGED


def test_a_deletion_without_its_tombstone_is_proved_by_the_record_behind_it() -> None:
    followed = LastRecord(None, 0, 7, place=RowPlace(3, 100), followed=True)
    far, since = Reached(RowPlace(9, 9)), Events(LOW.end)

    assert judge(KEY, None, followed, LOW, since, far) == Judgement(Verdict.DIFFERENT)
    assert judge(KEY, None, DELETED, LOW, since, far) == Judgement(Verdict.DIFFERENT, weak=True)
    assert judge(KEY, None, DELETED, LOW, since, Reached(far.strong, RowPlace(1, 1))).verdict is Verdict.DIFFERENT
    assert judge(KEY, None, DELETED, LOW, since, Reached(None, None)).verdict is Verdict.BEHIND
    assert judge(KEY, None, replace(DELETED, tombstone=True), LOW, since, far) == Judgement(Verdict.EQUAL)


def test_differences_get_their_names() -> None:
    assert kind_of(b"new", None, None, None) == MISSING
    assert kind_of(b"new", DELETED, None, None) == MISSING
    assert kind_of(None, ALIVE, None, None) == EXTRA
    assert kind_of(None, DELETED, None, None) == NO_TOMBSTONE
    assert kind_of(b"new", ALIVE, None, RowPlace(3, 200)) == STALE
    assert kind_of(b"new", ALIVE, ALIVE, RowPlace(3, 100)) == STALE
    assert kind_of(b"new", ALIVE, None, RowPlace(3, 100)) == WRONG


def test_a_row_of_a_snapshot_is_stale_if_the_binlog_has_a_later_change() -> None:
    read = replace(ALIVE, place=None, read_at=RowPlace(3, 100))

    assert kind_of(b"new", read, None, RowPlace(3, 200)) == STALE
    assert kind_of(b"new", read, None, RowPlace(3, 100)) == WRONG
    assert kind_of(b"new", replace(read, read_at=None), None, RowPlace(3, 200)) == WRONG


def test_a_change_behind_the_round_that_decided_does_not_make_its_record_stale() -> None:
    low = Low(LOW.executed, RowPlace(3, 150))
    known = Outcome(b"new", ALIVE, low, Judgement(Verdict.DIFFERENT), last_event=RowPlace(3, 120))

    assert known.event_before(RowPlace(3, 140)) == RowPlace(3, 140)
    assert known.event_before(RowPlace(3, 150)) == RowPlace(3, 120)
    assert known.event_before(None) == RowPlace(3, 120)
    assert replace(known, last_event=None).event_before(RowPlace(3, 150)) is None


def test_the_newest_older_record_with_the_row_is_found() -> None:
    earlier = [replace(ALIVE, offset=1), replace(ALIVE, row=b"other", offset=2), replace(ALIVE, offset=3), DELETED]

    assert older_record(ALIVE, earlier) == earlier[2]
    assert older_record(replace(ALIVE, row=b"new"), earlier) is None
    assert older_record(DELETED, earlier) is None


def test_a_record_is_not_older_than_itself_though_the_key_changed_behind_it() -> None:
    behind = [ALIVE, replace(ALIVE, row=b"new", offset=8), replace(ALIVE, offset=9)]

    assert older_record(ALIVE, behind) is None
    assert older_record(ALIVE, [replace(ALIVE, offset=3), *behind]) == replace(ALIVE, offset=3)
