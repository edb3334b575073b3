"""Definitions and statements, told as Debezium tells them: its own records are the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incsnap.connect.json_schema import schema_json
from incsnap.ddl.table_statements import table_statements
from incsnap.envelope import control_records, control_schemas
from incsnap.envelope.sources import SourceConstants
from incsnap.mysql.table_definitions import shown
from incsnap.tables import TableId
from tests.golden.golden_file import read_golden
from tests.golden.statements import DATABASE, statements
from tests.golden.written_json import dump, parse

_GOLDEN = Path(__file__).parents[2] / "golden"
#: Debezium gives CHAR(0) and VARCHAR(0) the length 10.
_NO_LENGTH = {("texts", "v0"), ("texts", "c0")}


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return read_golden(_GOLDEN / "schema-changes.json").topics["schema-changes"]


def test_definitions_are_read_from_show_create_table_as_debezium_reads_them(records: list[dict[str, Any]]) -> None:
    compared = 0
    for record in records:
        value = record["value"]["payload"]
        for change in value["tableChanges"]:
            # A long text is not in the golden file, and a statement of a user is not what the server prints.
            if value["source"]["snapshot"] is None or change["table"] is None or value["ddl"].startswith("SHA-256"):
                continue
            ours = shown(value["ddl"])
            for column in ours["columns"]:
                if (value["source"]["table"], column["name"]) in _NO_LENGTH:
                    column["length"] = 10
            assert ours == change["table"]
            compared += 1
    assert compared > 40


def test_the_same_statements_are_told_with_the_same_text(records: list[dict[str, Any]]) -> None:
    parsed = [
        each
        for text in statements("changes.sql")
        for each in table_statements(text.replace("{database}", DATABASE), DATABASE)
        if each.table is not None
    ]
    # The binlog and the definition behind these statements decide whether they define anything.
    undecided = {each.ddl for each in parsed if each.if_absent or each.index}
    theirs = [
        (value["ddl"], [(change["type"], change["id"]) for change in value["tableChanges"]])
        for value in (record["value"]["payload"] for record in records)
        if value["source"]["snapshot"] is None and value["ddl"] not in undecided
    ]
    ours = [
        (each.ddl, [(each.type, control_records.table_change("", each.table, None)["id"])])
        for each in parsed
        if each.table is not None and each.ddl not in undecided
    ]
    # CREATE TABLE ... AS SELECT is logged in other words than its author's.
    assert [each for each in ours if "AS SELECT" not in each[0]] == [
        each for each in theirs if "START TRANSACTION" not in each[0]
    ]


def test_schemas_are_those_of_debezium(records: list[dict[str, Any]]) -> None:
    assert parse(schema_json(control_schemas.SCHEMA_CHANGE_KEY)) == records[0]["key"]["schema"]
    assert parse(schema_json(control_schemas.SCHEMA_CHANGE_VALUE)) == records[0]["value"]["schema"]
    (record, *_) = read_golden(_GOLDEN / "transactions.json").topics["transactions.transaction"]
    assert parse(schema_json(control_schemas.TRANSACTION_KEY)) == record["key"]["schema"]
    assert parse(schema_json(control_schemas.TRANSACTION_VALUE)) == record["value"]["schema"]


def test_values_have_the_fields_of_their_schemas_in_order(records: list[dict[str, Any]]) -> None:
    theirs = records[-1]["value"]["payload"]
    source = SourceConstants("f", 4, 1_000_500, 1, "g:1", 7, snapshot="false")
    change = control_records.table_change("ALTER", TableId("d", 'a"b'), {"columns": []})
    ours = control_records.schema_change("1", "p", source, "d", "t", "ALTER", [change], 2)
    assert list(ours) == list(theirs)
    assert list(ours["source"]) == list(theirs["source"])
    assert change["id"] == '"d"."a""b"'
    assert dump(ours["source"]["ts_ms"]) == "1000"
    ends = control_records.transaction_ends("g:1", 1_000_500, [("d.t", 2), ("d.u", 1)])
    assert [name for name, _ in control_schemas.TRANSACTION_VALUE.fields] == list(ends)
    assert list(control_records.transaction_begins("g:1", 5)) == list(ends)
    assert ends["event_count"] == 3
    assert ends["ts_ms"] == 1000


def test_a_key_is_the_first_unique_one_without_nulls_and_expressions() -> None:
    definition = shown(
        "CREATE TABLE `t` (\n  `a` int NOT NULL,\n  `b` int DEFAULT NULL,\n  `c` varchar(9) NOT NULL DEFAULT 'x,(y',\n"
        "  UNIQUE KEY `nullable` (`b`),\n  UNIQUE KEY `made` ((`a` + 1)),\n  UNIQUE KEY `good` (`c`(3),`a`),\n"
        "  KEY `other` (`a`)\n) ENGINE=InnoDB DEFAULT CHARSET=latin1"
    )
    assert definition["primaryKeyColumnNames"] == ["c", "a"]
    assert [column["charsetName"] for column in definition["columns"]] == [None, None, "latin1"]
    assert definition["columns"][2]["defaultValueExpression"] == "x,(y"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE DATABASE IF NOT EXISTS `x y`", [("DATABASE", "x y", None)]),
        ("DROP SCHEMA x", [("DATABASE", "x", None)]),
        ("ALTER DATABASE x CHARACTER SET utf8mb3", [("TEXT", "x", None)]),
        ("CREATE UNIQUE INDEX i ON a.t (b)", [("ALTER", "a", "t")]),
        ("CREATE INDEX i ON t (b)", [("TEXT", "db", None)]),
        ("CREATE FULLTEXT INDEX i ON t (b)", [("TEXT", "db", None)]),
        ("create spatial index i on t (b)", [("TEXT", "db", None)]),
        ("DROP INDEX i ON t", [("TEXT", "db", None)]),
        ("CREATE TEMPORARY TABLE t (a INT)", []),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", []),
        ("TRUNCATE TABLE t", []),
        ("RENAME TABLE a TO b, x.c TO y.d", [("ALTER", "db", "b"), ("ALTER", "y", "d")]),
        ("alter table t rename column a to b", [("ALTER", "db", "t")]),
        ("/*!80000 ALTER */ TABLE t ADD a INT /* RENAME TO u */", [("ALTER", "db", "t")]),
        ("DROP TABLE", []),
        ("", []),
        ("GRANT SELECT ON t TO u", []),
    ],
)
def test_what_a_statement_is_about(sql: str, expected: list[tuple[str, str, str | None]]) -> None:
    parsed = [(each.type, each.database, each.table and each.table.table) for each in table_statements(sql, "db")]
    assert parsed == expected


def test_a_drop_of_several_tables_is_one_statement_a_table() -> None:
    parsed = table_statements("drop table if exists a, `x`.`b` /* generated by server */ cascade", "db")
    assert [each.ddl for each in parsed] == [
        "DROP TABLE IF EXISTS `db`.`a` CASCADE",
        "DROP TABLE IF EXISTS `x`.`b` CASCADE",
    ]


@pytest.mark.parametrize(
    ("sql", "ddl"),
    [
        ("RENAME TABLE a TO b", ["RENAME TABLE a TO b"]),
        ("rename  tables a TO b,\n `x,y`.`c` TO d", ["rename  tables a TO b", "rename  tables `x,y`.`c` TO d"]),
        ("/* x */ RENAME TABLE a TO b, c TO d # y", ["RENAME TABLE a TO b", "RENAME TABLE c TO d"]),
    ],
)
def test_a_rename_of_several_tables_is_one_statement_a_table(sql: str, ddl: list[str]) -> None:
    assert [each.ddl for each in table_statements(sql, "db")] == ddl


@pytest.mark.parametrize(
    ("sql", "ddl"),
    [
        ("/* app=1 */ ALTER TABLE a /* within */ ADD b INT /* x */", "ALTER TABLE a /* within */ ADD b INT"),
        ("-- x\n  CREATE TABLE a (b INT DEFAULT '/*') -- y\n", "CREATE TABLE a (b INT DEFAULT '/*')"),
        ("# x\nCREATE DATABASE a # y", "CREATE DATABASE a"),
        ("/*!80000 CREATE TABLE a (b INT) */ /* x */", "/*!80000 CREATE TABLE a (b INT) */"),
        ("/* x */ CREATE UNIQUE INDEX i ON a (b)", "CREATE UNIQUE INDEX i ON a (b)"),
        ("/* x */ CREATE INDEX i ON a (b) /* y */", "/* x */ CREATE INDEX i ON a (b) /* y */"),
    ],
)
def test_comments_around_a_statement_are_left_out_except_of_a_text(sql: str, ddl: str) -> None:
    assert [each.ddl for each in table_statements(sql, "db")] == [ddl]


def test_a_literal_that_is_no_text_is_told_as_the_server_prints_it() -> None:
    (column,) = shown("CREATE TABLE `t` (\n  `e` enum(x'FF41','b') CHARACTER SET binary DEFAULT NULL\n)")["columns"]

    assert (column["typeName"], column["length"], column["enumValues"]) == ("ENUM", 1, ["x'FF41'", "'b'"])
