"""The planner's part in online schema changes: it follows the tables of tools from batch to batch.

A file beside the checkpoint, which the offset names, has the tables of tools at a batch's end. So a restart between the
ALTER of a copy and its RENAME loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import kept_first_offset
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.status import newest_offset
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.config.settings import Settings
from incsnap.ddl.follow import follow
from incsnap.ddl.online_changes import Swap, with_steps
from incsnap.ddl.online_names import PT_OSC, altered_by_name, altered_by_pt
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.ddl.table_definition import Definitions
from incsnap.errors import IncsnapError, StoreFailed
from incsnap.events import SchemaChange
from incsnap.mysql.catalog import database_charsets, shape_of, tables
from incsnap.mysql.online_tables import captured_tables, online_tables
from incsnap.planner.definitions import WAIT_SECONDS, DefinitionsAt, NotCertain
from incsnap.planner.newly_watched import NewlyWatched
from incsnap.snapshot.commands import Command, Report
from incsnap.snapshot.notifications import ONLINE_DDL_SWAP, ONLINE_DDL_TABLE
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableId


class OnlineDdl:
    """The tables of tools, for one planner. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self.leaves_out = settings.online_ddl_tables == "ignore"  #: whether tables of tools are not captured
        self._included = settings.tables
        self._files = ValueFiles(files, "online", "the tables of tools for online schema changes", OnlineTables)
        self._new = NewlyWatched(settings, files)

    def begin(self, start: Offset, connection: Connection[Any]) -> None:
        """Ask the server for the tables of tools that the job cannot know at `start`.

        Call this before the stream begins.
        """
        if self.leaves_out:
            self._new.ask(start, connection)

    def at(self, offset: Offset) -> OnlineTables | None:
        """Return the tables of tools at the end of a batch; None if they are captured like any other."""
        if not self.leaves_out:
            return None
        kept, new = self._files.read(offset.online) if offset.online else OnlineTables(), self._new.at(offset)
        # A job that begins again knows them already.
        added = [each for each in new.tables if not kept.has(each.table.folded)]
        return OnlineTables((*kept.tables, *added), kept.away) if added else kept

    def keep(self, online: OnlineTables) -> str:
        """Write the tables of tools beside the checkpoint. Return the file's name, "" if there are none."""
        return self._files.keep(online) if online.tables or online.away else ""

    def begun_again(self, before: Offset, connection: Connection[Any]) -> str:
        """Write the tables of tools for a job that begins again, and return the file's name, "" if there are none.

        The server shows runs that are under way. Only the offset `before` of the old job tells which tables are former
        ones, and a damaged checkpoint tells it no more. Statements that were not seen may have changed rows of the
        altered table alone, so a former table does not count as fed.
        """
        if not self.leaves_out:
            return ""
        kept = OnlineTables()
        with suppress(CheckpointDamaged):
            kept = self.at(before) or kept
        existing = tables(connection, self._included.of_whole_databases())
        names = {table.folded for table in existing}
        stays = (each for each in kept.tables if each.role == "former" and each.table.folded in names)
        former = (replace(each, is_fed=False) for each in stays)
        return self.keep(OnlineTables((*former, *online_tables(connection, existing).tables)))

    def forget(self, end: Offset) -> None:
        """Delete files that are not needed any more. The batch that ends at `end` is done."""
        self._files.forget(end.online, end.batch)

    def follow(
        self, start: Offset, advance: Advance, tail: Tail, connection: Connection[Any], *, same_server: bool
    ) -> tuple[Advance, OnlineTables, tuple[Command, ...]]:
        """Return the batch after `start` with the meaning of its statements, the tables of tools at its end, and the
        notifications about them.

        A later statement may tell whose table a statement of the batch has made. So the tail reads on to the end of the
        binlog before such a batch, if it can in `WAIT_SECONDS`. `same_server` is that of `DefinitionsAt`. A job's first
        batch, and the first one with wider lists, report the tables of runs that are under way. Runs on tables that are
        not captured are not reported.
        """
        before = self.at(start)
        if before is None:
            return advance, OnlineTables(), ()
        if not advance.changes and not before.tables:
            return advance, before, ()
        watches, written = self._included.may_include_database, {table.folded for table in advance.tables}
        batch = with_steps(before, advance.changes, watches, written=written)
        if advance.changes and not all(each.is_certain for each in batch.tables.tables):
            try:
                _, later = DefinitionsAt(connection, tail, advance.end, same_server).answer(lambda: None, WAIT_SECONDS)
            except NotCertain:
                later = tail.changes_behind(advance.end, (advance.end.file, advance.end.pos), 0.0) or ()
            batch = with_steps(before, advance.changes, watches, later, written)
        changes, after = self._alike(batch.changes, _without_rows(batch.tables, written), connection)
        under_way = self._new.at(start) if start.batch else before
        recognised = (*under_way.certain(), *batch.recognised)
        reports = _reports(f"online-ddl-{start.batch + 1}", recognised, batch.swaps, self._included.included)
        commands = tuple(reports)
        return replace(advance, changes=changes), after, commands

    def _alike(
        self, changes: tuple[SchemaChange, ...], online: OnlineTables, connection: Connection[Any]
    ) -> tuple[tuple[SchemaChange, ...], OnlineTables]:
        """Hide the statements about a table that was created with exactly the columns of a captured one, under the name
        of its copy.

        pt-online-schema-change makes its triggers a moment later. Only they make the copy the tool's, and it has no
        rows before.
        """
        known = {each.table.folded: each for each in online.tables}
        for number, change in enumerate(changes):
            for key, each in list(known.items()):
                if each.is_certain or not change.touches(each.table):
                    continue
                if not each.is_alike and each.tool == PT_OSC and self._is_copy(change, each, connection):
                    known[key] = each = replace(each, is_alike=True)
                if each.is_alike:
                    step = replace(change.online, hidden=change.online.hidden | {each.table})
                    change = replace(change, online=step)
            changes = (*changes[:number], change, *changes[number + 1 :])
        return changes, replace(online, tables=tuple(known.values()))

    def _is_copy(self, change: SchemaChange, copy: OnlineTable, connection: Connection[Any]) -> bool:
        """Return True if the statement creates the table `copy` with the columns and the key of a captured table."""
        of = [table for table in altered_by_pt(copy.table) if self._included.included(table)]
        created = follow(change, Definitions({}, database_charsets(connection))).known.tables.get(copy.table)
        if created is None:
            return False
        shapes = [shape for table in of if (shape := shape_of(connection, table)) is not None]
        return any(created.shape == replace(shape, id=copy.table) for shape in shapes)


def _altered_table(each: OnlineTable) -> TableId:
    """Return the table that the tool alters, or the tool's table itself if nothing tells which table that is."""
    return each.of or TableId(each.table.database, altered_by_name(each.table.table) or each.table.table)


def _without_rows(online: OnlineTables, written: Collection[str]) -> OnlineTables:
    """Return `online` without tables that look like copies and have rows before a trace of a tool: they are tables like
    any other. `written`: as in `with_steps`."""
    left = tuple(each for each in online.tables if each.is_certain or each.table.folded not in written)
    return online if len(left) == len(online.tables) else replace(online, tables=left)


def online_tables_at(settings: Settings, saved: Offset | None) -> OnlineTables:
    """Return the tables that the offset `saved` knows as those of tools for online schema changes.

    A table that a copy has replaced has no trace of the tool on the server.
    """
    online = None
    if saved is not None:
        with suppress(CheckpointDamaged, StoreFailed, OSError, ValueError):  # the start of the job says what is wrong
            online = OnlineDdl(settings, Files(own_part(settings.checkpoint_location))).at(saved)
    return online or OnlineTables()


def online_tables_at_newest(settings: Settings) -> OnlineTables:
    """Return what `online_tables_at` returns for the newest committed offset.

    If no batch is done, that is the job's first offset. Return no table if the checkpoint cannot be read.
    """
    set_access(settings.checkpoint_location, settings.store)
    try:
        saved = newest_offset(settings.checkpoint_location.rstrip("/"), "commits") or kept_first_offset(
            Files(own_part(settings.checkpoint_location))
        )
    except (IncsnapError, OSError, ValueError, NotImplementedError):
        return OnlineTables()
    return online_tables_at(settings, saved)


def captured_by_job(connection: Connection[Any], settings: Settings, named: Collection[str] = ()) -> list[TableId]:
    """Return what `captured_tables` returns, without former tables of tools: the job's checkpoint tells of these."""
    of_tools = online_tables_at_newest(settings).names()
    existing = captured_tables(connection, settings, named)
    return [table for table in existing if str(table) in named or table.folded not in of_tools]


def _reports(
    name: str, recognised: tuple[OnlineTable, ...], swaps: tuple[Swap, ...], included: Callable[[TableId], bool]
) -> Iterator[Command]:
    """Yield a notification for each table that is recognised in the batch, and for each swap, if the altered table is
    captured.

    The notification of the swap names the former table. `included`: whether a table is captured.
    """
    for each in recognised:
        if each.role != "former" and included(_altered_table(each)):
            altered = (("altered", str(each.of)),) if each.of is not None else ()
            trace = (("tool", each.tool), *altered, ("trace", each.trace))
            yield Report(name, ONLINE_DDL_TABLE, (("data_collections", str(each.table)), *trace))
    for swap in filter(lambda swap: included(swap.table), swaps):
        former = (("former", str(swap.former)),) if swap.former is not None else ()
        yield Report(name, ONLINE_DDL_SWAP, (("data_collections", str(swap.table)), ("tool", swap.tool), *former))
