"""Tests of the rules of `incsnap verify`, one by one."""

from __future__ import annotations

from dataclasses import replace

from incsnap.gtid import GtidSet
from incsnap.verify.kinds import EXTRA, MISSING, NO_TOMBSTONE, STALE, WRONG, kind_of
from incsnap.verify.proof import Events, Judgement, LastRecord, Low, Reached, RowPlace, Verdict, judge

KEY = ("shop.orders", b'{"id":1}')
LOW = Low(GtidSet(), RowPlace(3, 500))
ALIVE = LastRecord(b"old", 0, 7, place=RowPlace(3, 100))
DELETED = LastRecord(None, 0, 7, place=RowPlace(3, 100))


def test_a_difference_is_proved_once_the_partition_has_passed_the_low_watermark() -> None:
    past = Reached(RowPlace(3, 500))

    assert judge(KEY, b"new", ALIVE, LOW, Events(LOW.end), past) == Judgement(Verdict.DIFFERENT)
    assert judge(KEY, b"old", ALIVE, LOW, Events(LOW.end), Reached()) == Judgement(Verdict.EQUAL)


def test_a_partition_that_came_to_the_last_event_of_a_key_is_enough() -> None:
    since = Events(RowPlace(3, 100), {KEY: RowPlace(3, 200)})

    assert judge(KEY, b"new", None, LOW, since, Reached(RowPlace(3, 200))).verdict is Verdict.DIFFERENT
    assert judge(KEY, b"new", None, LOW, since, Reached(RowPlace(3, 199))).verdict is Verdict.BEHIND


def test_nothing_is_proved_if_the_binlog_begins_behind_the_evidence() -> None:
    assert judge(KEY, b"new", None, LOW, Events(RowPlace(3, 300)), Reached(RowPlace(3, 200))).verdict is Verdict.BEHIND


def test_evidence_of_other_partitions_is_weak() -> None:
    judged = judge(KEY, b"new", None, LOW, Events(LOW.end), Reached(None, RowPlace(4, 4)))

    assert judged == Judgement(Verdict.DIFFERENT, weak=True)


def test_a_key_that_changed_proves_nothing() -> None:
    changed = Events(LOW.end, {KEY: RowPlace(3, 600)}, {KEY})

    assert judge(KEY, b"old", ALIVE, LOW, changed, Reached(RowPlace(9, 9))).verdict is Verdict.CHANGED


def test_a_deletion_without_its_tombstone_is_proved_by_the_record_behind_it() -> None:
    followed = LastRecord(None, 0, 7, place=RowPlace(3, 100), followed=True)
    far, since = Reached(RowPlace(9, 9)), Events(LOW.end)

    assert judge(KEY, None, followed, LOW, since, far) == Judgement(Verdict.DIFFERENT)
    assert judge(KEY, None, DELETED, LOW, since, far) == Judgement(Verdict.DIFFERENT, weak=True)
    assert judge(KEY, None, replace(DELETED, tombstone=True), LOW, since, far) == Judgement(Verdict.EQUAL)


def test_differences_get_their_names() -> None:
    assert kind_of(b"new", None, [], None) == MISSING
    assert kind_of(b"new", DELETED, [b"old"], None) == MISSING
    assert kind_of(None, ALIVE, [], None) == EXTRA
    assert kind_of(None, DELETED, [], None) == NO_TOMBSTONE
    assert kind_of(b"new", ALIVE, [], RowPlace(3, 200)) == STALE
    assert kind_of(b"new", ALIVE, [b"old"], RowPlace(3, 100)) == STALE
    assert kind_of(b"new", ALIVE, [b"other"], RowPlace(3, 100)) == WRONG
