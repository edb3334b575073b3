"""The planner's port to the signals: what the signal channels, `snapshot.mode`,
`snapshot.new.tables`, `incsnap.online.ddl.reread` and the comparison behind a gap ask for, as commands."""

from __future__ import annotations

from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.table_rows import Charsets
from incsnap.config.patterns import TableFilter
from incsnap.ddl.online_tables import OnlineTables
from incsnap.envelope.seam import RecordPlace
from incsnap.mysql.catalog import lower_case_table_names, tables
from incsnap.mysql.online_tables import online_tables
from incsnap.planner.asked_place import AskedPlace, AskedPlaces
from incsnap.planner.gap_lists import GapLists
from incsnap.planner.new_tables import NewTables
from incsnap.planner.old_rows import Asking, OldRows
from incsnap.planner.signal_commands import CapturedTables
from incsnap.planner.signal_inbox import SignalInbox
from incsnap.planner.start_snapshot import StartSnapshot
from incsnap.snapshot.commands import Command
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId, TableShape


class SignalPort:
    """The signals of one planner. `included` are the captured tables, `signal_table` is the signal table, if any.

    `leaves_out_tools`: whether tables of tools for online schema changes are not captured.
    """

    def __init__(
        self,
        inbox: SignalInbox,
        at_start: StartSnapshot,
        new_tables: NewTables,
        gap: GapLists,
        places: AskedPlaces,
        old_rows: OldRows,
        included: TableFilter,
        signal_table: TableId | None,
        *,
        leaves_out_tools: bool,
    ) -> None:
        self._inbox = inbox
        self._at_start = at_start
        self._new_tables = new_tables
        self._gap = gap
        self._places = places
        self._old_rows = old_rows
        self._included = included
        self._signal_table = signal_table
        self._leaves_out_tools = leaves_out_tools
        #: Whether this planner has planned a batch. Its first batch drops the tables that are not captured any more.
        self._has_begun = False

    def commands(
        self,
        start: Offset,
        advance: Advance,
        connection: Connection[Any],
        definitions: tuple[TableShape, ...],
        charsets: Charsets,
        online: OnlineTables,
        asking: Asking | None,
        least: RecordPlace | None,
    ) -> tuple[tuple[Command, ...], dict[str, Any]]:
        """Return the commands of the batch after `start`, and the position of each signal channel.

        `definitions` are those of tables whose rows do not name their columns. `online` are the tables of tools for
        online schema changes, which no signal may ask for. `asking` asks about definitions at the batch's end; None
        while a backlog waits. Another engine has obeyed the rows of the signal table before `least`; None: none of
        them.
        """
        captured = partial(self._captured, connection, start.snapshot, online)
        slices = [slice_.with_definitions(definitions) for slice_ in advance.signals]
        polled, positions = self._inbox.poll(
            slices, charsets, start.signal_positions, captured, str(advance.end), least
        )
        commands = tuple(each for each in polled if not isinstance(each, AskedPlace))
        places = (each for each in polled if isinstance(each, AskedPlace))
        self._places.keep(places, start, advance.end.delivered, connection)
        at_start, position = self._at_start.commands(start, captured)
        new, place = self._new_tables.commands(start, advance.changes, captured, reads_all=bool(at_start))
        repairs, closed = self._gap.commands(start, captured)
        asked = (*at_start, *repairs, *new, *commands)
        again, columns = self._old_rows.commands(start, advance.changes, asking, connection, captured, asked)
        return (*asked, *again), {**positions, **position, **place, **closed, **columns}

    def uncaptured(self, snapshot: SnapshotContext, online: OnlineTables) -> frozenset[TableId]:
        """Return the tables that are to be read and that are not captured.

        The settings may have changed since an earlier process, or a table belongs to a tool for online schema changes.
        """
        if self._has_begun and not online.tables:
            return frozenset()  # there may be thousands of tables, and this is asked for each batch
        unfinished = snapshot.unfinished()
        of_tools = frozenset(unfinished) - frozenset(online.without_tables_of_tools(unfinished))
        if self._has_begun:
            return of_tools
        return of_tools | frozenset(table for table in unfinished if not self._included.included(table))

    def begin(self) -> None:
        """Note that a batch is planned: no table can become uncaptured after this."""
        self._has_begun = True

    def close(self) -> None:
        """Close the consumer of the signal topic."""
        self._inbox.close()

    def _captured(self, connection: Connection[Any], snapshot: SnapshotContext, online: OnlineTables) -> CapturedTables:
        """Return the tables that a signal may ask for or stop.

        Dropped tables are among them while they are read or wait. So is a table that a tool for online schema changes
        has renamed, until its copy takes the name. The signal table itself is not data, though `.*` matches its name.
        Neither are tables of such tools, also those that the stream has not brought yet.
        """
        existing = self._existing(connection)
        names = {table.folded for table in existing}
        altered = (table for table in online.altered() if table.folded not in names)
        absent = (table for table in (*altered, *snapshot.unfinished()) if self._included.included(table))
        table_ids = online.without_tables_of_tools(dict.fromkeys((*existing, *absent)))
        return CapturedTables(
            tuple(table for table in table_ids if table != self._signal_table),
            ignore_case=lower_case_table_names(connection) != 0,
            signal_table=self._signal_table,
        )

    def _existing(self, connection: Connection[Any]) -> list[TableId]:
        """Return the captured tables that exist now and belong to no tool."""
        existing = tables(connection, self._included)
        if not self._leaves_out_tools:
            return existing
        return online_tables(connection, existing).without_tables_of_tools(existing)
