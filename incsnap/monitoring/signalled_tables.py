"""A check of the tables that a signal names, before the signal is sent. The job would only log what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.ddl.online_names import looks_like_a_tools
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.errors import IncsnapError
from incsnap.mysql import catalog
from incsnap.mysql.online_tables import tables_of_tools
from incsnap.mysql.preflight import account, may_select
from incsnap.mysql.server_rules import Finding
from incsnap.mysql.session import connect
from incsnap.tables import TableId
from signals.resolve import resolve

_MARKS = frozenset("*+?[](){}|^$\\")


@dataclass(frozen=True, slots=True)
class TableWarnings:
    """Warnings about the tables of a signal that may be sent all the same."""

    findings: tuple[Finding, ...]  #: about single tables
    unchecked: str = ""  #: why MySQL was not asked; "" if it was
    is_useless: bool = False  #: whether the signal asks for a snapshot and names no table that can be read


def table_warnings(
    settings: Settings, kind: str, tables: Sequence[str], known: Callable[[], OnlineTables]
) -> TableWarnings:
    """Return what is wrong with the tables of a signal of the type `kind`.

    `known` returns the tables of tools that the job's checkpoint knows. It is called if a table has such a name.
    A signal that stops a snapshot is never useless: its table may have been dropped.
    """
    unchecked = ""
    try:
        signalled = signalled_tables(settings, tables, known)
        findings, nothing_left = signalled.findings, not signalled.readable
    except (IncsnapError, TimeoutError) as error:
        unchecked = f"It is not checked on MySQL whether the tables exist: {error}"
        left_out = never_captured(settings, tables)
        findings, nothing_left = tuple(left_out.values()), set(left_out) == set(tables)
    return TableWarnings(findings, unchecked, nothing_left and kind == "execute-snapshot")


@dataclass(frozen=True, slots=True)
class SignalledTables:
    """The tables that a signal means, and what is wrong with its names."""

    readable: tuple[TableId, ...]  #: captured tables that the signal means and that the user may read
    findings: tuple[Finding, ...]  #: names without a table, and tables that the user may not read


def never_captured(settings: Settings, patterns: Sequence[str]) -> dict[str, Finding]:
    """Return a finding for each of `patterns` that names a table which the settings leave out. MySQL is not asked."""
    findings = {}
    for pattern in patterns:
        table = _name(pattern)
        if table is not None and table == settings.tables.signal_table:
            findings[pattern] = Finding("tables", f"{table} is the signal table", "Name another table")
        elif table is not None and not settings.tables.included(table):
            problem = f"{table} is left out by the include and exclude lists"
            findings[pattern] = Finding("tables", problem, "Add it to table.include.list, and start the job again")
    return findings


def signalled_tables(settings: Settings, patterns: Sequence[str], known: Callable[[], OnlineTables]) -> SignalledTables:
    """Return the tables that the names and regular expressions `patterns` of a signal mean, as the job resolves them.

    Raise IncsnapError if MySQL does not answer, and TimeoutError if the matching takes too long.
    """
    with closing(connect(settings.mysql, read_timeout=30.0)) as connection:
        user = account(connection)
        captured = catalog.tables(connection, settings.tables)
        of_tools = {each.table.folded: each for each in tables_of_tools(connection, settings).certain()}
        data = [table for table in captured if table != settings.tables.signal_table]
        # The checkpoint may be far away.
        if any(looks_like_a_tools(table.table) and table.folded not in of_tools for table in data):
            of_tools = {each.table.folded: each for each in known().certain()} | of_tools
        names = {str(table): table for table in data if table.folded not in of_tools}
        ignore_case = catalog.lower_case_table_names(connection) != 0
        resolved = resolve(patterns, list(names), ignore_case=ignore_case)
        matching = [names[name] for name in resolved.tables]
        refused = {table: may_select(connection, table, user) for table in matching}
        left_out = never_captured(settings, resolved.unknown)
        without = [
            left_out.get(each) or _of_tool(of_tools, each) or _without_table(connection, each, user)
            for each in resolved.unknown
        ]
    readable = tuple(table for table in matching if refused[table] is None)
    return SignalledTables(readable, (*filter(None, refused.values()), *without))


def _of_tool(of_tools: Mapping[str, OnlineTable], pattern: str) -> Finding | None:
    """Return a finding if `pattern` names one of the tables `of_tools`, which the job leaves out."""
    table = _name(pattern)
    owned = None if table is None else of_tools.get(table.folded)
    if owned is None:
        return None
    repair = "Name the table that the tool alters. Only incsnap.online.ddl.tables=capture captures the tools' tables"
    return Finding("tables", str(owned), repair)


def _without_table(connection: Connection[Any], pattern: str, user: str) -> Finding:
    """Return why `pattern` matches no captured table."""
    table = _name(pattern)
    if table is None:
        problem = f"no captured table that {user} may see matches {pattern}"
        repair = "Write database.table; correct table.include.list; or GRANT SELECT on the tables"
        return Finding("tables", problem, repair)
    repair = "Correct the name: database.table, in the server's letter case"
    # MySQL hides a table without a privilege from information_schema. A SELECT distinguishes it from a missing table.
    return may_select(connection, table, user) or Finding("tables", f"no table is called {table}", repair)


def _name(pattern: str) -> TableId | None:
    """Return the table that `pattern` names, or None if it is a regular expression or has no database."""
    text = pattern.replace("\\.", ".")
    try:
        return None if _MARKS & set(text) else TableId.parse(text)
    except ValueError:
        return None
