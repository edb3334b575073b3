"""MySQL before 8.0.28 prints `utf8mb3` as `utf8`. Its definitions are compared with table maps and newer servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from incsnap.binlog.protocol import wire_types
from incsnap.binlog.protocol.table_map import TABLE_ID_BYTES
from incsnap.binlog.table_rows import Charsets
from incsnap.checkpoint.content_files import ContentFiles
from incsnap.checkpoint.files import Files
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.ddl.follow import follow
from incsnap.ddl.old_rows import changed_columns
from incsnap.ddl.statements import schema_change
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.events import Session
from incsnap.mysql import catalog, defined_tables, row_definitions
from incsnap.planner import old_rows
from incsnap.planner.definition_files import definition_files
from incsnap.planner.definition_history import first_misfit
from incsnap.snapshot.dataclass_json import to_json
from incsnap.tables import TableId
from tests.support.packets import table_map

ORDERS = TableId("shop", "orders")
SESSION = Session("shop", 0, "utf8mb4", "utf8mb4", "utf8mb4", explicit_timestamps=True)
COLUMNS = {"id": ("int", "int", "NO", None), "v": ("varchar", "varchar(10)", "YES", 30)}
#: The table map of rows of `id int NOT NULL, v varchar(10), c int`, without names. 33 is the collation of `v`.
ROWS = table_map(
    [], [wire_types.LONG, wire_types.VARCHAR, wire_types.LONG], b"\x1e\0", [(1, b"\0"), (2, b"\x21")], nullable=6
)[TABLE_ID_BYTES:]
#: Stands for a connection. The fixture `server` answers the queries.
CONNECTION = cast(Any, None)


class Server:
    """A server with the table `shop.orders`, in a database whose default character set is that of the column `v`."""

    def __init__(self, utf8: str) -> None:
        self.utf8 = utf8  #: name by which the server prints the character set

    def query(self, _: Any, sql: str, __: Any = None) -> list[tuple[Any, ...]]:
        """Answer a query for definitions."""
        charsets = {"id": None, "v": self.utf8}
        place = ("shop", "orders")
        if sql.startswith("SHOW CREATE TABLE"):
            columns = "`id` int NOT NULL,\n  `v` varchar(10) DEFAULT NULL,\n  PRIMARY KEY (`id`)"
            return [("orders", f"CREATE TABLE `orders` (\n  {columns}\n) ENGINE=InnoDB DEFAULT CHARSET={self.utf8}")]
        if "COLLATIONS" in sql:
            return [(33, self.utf8), (255, "utf8mb4")]
        if "SCHEMATA" in sql:
            return [("shop", self.utf8)]
        if "STATISTICS" in sql:
            return [(*place, "id")]
        if "COLLATION_NAME" in sql:
            return [(*place, "v", f"{self.utf8}_general_ci")]
        if "GENERATION_EXPRESSION" in sql:
            return [
                (*place, name, declared, nullable, charsets[name], None, "", "")
                for name, (_, declared, nullable, _) in COLUMNS.items()
            ]
        assert "COLUMN_KEY" in sql
        return [
            (*place, "PRI" if name == "id" else "", name, kind, declared, nullable, charsets[name], octets, None, None)
            for name, (kind, declared, nullable, octets) in COLUMNS.items()
        ]

    def definition(self) -> TableDefinition:
        """Return the table as the job learns it from the server."""
        definitions, refused = row_definitions.row_definitions(CONNECTION, [ORDERS])
        assert not refused
        return definitions[ORDERS]

    def charsets(self) -> Charsets:
        return tuple(catalog.charsets(CONNECTION).items())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Server]:
    """Return a function that makes a server the one which answers from now on."""

    def begin(utf8: str) -> Server:
        made = Server(utf8)
        for module in (catalog, defined_tables, row_definitions):
            monkeypatch.setattr(module, "query", made.query)
        return made

    return begin


def kept(root: Path, folder: str, kind: Any, value: Any) -> str:
    """Write a value as it was kept before the server was upgraded, and return the file's name."""
    content = json.dumps(to_json(kind, value)).replace("utf8mb3", "utf8").encode()
    assert b'"utf8"' in content
    return ContentFiles(Files(str(root)), folder, "definitions").write(content)


def test_an_older_server_defines_a_table_as_a_newer_one_does(server: Callable[[str], Server]) -> None:
    newer = server("utf8mb3").definition()
    older = server("utf8")

    assert older.definition() == newer
    assert newer.charset == "utf8mb3"
    assert newer.keys
    assert catalog.collations_of(CONNECTION, [ORDERS]) == {ORDERS: {"v": "utf8mb3_general_ci"}}


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE orders ADD c INT",
        "ALTER TABLE orders MODIFY v VARCHAR(10) CHARACTER SET utf8, ADD c INT",
        "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(10), c INT)",
        "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(10), c INT) CHARSET=utf8",
        "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(10) COLLATE utf8_bin, c INT)",
    ],
)
def test_statements_on_an_older_server_are_followed(server: Callable[[str], Server], sql: str) -> None:
    older = server("utf8")
    tables = {ORDERS: older.definition()} if sql.startswith("ALTER") else {}
    change = schema_change(sql, "shop", sql_mode=0)
    assert change is not None

    followed = follow(replace(change, session=SESSION), Definitions(tables, catalog.database_charsets(CONNECTION)))

    assert not followed.lost
    assert not first_misfit([ROWS], followed.known.tables[ORDERS].shape, older.charsets())


def test_kept_definitions_stay_right_behind_an_upgrade(server: Callable[[str], Server], tmp_path: Path) -> None:
    upgraded = server("utf8mb3")
    definition = upgraded.definition()
    before = replace(definition.shape, id=TableId("shop", "before"))
    stored = BatchDefinitions(
        known=(definition.shape,), before=(before,), definitions=(definition,), databases=(("shop", "utf8mb3"),)
    )
    name = kept(tmp_path, "definitions", BatchDefinitions, stored)

    assert definition_files(Files(str(tmp_path))).read(name) == stored


def test_an_upgrade_is_no_conversion_of_a_column(server: Callable[[str], Server], tmp_path: Path) -> None:
    server("utf8")
    asked = defined_tables.defined_tables(CONNECTION, [ORDERS])
    server("utf8mb3")
    present = defined_tables.defined_tables(CONNECTION, [ORDERS])
    name = kept(tmp_path, "columns", old_rows.KnownTables, old_rows.KnownTables(tuple(present.items())))
    stored = dict(old_rows.defined_files(Files(str(tmp_path))).read(name).tables)

    for former in (asked, stored):
        assert changed_columns(former[ORDERS], present[ORDERS], {}) == ()
