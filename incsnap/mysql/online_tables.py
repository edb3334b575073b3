"""The tables of tools for online schema changes that a server has now, with their traces."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.ddl.online_names import (
    GH_OST,
    PT_OSC,
    SPIRIT,
    TRIGGERS,
    confirms,
    copy_tool,
    log_trace,
    looks_like_a_tools,
)
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.mysql.catalog import tables
from incsnap.mysql.session import query
from incsnap.tables import TableId

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


def online_tables(connection: Connection[Any], existing: Collection[TableId]) -> OnlineTables:
    """Return those of the tables `existing` that belong to tools by their names and traces."""
    if not existing:
        return OnlineTables()
    named = [table for table in existing if looks_like_a_tools(table.table)]
    logs = _logs(connection, named) if named else []
    # pt-online-schema-change may be told any name for its copy.
    copies = {each.table: each for each in _pt_copies(connection, sorted({table.database for table in existing}))}
    for table in existing:
        for log in logs:
            if log.table.database != table.database or not confirms(log.table.table, log.tool, table.table):
                continue
            for copy in named:
                if copy.database == table.database and copy_tool(copy.table, table.table, "") == log.tool:
                    copies[copy] = OnlineTable(copy, log.tool, "copy", table, f"its name, beside {log.table}")
    return OnlineTables((*logs, *(copies[table] for table in sorted(copies) if table in existing)))


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
            copy, of = TableId(*written.groups()), TableId(str(database), str(table))
            trace = f"trigger {trigger} of {of} writes into it"
            copies.append(OnlineTable(copy, PT_OSC, "copy", of, trace))
    return copies
