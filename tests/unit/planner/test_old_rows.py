"""Tests of `OldRows` without a server: of which tables it says that what they were is not known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.files import Files
from incsnap.ddl.old_rows import DefinedColumn, DefinedTable
from incsnap.ddl.statements import schema_change
from incsnap.events import SchemaChange, Session, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.old_rows import OldRows, defined_files
from incsnap.planner.signal_commands import CapturedTables
from incsnap.snapshot.commands import Command, Execute
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with

T = TableId("shop", "t")
_AS_NOW = {T: DefinedTable((DefinedColumn("id", "int", nullable=False),), ("id",))}


def change(sql: str) -> SchemaChange:
    made = schema_change(sql, "shop")
    assert made is not None
    return replace(made, session=Session("shop"), has_xid=True)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("statements", "is_warned_of"),
    [
        (["DROP TABLE t", "RENAME TABLE t_new TO t"], True),
        (["DROP TABLE t", "ALTER TABLE t_new RENAME TO t"], True),
        (["DROP TABLE t", "RENAME TABLE t_new TO t", "CREATE INDEX i ON t (id)"], True),
        (["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)"], False),
    ],
)
def test_rows_that_a_rename_brings_in_place_of_a_dropped_table_are_warned_of(
    statements: list[str], is_warned_of: bool, apart: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`apart`: the table is compared between the DROP and the next statement."""
    settings = loaded_with(table__include__list=r"shop\.t", incsnap__online__ddl__reread="changed").settings
    old_rows = OldRows(settings.snapshot, settings.tables, settings.columns, defined_files(Files(str(tmp_path))))
    offset = Offset("job", 1, StreamPosition(GtidSet(), "", 0), TopicLayout(1, {}))
    made = [change(sql) for sql in statements]
    for changes in ([], [made[0]], made[1:]) if apart else ([], made):
        definitions = {} if changes == made[:1] else _AS_NOW

        def asking(_: Any, now: dict[TableId, DefinedTable] = definitions) -> Any:
            return now, ()

        connection: Any = None
        commands, positions = old_rows.commands(offset, changes, asking, connection, lambda: CapturedTables((T,)), ())
        assert commands == ()
        offset = replace(offset, batch=offset.batch + 1, signal_positions=positions)

    assert ("it is not known what shop.t was" in caplog.text) == is_warned_of


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("reread", ["changed", "all"])
@pytest.mark.parametrize(
    ("statements", "is_read"),
    [
        (["ALTER TABLE t ADD c DATETIME DEFAULT CURRENT_TIMESTAMP"], True),
        (["ALTER TABLE t ADD c DATETIME DEFAULT NOW()", "CREATE INDEX i ON t (id)"], True),
        (["ALTER TABLE t RENAME COLUMN a TO b"], True),
        (["ALTER TABLE t ADD PRIMARY KEY (id)"], True),
        (["ALTER TABLE t ADD c INT, AN UNKNOWN CLAUSE"], True),
        (["/*!40000 ALTER TABLE t DISABLE KEYS */", "/*!40000 ALTER TABLE t ENABLE KEYS */"], False),
        (["ALTER TABLE t ADD INDEX i (a)"], False),
        (["ALTER TABLE t ADD c DATETIME DEFAULT NOW()", "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY)"], False),
    ],
)
def test_a_table_that_is_altered_before_its_first_comparison_is_read_again(
    statements: list[str], is_read: bool, reread: str, apart: bool, with_rows: bool, tmp_path: Path
) -> None:
    """Seed rows lie between the CREATE and the next statement, or in the CREATE (`with_rows`: CREATE TABLE ... SELECT).

    `apart`: a backlog waits behind the CREATE.
    """
    settings = loaded_with(table__include__list=r"shop\.t", incsnap__online__ddl__reread=reread).settings
    old_rows = OldRows(settings.snapshot, settings.tables, settings.columns, defined_files(Files(str(tmp_path))))
    offset = Offset("job", 1, StreamPosition(GtidSet(), "", 0), TopicLayout(1, {}))
    made = [change(sql) for sql in ("CREATE TABLE t (id INT, a INT)", *statements)]
    if with_rows:
        # The server logs CREATE TABLE ... SELECT in the transaction of its rows.
        made[0] = replace(
            change("CREATE TABLE t (id INT, a INT) START TRANSACTION"), has_xid=False, in_transaction=True
        )
    commands: tuple[Command, ...] = ()

    def asking(_: Any) -> Any:
        return _AS_NOW, ()

    for changes in (made[:1], made[1:]) if apart else (made,):
        connection: Any = None
        commands, positions = old_rows.commands(
            offset, changes, asking if changes[-1] is made[-1] else None, connection, lambda: CapturedTables((T,)), ()
        )
        offset = replace(offset, batch=offset.batch + 1, signal_positions=positions)
    assert [isinstance(command, Execute) for command in commands] == [True] * is_read


ID = DefinedColumn("id", "int", nullable=False)
A = DefinedColumn("a", "int")
SSN = DefinedColumn("ssn", "varchar(11)", charset="utf8mb4")
OTHER_SSN = replace(SSN, type="varbinary(16)", charset="")
COUNTED = DefinedColumn("n", "int", nullable=False, counted=True)


LEFT_OUT = {"column__exclude__list": r".*\.(ssn|n)"}


@pytest.mark.parametrize(
    ("clauses", "after", "key", "is_read"),
    [
        ("MODIFY ssn VARBINARY(16)", (ID, A, OTHER_SSN), ("id",), {"changed": False, "all": True}),
        ("ADD n INT NOT NULL AUTO_INCREMENT UNIQUE", (ID, A, SSN, COUNTED), ("id",), {"changed": False, "all": True}),
        ("DROP ssn", (ID, A), ("id",), {"changed": False, "all": True}),
        ("MODIFY a VARCHAR(9)", (ID, replace(A, type="varchar(9)"), SSN), ("id",), {"changed": True, "all": True}),
        # A column that was left out comes under another name.
        ("CHANGE ssn shown VARCHAR(11)", (ID, A, replace(SSN, name="shown")), ("id",), {"changed": True, "all": True}),
        # The key of records has its columns, whatever the settings leave out.
        ("MODIFY ssn VARBINARY(16)", (ID, A, OTHER_SSN), ("ssn",), {"changed": True, "all": True}),
    ],
)
@pytest.mark.parametrize("reread", ["changed", "all"])
@pytest.mark.parametrize("lists", [LEFT_OUT, {"column__include__list": r"shop\.t\.(id|a|shown)"}])
def test_changed_does_not_count_columns_that_are_not_captured(
    clauses: str,
    after: tuple[DefinedColumn, ...],
    key: tuple[str, ...],
    is_read: dict[str, bool],
    reread: str,
    lists: dict[str, str],
    tmp_path: Path,
) -> None:
    settings = {**lists, "incsnap__online__ddl__reread": reread}

    assert is_read_behind(f"ALTER TABLE t {clauses}", after, key, settings, tmp_path) == is_read[reread]


def test_changed_counts_a_column_of_the_message_key_that_rows_leave_out(tmp_path: Path) -> None:
    settings = {**LEFT_OUT, "incsnap__online__ddl__reread": "changed", "message__key__columns": "shop.t:ssn"}

    assert is_read_behind("ALTER TABLE t MODIFY ssn VARBINARY(16)", (ID, A, OTHER_SSN), ("id",), settings, tmp_path)


def is_read_behind(
    sql: str, after: tuple[DefinedColumn, ...], key: tuple[str, ...], given: dict[str, str], folder: Path
) -> bool:
    """Return True if the statement, which gives the table the columns `after`, lets the table be read again."""
    settings = loaded_with(table__include__list=r"shop\.t", **given).settings
    old_rows = OldRows(settings.snapshot, settings.tables, settings.columns, defined_files(Files(str(folder))))
    offset = Offset("job", 1, StreamPosition(GtidSet(), "", 0), TopicLayout(1, {}))
    commands: tuple[Command, ...] = ()
    for changes, columns in (([], (ID, A, SSN)), ([change(sql)], after)):

        def asking(_: Any, now: tuple[DefinedColumn, ...] = columns) -> Any:
            return {T: DefinedTable(now, key)}, ()

        connection: Any = None
        commands, positions = old_rows.commands(offset, changes, asking, connection, lambda: CapturedTables((T,)), ())
        offset = replace(offset, batch=offset.batch + 1, signal_positions=positions)
    return [each.table for command in commands if isinstance(command, Execute) for each in command.collections] == [T]


U = TableId("shop", "u")
_CREATED = DefinedColumn("c", "datetime", default="CURRENT_TIMESTAMP", computed=True)


@pytest.mark.parametrize("snapshots", ["", r"shop\.t"], ids=["all", "u left out"])
def test_a_table_of_wider_lists_is_read_again_behind_its_first_alter(
    snapshots: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left_out = {"snapshot__include__collection__list": snapshots} if snapshots else {}
    settings = loaded_with(
        table__include__list=r"shop\.t,shop\.u", incsnap__online__ddl__reread="changed", **left_out
    ).settings
    old_rows = OldRows(settings.snapshot, settings.tables, settings.columns, defined_files(Files(str(tmp_path))))
    offset = Offset("job", 1, StreamPosition(GtidSet(), "", 0), TopicLayout(1, {}))
    commands: tuple[Command, ...] = ()
    alter = change("ALTER TABLE u ADD c DATETIME DEFAULT CURRENT_TIMESTAMP")
    # The position of the channel `tables` names the lists of the start before.
    for lists, changes, columns in (
        ("of-t", [], (ID,)),
        ("of-t-and-u", [], (ID,)),
        ("of-t-and-u", [alter], (ID, _CREATED)),
    ):
        tables = (T,) if lists == "of-t" else (T, U)

        def asking(_: Any, asked: tuple[TableId, ...] = tables, now: tuple[DefinedColumn, ...] = columns) -> Any:
            return {table: DefinedTable(now if table == U else (ID,), ("id",)) for table in asked}, ()

        connection: Any = None
        offset = replace(offset, signal_positions={**offset.signal_positions, "tables": lists})
        commands, positions = old_rows.commands(
            offset, changes, asking, connection, partial(CapturedTables, tables), ()
        )
        offset = replace(offset, batch=offset.batch + 1, signal_positions=positions)

    asked = [each.table for command in commands if isinstance(command, Execute) for each in command.collections]
    assert asked == ([] if snapshots else [U])
    assert "it is not known" not in caplog.text
    assert ("snapshot.include.collection.list leaves the table out" in caplog.text) == bool(snapshots)
