"""The origins of a table's columns: which column behind some statements is which column before them.

Two definitions alone do not say whether a column was renamed, or dropped while another one was added. Not even equal
definitions say that the columns are the same ones (`RENAME COLUMN a TO b, RENAME COLUMN b TO a`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from incsnap.ddl.alterations import Alteration, read_alter_table
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.old_rows import Origins
from incsnap.ddl.online_names import GH_OST, PT_OSC
from incsnap.ddl.statements import first_word
from incsnap.ddl.words import NotUnderstood, Words
from incsnap.events import Session

#: Words behind CREATE and DROP in a statement that changes an index alone.
_OF_INDEX = frozenset(("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"))
#: Words of clauses that may change rows and that an `Alteration` does not show.
_NOT_OF_INDEXES = re.compile("PARTITION|TABLESPACE|ENGINE", re.IGNORECASE)


def origins_behind(origins: Origins | None, alteration: Alteration | None, tool: str = "") -> Origins | None:
    """Return the origins behind a statement about the table. `origins` are those before it.

    `alteration`: what `read_alteration` makes of the statement. `tool`: the tool that has filled a copy with this
    statement, "" for none. Return None if `origins` or `alteration` is None, or if the tool has copied other columns
    than the statement says.
    """
    if origins is None or alteration is None or _copies_otherwise(alteration, tool):
        return None
    return _behind(origins, alteration)


def _copies_otherwise(alteration: Alteration, tool: str) -> bool:
    """Whether the tool's copy has not the values that MySQL's own ALTER TABLE would give.

    gh-ost and pt-online-schema-change read a new name only from CHANGE, so they do not copy a column of RENAME COLUMN.
    pt-online-schema-change copies columns of the same name. That may be a column that was dropped and added anew.

    https://github.com/github/gh-ost/issues/1034
    """
    if tool not in (GH_OST, PT_OSC):
        return False
    added = {each.column.name.lower() for each in alteration.columns if each.replaces is None}
    is_made_anew = not added.isdisjoint(name.lower() for name in alteration.dropped)
    return bool(alteration.renamed) or (tool == PT_OSC and is_made_anew)


def defaults_behind(sql: str, session: Session) -> dict[str, str]:
    """Return the DEFAULTs of the columns that a statement adds, by their names in lower case.

    Columns without a DEFAULT, and those whose DEFAULT the statement does not tell (`column_defaults.default_text`), are
    left out.
    """
    alteration = read_alteration(sql, session)
    added = () if alteration is None else (each.column for each in alteration.columns if each.replaces is None)
    return {column.name.lower(): column.default for column in added if column.default is not None}


def read_alteration(sql: str, session: Session) -> Alteration | None:
    """Return what an ALTER TABLE does, or a statement about an index.

    Return None for another statement, and for one that is not understood.
    """
    try:
        words = Clauses(sql, session)
        verb = words.take()
        if verb in ("CREATE", "DROP") and words.take() in _OF_INDEX:
            return Alteration()
        if verb != "ALTER":
            return None
        words.expect("TABLE")
        words.table()
        return read_alter_table(words)
    except NotUnderstood:
        return None


def changes_indexes_alone(sql: str, session: Session) -> bool:
    """Return True if a statement adds, drops or renames indexes of a table, and changes neither a row nor a column.

    An index may be a key: whoever tells rows apart by a key looks at the table.
    """
    alteration = read_alteration(sql, session)
    if alteration is None:
        return False
    if first_word(sql) != "ALTER":
        return True
    named = (alteration.keys, alteration.dropped_keys, alteration.renamed_keys)
    # A clause about partitions or an engine may remove rows.
    return (
        any(named)
        and not _NOT_OF_INDEXES.search(sql)
        and alteration
        == Alteration(keys=alteration.keys, dropped_keys=alteration.dropped_keys, renamed_keys=alteration.renamed_keys)
    )


def replaced_columns(statements: Iterable[str], session: Session) -> frozenset[str] | None:
    """Return the columns, in lower case, that were not the columns of these names before the statements.

    They are new, or had other names. The statements alter one table, one after another. Return None if each column may
    be one of them, because a statement that may drop or rename columns is not understood.
    """
    origins: Origins = {}
    for sql in statements:
        alteration = read_alteration(sql, session)
        if alteration is not None:
            origins = _behind(origins, alteration)
        elif _may_move_names(sql, session):
            return None
    return frozenset(name for name, former in origins.items() if former != name)


def _may_move_names(sql: str, session: Session) -> bool:
    """Whether a statement that is not understood may give the name of one column to another."""
    words = Words(sql, session.database, session.sql_mode)
    try:
        is_alter = words.take() == "ALTER" and words.take() == "TABLE"
    except NotUnderstood:
        return False
    return is_alter and words.mentions("DROP", "CHANGE", "RENAME")


def composed(before: Origins | None, after: Origins | None) -> dict[str, str | None] | None:
    """Return the origins of two statements as one. `before` are those of the first statement.

    Return None if one of them is None.
    """
    if before is None or after is None:
        return None
    return {**before, **{name: former and before.get(former, former) for name, former in after.items()}}


def _behind(origins: Origins, alteration: Alteration) -> Origins:
    """Return the origins behind an alteration. Its names are those before it."""
    moved = alteration.new_names
    gone = {*moved, *(name.lower() for name in alteration.dropped)}
    behind = {name: origin for name, origin in origins.items() if name not in gone}
    behind |= {name: origins.get(old, old) for old, name in moved.items()}
    return behind | {each.column.name.lower(): None for each in alteration.columns if each.replaces is None}
