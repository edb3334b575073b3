"""Tests of the attempts of a comparison: it begins again if a statement changes a table, and leaves such tables out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from incsnap.config.load import from_properties
from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.mysql.chunk_reader import TableLocked
from incsnap.tables import Column, TableId, TableShape
from incsnap.verify import verification
from incsnap.verify.allowance import VerificationStopped
from incsnap.verify.changed_keys import TableChanged, TooManyChanges, TopicChanged
from incsnap.verify.compared_sides import TooManyKeys
from incsnap.verify.course import CHANGED, LOCKED
from incsnap.verify.report import TableReport
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import RecordsRemoved
from incsnap.verify.verified_tables import ChosenTables, without_defaults
from tests.support.properties import NEEDED

_FORM: Any = None


def verified(name: str, topic: str) -> VerifiedTable:
    """Return the table `d.<name>`."""
    return VerifiedTable(TableShape(TableId("d", name), (Column("id", "int"),), (0,)), topic, 1, _FORM)


_T, _U, _V = verified("t", "t"), verified("u", "uv"), verified("v", "uv")
_TABLES = {"t": [_T], "uv": [_U, _V]}


@dataclass
class Attempts:
    """Attempts of a comparison whose tables are changed by statements."""

    #: Return the tables that statements change in an attempt, by its number from 1 on; none: the attempt succeeds.
    changes: Callable[[int], Sequence[VerifiedTable]]
    tables: Mapping[str, Sequence[VerifiedTable]] = field(default_factory=lambda: _TABLES)  #: tables, by topic
    #: Return a table that stays locked in an attempt, by its number from 1 on; None: no table does.
    locks: Callable[[int], VerifiedTable | None] = lambda number: None
    fails: Exception | None = None  #: error of the first attempt
    #: Shapes that tables have after statements. None: the table is gone.
    now: Mapping[TableId, TableShape | None] = field(default_factory=dict)
    compared: list[list[str]] = field(default_factory=list)  #: topics of each attempt
    resumed: list[bool] = field(default_factory=list)  #: whether each attempt goes on with kept sides
    removed: int = 0  #: how often kept sides were removed

    def run(self, patch: pytest.MonkeyPatch, *, resume: bool = False) -> tuple[object, dict[str, str]]:
        """Return the course, and why tables have no answer."""
        reports = {topic: [TableReport(str(each.shape.id), topic) for each in of] for topic, of in self.tables.items()}
        patch.setattr(verification, "open_sides", self._open)
        patch.setattr(verification, "Course", self._course)
        patch.setattr(verification, "catalog", SimpleNamespace(shapes_of=self._shapes_of))
        resources: Any = SimpleNamespace(connection=None)
        course = verification._compare(resources, self.tables, reports, resume=resume)
        return course, {each.table: each.refused for of in reports.values() for each in of if each.refused}

    def _open(self, resources: object, members: Sequence[VerifiedTable], *, resume: bool) -> object:
        assert len(self.resumed) < 20, "the attempts do not end"
        self.resumed.append(resume)
        return SimpleNamespace(remove=self._remove)

    def _shapes_of(self, connection: object, tables: Sequence[TableId]) -> dict[TableId, TableShape]:
        catalogued = {each.shape.id: without_defaults(each.shape) for of in self.tables.values() for each in of}
        shapes = {**catalogued, **self.now}
        return {table: shape for table in tables if (shape := shapes[table]) is not None}

    def _remove(self) -> None:
        self.removed += 1

    def _course(self, resources: object, left: Mapping[str, Sequence[VerifiedTable]], sides: object) -> object:
        def run(reports: Mapping[str, Sequence[TableReport]]) -> None:
            assert list(reports) == list(left)
            self.compared.append(list(left))
            if self.fails is not None:
                raise self.fails
            if locked := self.locks(len(self.compared)):
                raise TableLocked(TableLocked.text(locked.shape.id))
            if changed := self.changes(len(self.compared)):
                raise TableChanged("a statement", tables=[table.shape.id for table in changed])

        return SimpleNamespace(run=run)


def test_a_comparison_that_no_statement_disturbs_has_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(lambda number: [])

    course, refused = attempts.run(monkeypatch, resume=True)

    assert (course is not None, refused, attempts.compared) == (True, {}, [["t", "uv"]])
    assert (attempts.resumed, attempts.removed) == ([True], 1)


@pytest.mark.parametrize("disturbed", [1, 2])
def test_a_table_that_statements_changed_once_or_twice_gets_its_answer(
    disturbed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(lambda number: [_T] if number <= disturbed else [])

    course, refused = attempts.run(monkeypatch, resume=True)

    assert (course is not None, refused) == (True, {})
    assert attempts.compared == [["t", "uv"]] * (disturbed + 1)
    # What was kept is of the table before the statement.
    assert attempts.resumed == [True] + [False] * disturbed
    assert attempts.removed == 1


def test_the_third_statement_ends_the_attempts_for_the_tables_of_its_topic_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = Attempts(lambda number: [_U] if number <= 3 else [])

    course, refused = attempts.run(monkeypatch)

    assert (course is not None, refused) == (True, {"d.u": CHANGED, "d.v": CHANGED})
    assert attempts.compared == [["t", "uv"]] * 3 + [["t"]]


def test_no_answer_is_left_if_statements_change_all_tables_in_all_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(lambda number: [_T, _V])

    course, refused = attempts.run(monkeypatch)

    assert (course, refused) == (None, dict.fromkeys(("d.t", "d.u", "d.v"), CHANGED))
    # Nothing could be resumed.
    assert (len(attempts.compared), attempts.removed) == (3, 1)


def test_each_topic_has_its_own_count_of_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [_T, _U, _T, _V]
    attempts = Attempts(lambda number: turns[number - 1 : number])

    course, refused = attempts.run(monkeypatch)

    assert (course is not None, refused) == (True, {})
    assert attempts.compared == [["t", "uv"]] * 5


@pytest.mark.parametrize("shape", [TableShape(_T.shape.id, (Column("id", "bigint"),), (0,)), None])
def test_a_table_with_other_columns_or_none_is_left_out_at_once(
    shape: TableShape | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(lambda number: [_T] if number == 1 else [], now={_T.shape.id: shape})

    course, refused = attempts.run(monkeypatch)

    assert (course is not None, refused) == (True, {"d.t": CHANGED})
    assert attempts.compared == [["t", "uv"], ["uv"]]


def test_defaults_are_no_other_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = replace(_T.shape, defaults=((0, "7"),))
    attempts = Attempts(lambda number: [_T] if number == 1 else [], {"t": [replace(_T, shape=shape)]})

    _, refused = attempts.run(monkeypatch)

    assert (refused, attempts.compared) == ({}, [["t"], ["t"]])


def test_a_table_that_stays_locked_is_left_out_with_the_tables_of_its_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(lambda number: [], locks=lambda number: _V if number == 1 else None)

    course, refused = attempts.run(monkeypatch)

    assert (course is not None, refused) == (True, {"d.u": LOCKED, "d.v": LOCKED})
    assert attempts.compared == [["t", "uv"], ["t"]]


@pytest.mark.parametrize(
    ("error", "removed"),
    [
        (TooManyKeys("more than 500,000 keys differ"), 1),
        (TooManyChanges("more than 500,000 keys changed"), 1),
        (TopicChanged("the topic has more partitions"), 1),
        (RecordsRemoved("the record of offset 0 is gone"), 1),
        # A later process goes on with what was read.
        (ConfigError("the folder cannot be written: No space left on device"), 0),
        (ServerUnreachable("away"), 0),
        (VerificationStopped(), 0),
    ],
)
def test_what_was_read_is_removed_behind_an_error_that_cannot_be_resumed(
    error: Exception, removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = Attempts(lambda number: [], fails=error)

    with pytest.raises(type(error)):
        attempts.run(monkeypatch)
    assert attempts.removed == removed


def test_the_gtid_set_of_an_empty_table_without_a_topic_is_noted_before_the_look_at_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, looks = TableId("d", "t"), list[str]()

    def choose(*arguments: object) -> ChosenTables:
        looks.append("rows")
        return ChosenTables()

    def executed(connection: object) -> str:
        looks.append("executed")
        return "set"

    monkeypatch.setattr(verification, "connect", lambda mysql: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(verification, "captured_by_job", lambda *arguments: [table])
    monkeypatch.setattr(verification, "shapes_to_compare", lambda *arguments: {table: _T.shape})
    monkeypatch.setattr(verification, "choose", choose)
    monkeypatch.setattr(verification, "watermarks", SimpleNamespace(executed=executed))
    no_spark: Any = None

    (report,) = verification.verify_tables(no_spark, from_properties(NEEDED).settings, verification.Choice())

    assert (looks, report.gtid_set, report.refused) == (["executed", "rows"], "set", "")
