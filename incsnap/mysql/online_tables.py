"""The tables of tools for online schema changes that a server has now, with their traces."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.config.settings import Settings
from incsnap.ddl.online_names import (
    GH_OST,
    PT_OSC,
    SPIRIT,
    TRIGGERS,
    altered_by,
    altered_by_name,
    altered_by_pt,
    confirms,
    copy_tool,
    ghost_beside,
    is_common_checkpoint,
    is_former_name,
    log_trace,
    looks_like_a_tools,
    may_be_pt_copy,
)
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.errors import PreflightFailed, shorten
from incsnap.events import UNKNOWN
from incsnap.mysql.catalog import tables
from incsnap.mysql.granted import tables_without
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.tables import TableId

_log = logging.getLogger(__name__)
_WRITTEN = re.compile(r"\b(?:INTO|FROM)\s+`((?:[^`]|``)+)`\s*\.\s*`((?:[^`]|``)+)`", re.IGNORECASE)


def captured_tables(connection: Connection[Any], settings: Settings, named: Collection[str] = ()) -> list[TableId]:
    """Return the captured tables that exist now, in the order of their names.

    Tables of tools that a job with `settings` leaves out are not among them, except those that `named` has as
    database.table.
    """
    # Asked first: a tool may make its tables between the two questions.
    existing = tables(connection, settings.tables)
    of_tools = tables_of_tools(connection, settings).names()
    return [table for table in existing if str(table) in named or table.folded not in of_tools]


def tables_of_tools(connection: Connection[Any], settings: Settings) -> OnlineTables:
    """Return the tables of tools that a job with `settings` leaves out, as the server shows them now.

    A former table is not among them: only the swap tells of it, and only a job's checkpoint remembers the swap.
    """
    if settings.online_ddl_tables != "ignore":
        return OnlineTables()
    return online_tables(connection, tables(connection, settings.tables.of_whole_databases()))


def refuse_half_swap(connection: Connection[Any], settings: Settings, of_tools: OnlineTables) -> None:
    """Raise PreflightFailed if gh-ost has renamed a captured table, and the copy has not taken its name yet.

    A new job would take the renamed table for an ordinary one, and would not read the rows of the copy. `of_tools`: the
    result of `tables_of_tools`.
    """
    changelogs = [each.table for each in of_tools.certain() if ghost_beside(each.table.table)]
    existing = tables(connection, settings.tables.of_whole_databases()) if changelogs else []
    names = {table.folded for table in existing}
    for log in changelogs:
        of = TableId(log.database, altered_by_name(log.table))
        if of.folded in names or not settings.tables.included(of):
            continue
        beside = (table for table in existing if table.database == of.database)
        formers = ", ".join(str(table) for table in beside if is_former_name(table.table, of.table, GH_OST))
        if formers:
            raise PreflightFailed(
                f"gh-ost is between the two renames of its cut-over: there is {shorten(formers)}, and no {of}",
                "Start the job again when gh-ost has ended. If gh-ost was killed, RENAME its copy or the former table"
                f" to {of.sql}, and DROP TABLE {log.sql}.",
            )


def online_tables(connection: Connection[Any], existing: Collection[TableId]) -> OnlineTables:
    """Return those of the tables `existing` that belong to tools by their names and traces."""
    if not existing:
        return OnlineTables()
    named = [table for table in existing if looks_like_a_tools(table.table)]
    logs = _logs(connection, named) if named else []
    # pt-online-schema-change may be told any name for its copy.
    copies = {each.table.folded: each for each in _pt_copies(connection, sorted({each.database for each in existing}))}
    for log in logs:
        beside = [table for table in named if table.database == log.table.database]
        # gh-ost may be told to derive the names of its tables from another name. The altered table is then not known.
        filled = [_copy(copy, log, None) for copy in beside if copy.table.lower() == ghost_beside(log.table.table)]
        for table in _altered(connection, log, existing):
            filled += [_copy(copy, log, table) for copy in beside if copy_tool(copy.table, table.table, "") == log.tool]
        copies |= {each.table.folded: each for each in filled}
    _warn_of_hidden_triggers(connection, existing, copies)
    # A trigger may spell the table otherwise than the server.
    known = [replace(copies[table.folded], table=table) for table in sorted(existing) if table.folded in copies]
    return OnlineTables((*logs, *known))


def _warn_of_hidden_triggers(
    connection: Connection[Any], existing: Collection[TableId], known: Collection[str]
) -> None:
    """Warn of tables with the name of a copy of pt-online-schema-change, if the user would not see the tool's triggers.

    `known`: tables that are certainly copies, as `TableId.folded` gives them.
    """
    altered = {
        table: copy
        for copy in existing
        if may_be_pt_copy(copy.table) and copy.folded not in known
        for table in altered_by_pt(copy)
        if table in existing
    }
    hidden = tables_without("TRIGGER", altered, connection)
    if hidden:
        _log.warning(
            "%s may be filled by pt-online-schema-change, and is captured all the same: the user may not see triggers"
            " of %s. GRANT TRIGGER on it to the user if such a tool runs.",
            shorten(", ".join(str(altered[table]) for table in hidden)),
            shorten(", ".join(map(str, hidden))),
        )


def _copy(table: TableId, log: OnlineTable, of: TableId | None) -> OnlineTable:
    return OnlineTable(table, log.tool, "copy", of, f"its name, beside {log.table}", UNKNOWN)


def _altered(connection: Connection[Any], log: OnlineTable, existing: Collection[TableId]) -> Iterator[TableId]:
    """Yield those of the tables `existing` that the tool alters, as its table `log` tells."""
    named = frozenset[str]()
    if is_common_checkpoint(log.table.table):
        named = _of_common_checkpoint(connection, log.table)
    for table in existing:
        is_beside = table.database == log.table.database
        if is_beside and (table.folded in named or confirms(log.table.table, log.tool, table.table)):
            yield table


def _of_common_checkpoint(connection: Connection[Any], checkpoint: TableId) -> frozenset[str]:
    """Return the tables that spirit alters in the run of this checkpoint, as `TableId.folded` gives them.

    spirit writes the first row 50 s behind the run's beginning. Return no table before, and if the user may not read
    the row.
    """
    try:
        rows = query(connection, f"SELECT statement FROM {checkpoint.sql} ORDER BY id DESC LIMIT 1")
    except QueryRefusedError as error:
        if error.code != ER.NO_SUCH_TABLE:  # the run may just have ended
            repair = " GRANT SELECT on it to the user." if error.code == ER.TABLEACCESS_DENIED_ERROR else ""
            _log.warning(
                "%s cannot be read, so tables that spirit fills are captured: %s.%s", checkpoint, error.message, repair
            )
        return frozenset()
    return altered_by("".join(str(statement) for (statement,) in rows), checkpoint.database)


def _logs(connection: Connection[Any], named: Sequence[TableId]) -> list[OnlineTable]:
    """Return the tables that hold what a tool notes of its run."""
    logs = []
    for database, name, comment, columns in query(
        connection,
        "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_COMMENT, (SELECT GROUP_CONCAT(COLUMN_NAME) FROM"
        " information_schema.COLUMNS c WHERE (c.TABLE_SCHEMA, c.TABLE_NAME) = (t.TABLE_SCHEMA, t.TABLE_NAME))"
        " FROM information_schema.TABLES t WHERE (t.TABLE_SCHEMA, t.TABLE_NAME) IN %s"
        " ORDER BY t.TABLE_SCHEMA, t.TABLE_NAME",
        (tuple((table.database, table.table) for table in named),),
    ):
        if trace := log_trace(str(name), f"{comment} {columns}"):
            logs.append(OnlineTable(TableId(str(database), str(name)), trace[0], "log", trace=trace[1]))
    return [each for each in logs if each.tool in (GH_OST, SPIRIT)]


def _pt_copies(connection: Connection[Any], databases: Sequence[str]) -> list[OnlineTable]:
    """Return the copies that triggers of pt-online-schema-change fill. A user without the right TRIGGER sees none."""
    copies = []
    for trigger, database, table, body in query(
        connection,
        "SELECT TRIGGER_NAME, EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM"
        " information_schema.TRIGGERS WHERE TRIGGER_NAME LIKE %s AND EVENT_OBJECT_SCHEMA IN %s ORDER BY TRIGGER_NAME",
        (f"{TRIGGERS}%", tuple(databases)),
    ):
        written = _WRITTEN.search(str(body))
        if written is not None:
            names = (name.replace("``", "`") for name in written.groups())
            copy, of = TableId(*names), TableId(str(database), str(table))
            trace = f"trigger {trigger} of {of} writes into it"
            copies.append(OnlineTable(copy, PT_OSC, "copy", of, trace, UNKNOWN))
    return copies
