"""Tests of `OldRows` without a server: of which tables it says that what they were is not known."""

from __future__ import annotations

from dataclasses import replace
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
    old_rows = OldRows(settings.snapshot, settings.tables, defined_files(Files(str(tmp_path))))
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
