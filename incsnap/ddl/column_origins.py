"""The origins of a table's columns: which column behind some statements is which column before them.

Two definitions alone do not say whether a column was renamed, or dropped while another one was added. Not even equal
definitions say that the columns are the same ones (`RENAME COLUMN a TO b, RENAME COLUMN b TO a`).
"""

from __future__ import annotations

from incsnap.ddl.alterations import Alteration, read_alter_table
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.old_rows import Origins
from incsnap.ddl.words import NotUnderstood
from incsnap.events import Session

#: Words behind CREATE and DROP in a statement that changes an index alone.
_OF_INDEX = frozenset(("INDEX", "UNIQUE", "FULLTEXT", "SPATIAL"))


def origins_behind(origins: Origins | None, sql: str, session: Session) -> Origins | None:
    """Return the origins behind a statement about the table. `origins` are those before it.

    Return None if `origins` is None or if the statement is not an ALTER TABLE that is understood.
    """
    if origins is None:
        return None
    try:
        words = Clauses(sql, session)
        verb = words.take()
        if verb in ("CREATE", "DROP") and words.take() in _OF_INDEX:
            return origins
        if verb != "ALTER":
            return None
        words.expect("TABLE")
        words.table()
        return _behind(origins, read_alter_table(words))
    except NotUnderstood:
        return None


def _behind(origins: Origins, alteration: Alteration) -> Origins:
    """Return the origins behind an alteration. Its names are those before it."""
    renamed = [(old.lower(), new.lower()) for old, new in alteration.renamed]
    new: list[str] = []
    for each in alteration.columns:
        if each.replaces is None:
            new.append(each.column.name.lower())
        else:
            renamed.append((each.replaces.lower(), each.column.name.lower()))
    moved = [(old, name) for old, name in renamed if old != name]
    gone = {old for old, _ in moved} | {name.lower() for name in alteration.dropped}
    behind = {name: origin for name, origin in origins.items() if name not in gone}
    behind |= {name: origins.get(old, old) for old, name in moved}
    return behind | dict.fromkeys(new)
