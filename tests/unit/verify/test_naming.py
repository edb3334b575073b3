"""Tests of the names of differences: a key of which too little is left has no name but `unverifiable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from incsnap.config.load import from_properties
from incsnap.gtid import GtidSet
from incsnap.tables import Column, TableId, TableShape
from incsnap.verify.evidence import UnderWay
from incsnap.verify.histories import History
from incsnap.verify.naming import Naming
from incsnap.verify.proof import Events, Judgement, LastRecord, Low, RowPlace, TopicKey, Verdict
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.report import TableReport
from incsnap.verify.rounds import Outcome
from incsnap.verify.table_side import VerifiedTable
from tests.support.properties import NEEDED

_TOPIC, _KEY = "p.d.t", b'{"id":1}'
_SHAPE = TableShape(TableId("d", "t"), (Column("id", "int"), Column("v", "int")), (0,))
_TABLE = VerifiedTable(_SHAPE, _TOPIC, 1, RecordForm(True, False, False))
_LOW = Low(GtidSet(), RowPlace(1, 900))
_ROW, _OTHER = b'{"id":1,"v":1}', b'{"id":1,"v":2}'
_RECORD = LastRecord(_OTHER, 0, 5, place=RowPlace(1, 100))
_DIFFERENT = Judgement(Verdict.DIFFERENT)
_CUT = "the topic no longer has its oldest records"
_ALTERED = "a statement has changed the table behind its record"


def named(
    outcome: Outcome,
    *,
    cut: bool = False,
    altered: RowPlace | None = None,
    last: RowPlace | None = None,
    older: tuple[LastRecord, ...] = (),
    settings: Mapping[str, str] | None = None,
    under_way: Sequence[UnderWay] = (),
) -> tuple[str, str]:
    """Return the kind and the note of the difference that an outcome is; two empty texts for an equal key.

    `cut`: whether retention has removed records of the topic. `altered`: place of the last statement that changed the
    columns of the table. `last`: place of the key's last event in the binlog. `settings`: further ones of the file.
    `under_way`: the tables whose snapshots are under way before the records are read, and behind.
    """
    key: TopicKey = (_TOPIC, _KEY)
    events = Events(RowPlace(1, 4), last={} if last is None else {key: last})
    events = replace(events, altered={} if altered is None else {_TOPIC: altered})
    sides: Any = SimpleNamespace(
        low=lambda: _LOW,
        high=lambda: _LOW.end,
        events=lambda *places: events,
        owners=lambda key: [_TABLE],
        histories={key: History(outcome.record, list(older))},
    )
    report = TableReport("d.t", _TOPIC)
    looks = iter(under_way or (UnderWay(), UnderWay()))
    evidence: Any = SimpleNamespace(under_way=lambda: next(looks))
    whole = from_properties({**NEEDED, **(settings or {})}).settings
    made = Naming(sides, whole, {_TOPIC: [_TABLE]}, evidence)
    made.note_snapshots()
    made.name({_TOPIC: [report]}, {key: outcome}, {_TOPIC} if cut else ())
    return next(((each.kind, each.note) for each in report.differences), ("", ""))


# -- retention


@pytest.mark.parametrize(("cut", "expected"), [(True, ("unverifiable", _CUT)), (False, ("missing", ""))])
def test_a_key_without_records_is_unverifiable_if_the_oldest_records_are_gone(
    cut: bool, expected: tuple[str, str]
) -> None:
    """A request to delete records removes the last one of a key too, also from a compacted topic."""
    assert named(Outcome(_ROW, None, _LOW, _DIFFERENT), cut=cut) == expected


@pytest.mark.parametrize(
    ("row", "record", "kind"),
    [
        (_ROW, LastRecord(None, 0, 5, tombstone=True), "missing"),
        (_ROW, _RECORD, "wrong"),
        (None, _RECORD, "extra"),
        (None, replace(_RECORD, row=None), "no_tombstone"),
    ],
)
def test_a_key_with_a_record_keeps_its_name_though_retention_has_removed_others(
    row: bytes | None, record: LastRecord, kind: str
) -> None:
    assert named(Outcome(row, record, _LOW, _DIFFERENT), cut=True) == (kind, "")


def test_a_key_that_is_equal_has_no_name_in_a_topic_that_is_cut() -> None:
    assert named(Outcome(None, None, _LOW, Judgement(Verdict.EQUAL)), cut=True) == ("", "")


# -- rows that a setting leaves out


_OVERRIDES = "snapshot.select.statement.overrides"
_ONE_TABLE = {_OVERRIDES: "d.T", f"{_OVERRIDES}.d.T": "SELECT * FROM d.T WHERE v > 1"}
_LEFT_OUT = "snapshot.include.collection.list may have left out its row"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (_ONE_TABLE, ("unverifiable", f"{_OVERRIDES} may have left out its row")),
        ({_OVERRIDES: "d.u", f"{_OVERRIDES}.d.u": "SELECT * FROM d.u WHERE v > 1"}, ("missing", "")),
        ({"snapshot.include.collection.list": "d\\.u,e\\.t"}, ("unverifiable", _LEFT_OUT)),
        ({"snapshot.include.collection.list": "D\\..*"}, ("missing", "")),
    ],
)
def test_a_row_that_the_first_snapshot_left_out_on_purpose_is_unverifiable_without_a_record(
    settings: dict[str, str], expected: tuple[str, str]
) -> None:
    assert named(Outcome(_ROW, None, _LOW, _DIFFERENT), settings=settings) == expected
    deleted = LastRecord(None, 0, 5, tombstone=True)
    assert named(Outcome(_ROW, deleted, _LOW, _DIFFERENT), settings=settings) == ("missing", "")
    assert named(Outcome(_ROW, _RECORD, _LOW, _DIFFERENT), settings=settings) == ("wrong", "")


# -- a snapshot under way


_NONE, _OWN = UnderWay(frozenset({"d.u"})), UnderWay(frozenset({"d.t"}))


@pytest.mark.parametrize("looks", [(_OWN, _OWN), (_OWN, _NONE), (_NONE, _OWN), (UnderWay(has_more=True), _NONE)])
def test_a_row_without_a_record_is_unverifiable_while_the_snapshot_of_its_table_is_under_way(
    looks: tuple[UnderWay, UnderWay],
) -> None:
    expected = ("unverifiable", "its snapshot is under way")
    assert named(Outcome(_ROW, None, _LOW, _DIFFERENT), under_way=looks) == expected
    deleted = LastRecord(None, 0, 5, tombstone=True)
    assert named(Outcome(_ROW, deleted, _LOW, _DIFFERENT), under_way=looks) == ("missing", "")
    assert named(Outcome(_ROW, _RECORD, _LOW, _DIFFERENT), under_way=looks) == ("wrong", "")


def test_a_snapshot_of_another_table_changes_no_name() -> None:
    assert named(Outcome(_ROW, None, _LOW, _DIFFERENT), under_way=(_NONE, _NONE)) == ("missing", "")


# -- a statement between the record and the row


@pytest.mark.parametrize(
    ("altered", "expected"),
    [
        (RowPlace(1, 200), ("unverifiable", _ALTERED)),
        (RowPlace(1, 50), ("wrong", "")),
        (None, ("wrong", "")),
    ],
)
def test_a_row_is_unverifiable_if_a_statement_changed_the_table_behind_its_record(
    altered: RowPlace | None, expected: tuple[str, str]
) -> None:
    outcome = Outcome(_ROW, _RECORD, _LOW, _DIFFERENT)
    assert named(outcome, altered=altered) == expected
    read = replace(_RECORD, place=None, read_at=_RECORD.place)
    assert named(replace(outcome, record=read), altered=altered) == expected


def test_a_row_like_an_older_one_is_unverifiable_behind_a_statement_but_a_lost_change_is_stale() -> None:
    outcome = Outcome(_ROW, _RECORD, _LOW, _DIFFERENT)
    older = replace(_RECORD, offset=2)
    assert named(outcome, older=(older,), altered=RowPlace(1, 200)) == ("unverifiable", _ALTERED)
    assert named(outcome, older=(older,)) == ("stale", "the row of partition 0, offset 2")

    lost = named(outcome, altered=RowPlace(1, 200), last=RowPlace(1, 300))
    assert lost == ("stale", "the binlog has a later change")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b'{"id":1}', ("unverifiable", _ALTERED)),
        (b'{"id":1,"v":1,"w":2}', ("unverifiable", _ALTERED)),
        (_OTHER, ("wrong", "")),
        (b"torn", ("wrong", "")),
    ],
)
def test_a_row_without_a_place_is_unverifiable_if_it_has_other_columns(row: bytes, expected: tuple[str, str]) -> None:
    record = LastRecord(row, 0, 5)
    assert named(Outcome(_ROW, record, _LOW, _DIFFERENT), altered=RowPlace(1, 200)) == expected


@pytest.mark.parametrize("cut", [False, True])
def test_a_missing_or_extra_row_keeps_its_name_behind_a_statement(cut: bool) -> None:
    altered = RowPlace(1, 200)

    missing = ("unverifiable", _CUT) if cut else ("missing", "")
    assert named(Outcome(_ROW, None, _LOW, _DIFFERENT), altered=altered, cut=cut) == missing
    assert named(Outcome(None, _RECORD, _LOW, _DIFFERENT), altered=altered, cut=cut) == ("extra", "")


# -- records of other tables


_OF_ANOTHER = "its last record is of d.hidden, which is not compared"


@pytest.mark.parametrize(
    ("row", "record", "kind"),
    [
        (None, _RECORD, "extra"),
        (None, replace(_RECORD, row=None), "no_tombstone"),
        (_ROW, _RECORD, "wrong"),
        (_ROW, replace(_RECORD, row=None, tombstone=True), "missing"),
    ],
)
def test_a_key_whose_last_record_is_of_a_table_that_is_not_compared_is_unverifiable(
    row: bytes | None, record: LastRecord, kind: str
) -> None:
    """MySQL hides tables from the user. A deletion would remove a row of such a table from the topic."""
    outcome = Outcome(row, replace(record, table="d.hidden"), _LOW, _DIFFERENT)
    assert named(outcome) == ("unverifiable", _OF_ANOTHER)
    assert named(replace(outcome, judgement=Judgement(Verdict.EQUAL))) == ("", "")
    for known in ("d.t", ""):
        assert named(replace(outcome, record=replace(record, table=known))) == (kind, "")


# -- the note


def test_the_note_says_what_a_name_rests_on_and_why_there_is_none() -> None:
    weak = Judgement(Verdict.DIFFERENT, weak=True)
    assert named(Outcome(_ROW, _RECORD, _LOW, weak)) == ("wrong", "it rests on records of other partitions or tables")
    unproved = Outcome(_ROW, _RECORD, _LOW, Judgement(Verdict.BEHIND), "it waits")
    assert named(unproved) == ("unverifiable", "it waits")
