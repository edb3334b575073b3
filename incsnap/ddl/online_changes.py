"""The statements of a batch with their meaning in online schema changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from incsnap.ddl.online_ddl import after_statement
from incsnap.ddl.online_names import GH_OST
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.ddl.table_statements import table_statements
from incsnap.events import NO_STEP, OnlineStep, SchemaChange
from incsnap.tables import TableId


def after_change(
    tables: OnlineTables, change: SchemaChange, watches: Callable[[str], bool]
) -> tuple[OnlineTables, OnlineStep | None]:
    """Return what `after_statement` returns for the statement `change`.

    `watches`: whether tables of a database are followed. Return `tables` itself if the statement changes none of them.
    """
    is_unreadable = change.tables is None and not change.database
    if is_unreadable:
        return tables, None
    if change.in_transaction:
        return _behind_created(tables, change), None
    session = change.session
    after, step = after_statement(
        tables,
        change.sql,
        session.database,
        session.sql_mode,
        has_xid=change.has_xid,
        foreign_key_checks=session.foreign_key_checks,
    )
    if after is not tables:
        watched = tuple(each for each in after.tables if watches(each.table.database))
        after = OnlineTables(watched, tuple(each for each in after.away if watches(each.database)))
    return (tables if after == tables else after), step


def _behind_created(tables: OnlineTables, change: SchemaChange) -> OnlineTables:
    """Return the tables of tools behind a CREATE TABLE in a transaction, which no tool writes: CREATE TABLE ... SELECT.

    The new table is not a tool's, and is not away. A copy of the table that had its name before has not its rows.
    """
    away = {each.folded for each in tables.away}
    statements = table_statements(change.sql, change.session.database, change.session.sql_mode)
    created = {each.table.folded: each.if_absent for each in statements if each.type == "CREATE" and each.table}
    made = {name for name, if_absent in created.items() if name in away or not if_absent}
    if not made:
        return tables
    after = OnlineTables(
        tuple(
            replace(each, is_fed=False) if each.of is not None and each.of.folded in made else each
            for each in tables.tables
            if each.table.folded not in made
        ),
        tuple(each for each in tables.away if each.folded not in made),
    )
    return tables if after == tables else after


@dataclass(frozen=True, slots=True)
class Swap:
    """A swap by which a tool has altered a table."""

    table: TableId  #: the altered table
    tool: str  #: the tool
    former: TableId | None  #: name that the table before the swap has now; None if the tool has dropped that table


@dataclass(frozen=True, slots=True)
class OnlineBatch:
    """The statements of a batch, followed."""

    changes: tuple[SchemaChange, ...]  #: the statements, each with its step
    tables: OnlineTables  #: tables of tools behind the last statement
    recognised: tuple[OnlineTable, ...] = ()  #: tables that a statement of the batch has shown to be a tool's
    swaps: tuple[Swap, ...] = ()  #: swaps of the batch, in order


def with_steps(
    tables: OnlineTables,
    changes: Sequence[SchemaChange],
    watches: Callable[[str], bool],
    later: Sequence[SchemaChange] = (),
    written: Collection[str] = (),
) -> OnlineBatch:
    """Return the statements with their steps, and the tables of tools behind them.

    `tables` are those before the statements. A copy may be recognised by a later statement of the batch, or by one of
    `later`, which are the statements behind the batch as far as they are known. The statements before are then the
    tool's too. `written`: captured tables with rows in the batch, as `TableId.folded` gives their names. Such a table
    without a trace is one like any other, so its statements are shown.
    """
    steps: list[OnlineStep] = []
    recognised: list[OnlineTable] = []
    swaps: list[Swap] = []
    end = tables
    #: Copies without a trace so far -> numbers of the statements that name them.
    waiting: dict[str, list[int]] = {}
    for number, change in enumerate((*changes, *later)):
        before, former = {each.table.folded: each.trace for each in tables.certain()}, tables
        tables, step = after_change(tables, change, watches)
        steps.append(_with_tables_shown(step or NO_STEP, (*former.tables, *tables.tables), written))
        if number < len(changes):
            swaps += (Swap(of, tool, _former(tables, change, of, tool)) for of, tool, _ in steps[-1].swaps)
        for each in tables.tables:
            key = each.table.folded
            if not each.is_certain and change.touches(each.table):
                waiting.setdefault(key, []).append(number)
            elif each.is_certain and before.get(key) != each.trace:
                recognised += [each] if number < len(changes) else []
                for earlier in waiting.pop(key, ()):
                    steps[earlier] = replace(steps[earlier], hidden=steps[earlier].hidden | {each.table})
        waiting = {key: numbers for key, numbers in waiting.items() if tables.has(key)}
        end = tables if number < len(changes) else end
    stepped = tuple(replace(change, online=step) for change, step in zip(changes, steps[: len(changes)], strict=True))
    return OnlineBatch(stepped, end, tuple(recognised), tuple(swaps))


def _with_tables_shown(step: OnlineStep, known: Collection[OnlineTable], written: Collection[str]) -> OnlineStep:
    """Return the step without hidden tables that have rows and no trace of a tool.

    `known` are the tables before and behind the statement.
    """
    if not (step.hidden and written):
        return step
    certain = {each.table.folded for each in known if each.is_certain}
    shown = {each.table.folded for each in known if each.is_alike and each.table.folded in written} - certain
    return replace(step, hidden=frozenset(table for table in step.hidden if table.folded not in shown))


def _former(tables: OnlineTables, change: SchemaChange, of: TableId, tool: str) -> TableId | None:
    """Return the name that the former table `of` has behind the swap `change` by `tool`; None if the tool has dropped
    that table.

    gh-ost may have renamed the former table in an earlier statement (`--cut-over=two-step`).
    """
    formers = (each for each in tables.certain() if each.role == "former" and each.tool == tool)
    left = [each.table for each in formers if each.of is not None and each.of.folded == of.folded]
    return left[-1] if left and (tool == GH_OST or change.touches(left[-1])) else None
