"""Tests of the audit: it sees what it must see, and excuses only what Debezium did before a seam."""

from __future__ import annotations

import pytest

from tests.seams.audit import Audit
from tests.seams.shapes import Record

_TOPIC = ("t", 0)
_DEBEZIUM, _OURS = "3.6.1.Final", "0.1.0"


def change(pos: int, op: str, before: int | None, after: int | None, version: str = _DEBEZIUM) -> Record:
    """Return a change of the row with the key 1, from one version to another."""
    rows = [None if each is None else {"id": 1, "version": each} for each in (before, after)]
    source = {"version": version, "file": "binlog.000001", "pos": pos, "row": 0, "gtid": f"g:{pos}"}
    return Record("orders", (1,), op, rows[0], rows[1], source)


TOMBSTONE = Record("orders", (1,), "", None, None, {})
FIRST = [change(1, "c", None, 1), change(2, "u", 1, 2), change(3, "d", 2, None), TOMBSTONE]
BEHIND = change(5, "c", None, 3, _OURS)


def audited(records: list[Record], seam: int) -> Audit:
    """Return the audit of records of one partition. `seam`: offset of incsnap's first record."""
    audit = Audit([{_TOPIC: seam}])
    for offset, record in enumerate(records):
        audit.observe(record, *_TOPIC, offset)
    return audit


def test_a_seam_without_a_gap_has_no_fault() -> None:
    audit = audited([*FIRST, BEHIND], 4)

    assert audit.faults() == []
    assert audit.rows == {"orders": {(1,): {"id": 1, "version": 3}}}


def test_a_repetition_of_debezium_is_counted_and_no_fault() -> None:
    audit = audited([*FIRST, *FIRST, BEHIND], 8)

    assert (audit.faults(), audit.repeated) == ([], 3)


def test_what_follows_a_repetition_that_was_cut_short_may_come_again() -> None:
    again = [change(2, "u", 1, 2, _OURS), change(3, "d", 2, None, _OURS), TOMBSTONE]
    audit = audited([*FIRST, FIRST[0], *again, BEHIND], 5)

    assert (audit.faults(), audit.again) == ([], 2)


def test_a_row_that_debezium_reads_again_behind_its_deletion_is_counted_and_no_fault() -> None:
    stale = Record("orders", (1,), "r", None, {"id": 1, "version": 2}, change(4, "r", None, 2).source)
    audit = audited([*FIRST, stale, BEHIND], 5)

    assert (audit.faults(), audit.stale) == ([], 1)
    assert audit.rows == {"orders": {(1,): {"id": 1, "version": 3}}}


@pytest.mark.parametrize(
    ("records", "seam", "fault"),
    [
        ([*FIRST, change(3, "d", 2, None, _OURS), TOMBSTONE, BEHIND], 4, "duplicate"),
        ([FIRST[0], change(3, "u", 2, 3, _OURS)], 1, "loss"),
        ([*FIRST[:3], BEHIND], 3, "no tombstone"),
        (FIRST[:3], 3, "without a tombstone"),
        ([*FIRST, change(5, "c", None, 3)], 4, "wrong engine"),
        ([*FIRST[:2], change(5, "u", 2, 1, _OURS)], 2, "back in time"),
    ],
    ids=["twice", "lost", "no tombstone", "no tombstone at the end", "both at once", "back"],
)
def test_a_fault_is_seen(records: list[Record], seam: int, fault: str) -> None:
    assert any(fault in each for each in audited(records, seam).faults())


def test_a_transaction_of_which_both_have_sent_rows_is_counted() -> None:
    rest = change(2, "u", 2, 3, _OURS)
    rest = Record(rest.table, rest.key, rest.op, rest.before, rest.after, {**rest.source, "row": 1})

    assert audited([*FIRST[:2], rest], 2).cut == {0: {"orders"}}


def test_a_seam_between_a_deletion_and_its_tombstone_is_counted() -> None:
    audit = audited([*FIRST, BEHIND], 3)

    assert (audit.faults(), audit.split) == ([], {0})


def test_a_seam_within_the_records_of_a_changed_key_is_counted() -> None:
    made = Record("orders", (2,), "c", None, {"id": 2, "version": 3}, change(3, "c", None, 3, _OURS).source)
    audit = audited([*FIRST, made], 4)

    assert (audit.faults(), audit.split) == ([], {0})
    assert audited([*FIRST, BEHIND], 4).split == set()
