"""Tests of the snapshot that `snapshot.mode` asks for."""

from __future__ import annotations

from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.signal_commands import CapturedTables
from incsnap.planner.start_snapshot import StartSnapshot, first_positions
from incsnap.snapshot.commands import Execute
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with


def test_tables_are_read_in_the_order_of_the_include_list() -> None:
    settings = loaded_with(
        table__include__list=r"shop\.orders,shop\.c.*,shop\.addresses", snapshot__mode="initial"
    ).settings
    tables = tuple(TableId("shop", name) for name in ("addresses", "carts", "customers", "orders"))
    start = Offset(
        "job",
        0,
        StreamPosition(GtidSet(), "binlog.000001", 4),
        TopicLayout(1),
        signal_positions=first_positions(settings.snapshot),
    )
    at_start = StartSnapshot(settings.snapshot, settings.tables, "run")

    (command,), _ = at_start.commands(start, lambda: CapturedTables(tables))

    assert isinstance(command, Execute)
    assert [each.table.table for each in command.collections] == ["orders", "carts", "customers", "addresses"]
