"""Tests of the records of the schema change topic, with definitions of tables at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from incsnap.binlog.buffer_position import Advance
from incsnap.config.settings import Settings
from incsnap.ddl.statements import schema_change
from incsnap.envelope.seam import ROW_STEP, RecordPlace, Seam
from incsnap.events import Origin, SchemaChange, Session, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.table_definitions import Definition, shown
from incsnap.planner import schema_changes
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with

#: The definition that SHOW CREATE TABLE prints; the name of the storage engine is missing.
_COLUMNS = "CREATE TABLE `a` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE="
#: A definition of the same table with other keys.
_KEYED = "CREATE TABLE `a` (\n  `id` int NOT NULL,\n  `n` int DEFAULT NULL,\n  {}\n) ENGINE=InnoDB"


class At:
    """The definitions of tables at a batch's end."""

    connection = None

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def certain(self, tables: Mapping[TableId, str], _patience: float) -> tuple[dict[TableId, Definition], str]:
        texts = {table: self._texts[table.table] for table in tables if table.table in self._texts}
        return {table: Definition(text, shown(text)) for table, text in texts.items()}, ""


def settings(**changes: str) -> Settings:
    return loaded_with(
        topic__prefix="p",
        database__include__list="inv",
        table__include__list=r"inv\.a",
        include__schema__changes="true",
        **changes,
    ).settings


def change_of(sql: str, *, has_xid: bool = False, in_transaction: bool = False) -> SchemaChange:
    change = schema_change(sql, "inv")
    assert change is not None
    origin = Origin("u:1", "binlog.000001", 4, 1_000_000, 1)
    return replace(change, session=Session("inv"), origin=origin, has_xid=has_xid, in_transaction=in_transaction)


def records_of(
    monkeypatch: pytest.MonkeyPatch,
    change: SchemaChange,
    definition: str = "",
    *,
    captured: bool = True,
    seam: Seam | None = None,
    **more: str,
) -> list[tuple[str, str, list[str]]]:
    """Return for each record the name of its table, its statement, and the types of its changes."""
    monkeypatch.setattr(schema_changes, "lower_case_table_names", lambda connection: 0)
    end = StreamPosition(GtidSet(), "binlog.000001", 100)
    advance = Advance(frozenset(), (change,), 0, 0, 0, end=end, signals=())
    at: Any = At({"a": definition} if definition else {})
    records = schema_changes.statement_records(
        settings(**more, schema__history__internal__store__only__captured__tables__ddl=str(captured).lower()),
        at,
        advance,
        0,
        first=False,
        seam=seam,
    )
    values = [json.loads(record.value or b"") for record in records]
    return [
        (value["source"]["table"], value["ddl"], [each["type"] for each in value["tableChanges"]]) for value in values
    ]


_IF_ABSENT = "/* of an app */ CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY) /* behind */"


@pytest.mark.parametrize("definition", [_COLUMNS + "InnoDB", ""], ids=["definition certain", "definition uncertain"])
def test_a_create_that_finds_its_table_is_text_alone(monkeypatch: pytest.MonkeyPatch, definition: str) -> None:
    change = change_of(_IF_ABSENT)

    assert records_of(monkeypatch, change, definition, captured=False) == [("", _IF_ABSENT, [])]
    assert records_of(monkeypatch, change, definition) == []


@pytest.mark.parametrize(
    ("change", "engine"),
    [
        (change_of(_IF_ABSENT, has_xid=True), "InnoDB"),
        (change_of(_IF_ABSENT, in_transaction=True), "InnoDB"),
        (change_of(_IF_ABSENT), "MEMORY"),
        (change_of("CREATE TABLE IF NOT EXISTS a LIKE b"), "InnoDB"),
        (change_of("CREATE TABLE IF NOT EXISTS a (LIKE b)"), "InnoDB"),
        (change_of("CREATE TABLE a (id INT PRIMARY KEY)"), "InnoDB"),
    ],
    ids=["of InnoDB", "with rows", "of another engine", "like another", "like another in brackets", "unconditional"],
)
@pytest.mark.parametrize("captured", [True, False])
def test_a_create_that_may_make_its_table_has_the_definition(
    monkeypatch: pytest.MonkeyPatch, change: SchemaChange, engine: str, captured: bool
) -> None:
    records = records_of(monkeypatch, change, _COLUMNS + engine, captured=captured)

    assert records == [("a", change.sql.removeprefix("/* of an app */ ").removesuffix(" /* behind */"), ["CREATE"])]


@pytest.mark.parametrize(
    ("keys", "is_shown"),
    [
        ("UNIQUE KEY `U` (`id`)", True),
        ("KEY `other` (`n`),\n  UNIQUE KEY `u` (`id`)", True),
        ("UNIQUE KEY `u` (`n`)", True),
        ("UNIQUE KEY `nullable` (`n`),\n  UNIQUE KEY `u` (`id`,`n`)", True),
        ("PRIMARY KEY (`id`),\n  UNIQUE KEY `u` (`n`)", False),
        ("UNIQUE KEY `first` (`id`),\n  UNIQUE KEY `u` (`n`)", False),
        ("UNIQUE KEY `u` ((`id` + 1))", False),
    ],
)
def test_a_unique_index_is_an_alter_if_the_table_had_no_key(
    monkeypatch: pytest.MonkeyPatch, keys: str, is_shown: bool
) -> None:
    sql, definition = "CREATE UNIQUE INDEX u ON a (id)", _KEYED.format(keys)
    change = change_of(sql, has_xid=True)

    whole = records_of(monkeypatch, change, definition, captured=False)
    assert whole == [("a", sql, ["ALTER"]) if is_shown else ("", sql, [])]
    assert records_of(monkeypatch, change, definition) == (whole if is_shown else [])


def test_a_unique_index_of_a_table_that_is_not_captured_is_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "CREATE UNIQUE INDEX u ON b (id)"

    assert records_of(monkeypatch, change_of(sql), captured=False) == [("", sql, [])]
    assert records_of(monkeypatch, change_of(sql)) == []


@pytest.mark.parametrize("sql", ["CREATE FULLTEXT INDEX f ON a (t)", "CREATE SPATIAL INDEX s ON a (g)"])
def test_an_index_of_words_or_places_is_text_alone(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    assert records_of(monkeypatch, change_of(sql, has_xid=True), captured=False) == [("", sql, [])]
    assert records_of(monkeypatch, change_of(sql, has_xid=True)) == []


@pytest.mark.parametrize(
    ("least", "statements", "is_sent"),
    [
        (RecordPlace(1, 4), None, False),
        (RecordPlace(1, 5), None, True),
        (RecordPlace(1, 3), RecordPlace(1, 4, 0, ROW_STEP + 1), True),
        (RecordPlace(1, 3), RecordPlace(1, 3, 0, ROW_STEP + 1), False),
        (RecordPlace(1, 3), RecordPlace(2, 3, 0, ROW_STEP + 1), True),
    ],
    ids=["at the offset", "before the offset", "the topic's last one", "behind the last one", "in an earlier file"],
)
def test_a_statement_that_another_engine_has_sent_is_left_out(
    monkeypatch: pytest.MonkeyPatch, least: RecordPlace, statements: RecordPlace | None, is_sent: bool
) -> None:
    sql = "ALTER TABLE a ADD n INT"
    seam = Seam("uuid", least, statements=statements)

    assert records_of(monkeypatch, change_of(sql), seam=seam) == ([] if is_sent else [("a", sql, [])])
