"""Online schema changes, recognised by the statements of the tools that make them.

`after_statement` follows the tables of tools from one statement to the next, and says what a statement is to the
altered table. An example with gh-ost, which adds a column to shop.t:

    CREATE TABLE _t_ghc (...) COMMENT='gh-ost changelog'   _t_ghc belongs to gh-ost
    CREATE /* gh-ost */ TABLE _t_gho LIKE t                _t_gho belongs to gh-ost: the copy of t
    ALTER TABLE _t_gho ADD n INT                           kept as the text of the later ALTER
    RENAME TABLE t TO _t_del, _t_gho TO t                  the swap: one ALTER of t. _t_del is the former t
    DROP TABLE _t_ghc                                      forgotten

A swap counts only if it is certainly the tool's. Then the table has the same rows before and behind it, except where
gh-ost reverts a swap that was not seen. Every other RENAME remains what it is for any table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from incsnap.ddl.online_names import (
    GH_OST,
    PT_OSC,
    SPIRIT,
    TRIGGERS,
    confirms,
    copy_tool,
    derived_from,
    ghost_beside,
    is_by_gh_ost,
    is_common_checkpoint,
    is_former_name,
    is_revert_name,
    is_trigger_of,
    log_trace,
    looks_like_a_tools,
    may_be_pt_copy,
)
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.ddl.statements import former_names, new_name, renamed
from incsnap.ddl.words import NotUnderstood, Words
from incsnap.events import UNKNOWN, OnlineStep
from incsnap.tables import TableId

#: Neighbouring words of an ALTER TABLE that removes, brings or exchanges rows without events.
_OF_OTHER_ROWS = frozenset(
    {(verb, "PARTITION") for verb in ("DROP", "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT")}
    | {(verb, "TABLESPACE") for verb in ("DISCARD", "IMPORT")}
)


def after_statement(
    tables: OnlineTables,
    sql: str,
    database: str,
    sql_mode: int | None = None,
    *,
    has_xid: bool = True,
    foreign_key_checks: bool | None = None,
) -> tuple[OnlineTables, OnlineStep | None]:
    """Return the tables of tools behind a statement, and what the statement is to the table that a tool alters.

    `tables` are those before the statement. The second is None for a statement that has nothing to do with a tool.
    `database`: for names without a database. `sql_mode`, `foreign_key_checks`: of the session, None if unknown.
    `has_xid`: as in `SchemaChange`.
    """
    statement = _Statement(tables, sql, database, sql_mode, has_xid, foreign_key_checks)
    try:
        statement.follow()
    except NotUnderstood:
        return tables, None
    after = statement.tables()
    return (tables if after == tables else after), statement.step()


def copy_of(tables: OnlineTables, of: TableId) -> OnlineTable | None:
    """Return the copy by which a tool alters the table `of`; None if no tool alters it."""
    return next(_copies_of(tables, of), None)


def _copies_of(tables: OnlineTables, of: TableId) -> Iterator[OnlineTable]:
    copies = (each for each in tables.certain() if each.role == "copy" and each.of is not None)
    return (each for each in copies if each.of is not None and each.of.folded == of.folded)


def _are_together(table: TableId, other: TableId) -> bool:
    """Whether two tables have one database. Letter case is ignored: the tools write the name as they are told."""
    return table.database.lower() == other.database.lower()


class _Statement:
    """A statement that is being followed. It changes the tables only if it is read to its end."""

    def __init__(
        self,
        before: OnlineTables,
        sql: str,
        database: str,
        sql_mode: int | None,
        has_xid: bool,
        foreign_key_checks: bool | None,
    ) -> None:
        self._before, self._sql, self._has_xid = before, sql, has_xid
        self._checks_foreign_keys = foreign_key_checks is not False
        self._words = Words(sql, database, sql_mode)
        self._tables = {each.table.folded: each for each in before.tables}
        self._away = {each.folded: each for each in before.away}
        self._named: list[TableId] = []
        self._hidden: set[TableId] = set()
        self._kept: set[TableId] = set()
        self._swaps: list[tuple[TableId, str, tuple[str, ...]]] = []

    def follow(self) -> None:
        """Read the statement. Raise NotUnderstood if it has another form than those of tools."""
        words = self._words
        match words.take():
            case "CREATE":
                self._create()
            case "ALTER" if words.skip("TABLE"):
                self._alter()
            case "DROP":
                self._drop()
            case "RENAME" if words.peek() != "USER":
                self._rename(renamed(words))
            case "TRUNCATE":
                words.skip("TABLE")
                self._named.append(table := words.table())
                self._has_other_rows(table)

    def tables(self) -> OnlineTables:
        """Return the tables of tools behind the statement."""
        return OnlineTables(tuple(self._tables.values()), tuple(self._away.values()))

    def step(self) -> OnlineStep | None:
        """Return what the statement is to the altered table, and which tables it names that are the tool's."""
        tables = [*self._before.tables, *self._tables.values()]
        names = {each.table.folded for each in tables if each.is_certain or each.is_alike}
        swapped = {table.folded for table, _, _ in self._swaps}
        own = {table for table in self._named if table.folded in names and table.folded not in swapped}
        if not (own or self._hidden or self._kept or self._swaps):
            return None
        return OnlineStep(tuple(self._swaps), frozenset(self._kept), frozenset(own | self._hidden))

    # -- CREATE

    def _create(self) -> None:
        for _ in range(24):  # OR REPLACE, DEFINER = `u`@`h` and the like stand before the object
            match self._words.take():
                case "TABLE":
                    return self._create_table()
                case "TRIGGER":
                    return self._create_trigger()
                case "TEMPORARY" | "VIEW" | "PROCEDURE" | "FUNCTION" | "EVENT" | "INDEX" | "DATABASE" | "SCHEMA":
                    return None
        return None

    def _create_table(self) -> None:
        words = self._words
        conditional = words.skip_condition()
        table = words.table()
        self._named.append(table)
        if conditional and (table.folded in self._tables or not self._has_xid):
            return  # without a transaction the statement has made no table
        if not conditional:
            self._has_other_rows(table)
        self._tables.pop(table.folded, None)
        self._away.pop(table.folded, None)
        words.skip("(")
        if words.skip("LIKE"):
            of = words.table()
            tool = copy_tool(table.table, of.table, self._sql)
            if tool and _are_together(of, table):
                trace = f"made LIKE {of} by {tool}" if tool == GH_OST and is_by_gh_ost(self._sql) else ""
                self._add(OnlineTable(table, tool, "copy", of, trace, is_alike=True))
                self._confirm(table)
        elif log := log_trace(table.table, self._sql):
            self._add(OnlineTable(table, log[0], "log", trace=log[1]))
            self._confirm(table)
        elif may_be_pt_copy(table.table):
            self._add(OnlineTable(table, PT_OSC, "copy"))

    def _confirm(self, made: TableId) -> None:
        """Recognise copies that were made LIKE a table, once the tool's own table for the run is there.

        `made`: the table that the statement has made.
        """
        logs = [each for each in self._tables.values() if each.role == "log" and _are_together(each.table, made)]
        for each in list(self._tables.values()):
            if each.is_certain or each.of is None or not _are_together(each.table, made):
                continue
            for log in logs:
                if log.tool == each.tool and _proves(log, each, each.of, made):
                    self._add(replace(each, trace=f"made LIKE {each.of}, beside {log.table}"))

    def _create_trigger(self) -> None:
        """Recognise the copy of pt-online-schema-change, into which the tool's triggers write."""
        words = self._words
        words.skip_condition()
        trigger = words.table().table
        if not trigger.lower().startswith(TRIGGERS):
            return
        words.skip_past("ON")
        of = words.table()
        while words.take() not in ("INTO", "FROM"):
            pass
        copy = words.table()
        if copy.folded == of.folded or not is_trigger_of(trigger, of):
            return
        known = self._tables.get(copy.folded) or OnlineTable(copy, PT_OSC, "copy", alterations=UNKNOWN)
        if known.role == "copy":
            trace = known.trace or f"trigger {trigger} of {of} writes into it"
            self._add(replace(known, tool=PT_OSC, of=of, trace=trace, is_fed=True))

    def _add(self, table: OnlineTable) -> None:
        self._tables[table.table.folded] = table

    # -- ALTER

    def _alter(self) -> None:
        words = self._words
        table = words.table()
        self._named.append(table)
        new, is_rename_alone = None, words.peek() == "RENAME"
        may_rename = words.mentions("RENAME")
        is_read = may_rename or words.mentions("PARTITION", "TABLESPACE")
        while is_read and not words.at_end:
            if words.is_broken and not may_rename:
                self._has_other_rows(table)
                break
            word = words.take()
            if (word, words.peek()) in _OF_OTHER_ROWS:
                self._has_other_rows(table)
            elif word == "WITH" and words.skip("TABLE"):
                self._has_other_rows(words.table())
            elif word == "RENAME" and (new := new_name(words)) is not None:
                break
            is_rename_alone = False
        known = self._tables.get(table.folded)
        if known is not None and known.role == "copy" and not (new is not None and is_rename_alone):
            self._add(known.altered(self._sql))
        if new is not None:
            self._rename([(table, new)])

    # -- DROP

    def _drop(self) -> None:
        words = self._words
        match words.take():
            case "TABLE" | "TABLES":
                conditional = words.skip_condition()
                dropped = words.listed(words.table)
                self._named += dropped
                for table in dropped:
                    self._goes(self._tables.pop(table.folded, None))
                if not (conditional and len(dropped) == 1 and self._drops_before_swap(dropped[0])):
                    for table in dropped:
                        self._has_other_rows(table)
                if conditional and not self._has_xid:
                    # The tools drop what an earlier run may have left. Such a statement did nothing.
                    self._hidden.update(table for table in dropped if looks_like_a_tools(table.table))
            case "TRIGGER":
                words.skip_condition()
                self._drop_trigger(words.table().table)
            case "DATABASE" | "SCHEMA":
                words.skip_condition()
                database = words.name().lower()
                self._tables = {key: each for key, each in self._tables.items() if not key.startswith(f"{database}.")}
                self._away = {key: each for key, each in self._away.items() if not key.startswith(f"{database}.")}

    def _drops_before_swap(self, table: TableId) -> bool:
        """Whether pt-online-schema-change drops the altered table (`--alter-foreign-keys-method=drop_swap`).

        The tool does not let the server check foreign keys. A person who drops the table beside triggers of an earlier
        run mostly does.
        """
        if self._checks_foreign_keys:
            return False
        # An earlier run may have left another copy.
        copies = _copies_of(self.tables(), table)
        if not any(each.tool == PT_OSC and each.is_fed for each in copies):
            return False
        self._leaves(table)
        self._hidden.add(table)
        return True

    def _goes(self, known: OnlineTable | None) -> None:
        """Note that the table `known` has another place or is dropped. If no copy of its table is left, the table does
        not come back."""
        if known is not None and known.of is not None and copy_of(self.tables(), known.of) is None:
            self._away.pop(known.of.folded, None)

    def _has_other_rows(self, table: TableId) -> None:
        """Note that rows of a table may be others without events. Its copy, and a former that a revert may bring back,
        then have not the same rows."""
        for each in list(self._tables.values()):
            if each.of is not None and each.of.folded == table.folded:
                self._add(replace(each, is_fed=False))

    def _drop_trigger(self, name: str) -> None:
        for each in list(self._tables.values()):
            if each.of is not None and each.tool == PT_OSC and is_trigger_of(name, each.of):
                self._add(replace(each, is_fed=False))

    # -- RENAME

    def _rename(self, pairs: list[tuple[TableId, TableId]]) -> None:
        """Follow a statement that gives tables other names: a swap, a half of it, or anything else."""
        names = {new: old for new, old in former_names(pairs).items() if new != old}
        self._named += [*names.values(), *names]
        leaving = {old.folded: new for new, old in names.items()}
        taken = {new.folded for new in names}
        moved = {new: self._tables.pop(old.folded, None) for new, old in names.items()}
        for new, old in names.items():
            known = moved[new]
            if known is not None and known.is_certain and known.of is not None and known.of.folded == new.folded:
                self._takes_name(known, new, leaving.get(new.folded))
            elif known is None and old.folded not in taken and self._is_first_half(old, new):
                self._leaves(old)
                self._becomes_former(new, GH_OST, old)
            elif known is None and self._is_revert(new, other := leaving.get(new.folded)):
                # The swap before this one is not known, and the former table may have older rows. So the table is not
                # kept.
                self._swaps.append((new, GH_OST, UNKNOWN))
                if other is not None:
                    self._becomes_former(other, GH_OST, new)
            elif known is None:
                self._has_other_rows(old)
        for new in names:
            self._away.pop(new.folded, None)
        for known in moved.values():
            self._goes(known)

    def _takes_name(self, known: OnlineTable, new: TableId, other: TableId | None) -> None:
        """Follow a copy, or a former table, that gets the name `new`.

        The table that had the name is called `other` now; None if it had left before.
        """
        was_away = new.folded in self._away
        if known.role == "former" and was_away and self._takes_back(known, new):
            # The second half of a two-step cut-over has failed, and gh-ost takes back the first half.
            self._kept.add(new)
            self._hidden.add(new)
        elif self._is_certain_swap(known, new, other, was_away=was_away):
            self._kept.add(new)
            # What a former table has undone is not kept.
            statements = known.statements_about(new) if known.role == "copy" else UNKNOWN
            self._swaps.append((new, known.tool, statements))
            if other is not None:
                self._becomes_former(other, known.tool, new)

    def _is_certain_swap(self, known: OnlineTable, new: TableId, other: TableId | None, *, was_away: bool) -> bool:
        """Whether this is the tool's own swap. Then the table has the rows that the table before had."""
        if not known.is_fed:
            return False
        bases = self._bases(new, known.table) if known.tool == GH_OST else set()
        named = was_away if other is None else is_former_name(other.table, new.table, known.tool, bases)
        if known.tool == GH_OST:
            if known.role == "former" and other is not None:
                # A revert, or the end of a run with --test-on-replica: the copy has its own name again.
                is_test = copy_tool(other.table, new.table, self._sql) == GH_OST
                named = is_test or is_revert_name(other.table, new.table, bases)
            return named and is_by_gh_ost(self._sql)
        if known.role != "copy":
            return False
        if known.tool == PT_OSC:
            return named
        return named and known.tool == SPIRIT and self._has_checkpoint(new)

    def _has_checkpoint(self, of: TableId) -> bool:
        """Whether spirit's checkpoint of a run on this table is there."""
        logs = (each.table for each in self._before.certain() if each.tool == SPIRIT and each.role == "log")
        names = (each.table for each in logs if _are_together(each, of))
        return any(confirms(name, SPIRIT, of.table) or is_common_checkpoint(name) for name in names)

    def _is_first_half(self, old: TableId, new: TableId) -> bool:
        """Whether gh-ost renames the altered table in the first half of a two-step cut-over."""
        runs = [each for each in self._before.certain() if each.tool == GH_OST and _is_of(each, old)]
        if not (runs and is_by_gh_ost(self._sql)):
            return self._is_revert(old, new)
        return is_former_name(new.table, old.table, GH_OST, self._bases(old, *(each.table for each in runs)))

    def _bases(self, of: TableId, *own: TableId) -> set[str]:
        """Return the names from which gh-ost may derive the names of its tables in a run on the table `of`.

        `own`: its copy, or the former table.
        """
        return self._bases_of_changelogs(of).union(*(derived_from(each.table) for each in own))

    def _bases_of_changelogs(self, of: TableId) -> set[str]:
        """Return the names from which gh-ost derives the names of its tables in the runs beside the table `of`."""
        logs = (each for each in self._before.certain() if each.tool == GH_OST and _are_together(each.table, of))
        return set[str]().union(*(derived_from(each.table.table) for each in logs if ghost_beside(each.table.table)))

    def _is_revert(self, of: TableId, other: TableId | None) -> bool:
        """Whether gh-ost reverts an earlier run on the table `of`, of which nothing is known.

        The table is called `other` now; None if it had left before. The revert has a changelog.
        """
        if other is None and of.folded in self._away:
            other = self._left_last(of)
        if other is None or not is_by_gh_ost(self._sql):
            return False
        return any(is_revert_name(other.table, base) for base in self._bases_of_changelogs(of))

    def _left_last(self, of: TableId) -> TableId | None:
        """Return the newest former table of `of`; None if none is known."""
        left = [each.table for each in self._before.tables if each.role == "former" and _is_of(each, of)]
        return left[-1] if left else None

    def _takes_back(self, known: OnlineTable, table: TableId) -> bool:
        """Whether gh-ost gives `table` its name back, because the second half of a cut-over has failed.

        In a revert another table has had the name since, and has left last.
        """
        left, bases = self._left_last(table), self._bases(table, known.table)
        reverts = left is not None and left != known.table and is_revert_name(left.table, table.table, bases)
        return known.tool == GH_OST and is_by_gh_ost(self._sql) and not reverts

    def _leaves(self, table: TableId) -> None:
        """Note that a tool has taken the table away, and that its copy comes in its place."""
        self._away[table.folded] = table
        self._kept.add(table)

    def _becomes_former(self, table: TableId, tool: str, of: TableId) -> None:
        # The formers of a table are in the order in which they left.
        self._tables.pop(table.folded, None)
        self._add(OnlineTable(table, tool, "former", of, f"{tool} has put its copy in the place of {of}"))


def _proves(log: OnlineTable, copy: OnlineTable, of: TableId, made: TableId) -> bool:
    """Whether the table `log` proves that its tool fills the copy of the table `of`.

    spirit makes a checkpoint behind the copy. One that was there before the copy is of a run that was killed. `made`:
    the table that the statement has made.
    """
    name = log.table.table
    if is_common_checkpoint(name):
        return copy.is_like_spirits
    return (log.tool != SPIRIT or log.table == made) and confirms(name, log.tool, of.table)


def _is_of(each: OnlineTable, table: TableId) -> bool:
    return each.of is not None and each.of.folded == table.folded
