"""Readers of ALTER TABLE, CREATE INDEX and DROP INDEX: the changes that a statement makes, from its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from incsnap.ddl.character_sets import read_charset, read_collation, skip_charset_word
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.column_clauses import DeclaredColumn, read_column
from incsnap.ddl.key_clauses import (
    CONSTRAINTS,
    INDEX_TYPE,
    DeclaredKey,
    read_constraint,
    read_parts,
    skip_enforced,
    skip_key_options,
)
from incsnap.ddl.table_definition import PRIMARY
from incsnap.ddl.table_options import one_charset, read_option
from incsnap.tables import TableId

#: The value of `PlacedColumn.after` for a column that becomes the table's first.
FIRST: Final = ""
#: How the server makes the change (`Clauses.skip_option`).
_MANNER = dict.fromkeys(("ALGORITHM", "LOCK"), "= name")
#: Words that begin a clause about partitions.
_OF_PARTITIONS = ("COALESCE", "REORGANIZE", "TRUNCATE", "EXCHANGE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR")
#: Clauses without effect on rows, each with the form of what stands behind its first word.
_WITHOUT_EFFECT = {
    **_MANNER,
    **dict.fromkeys(_OF_PARTITIONS, "PARTITION rest"),
    **dict.fromkeys(("DISCARD", "IMPORT"), "rest"),
    **dict.fromkeys(("ENABLE", "DISABLE"), "KEYS"),
    **dict.fromkeys(("WITH", "WITHOUT"), "VALIDATION"),
    **dict.fromkeys(("FORCE", "SECONDARY_LOAD", "SECONDARY_UNLOAD"), ""),
}
#: Clauses behind DROP without effect on rows.
_DROPPED_WITHOUT_EFFECT = {"CHECK": "name", "FOREIGN": "KEY name", "PARTITION": "rest"}
#: Words that, behind a comma in an ORDER BY, begin another clause.
_VERBS = frozenset(("ADD", "DROP", "CHANGE", "ALTER", "RENAME", "CONVERT", "ORDER", "FORCE"))


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column that ADD, CHANGE or MODIFY defines."""

    column: DeclaredColumn  #: as the statement defines it
    replaces: str | None  #: the column's name before the statement; None for a new column
    #: name of the column before it, or FIRST. None: a new column comes last, another one stays where it is.
    after: str | None


@dataclass(slots=True)
class Alteration:
    """The changes that one statement makes to one table."""

    columns: list[PlacedColumn] = field(default_factory=list)  #: new and changed columns, in the order of the text
    dropped: list[str] = field(default_factory=list)  #: names of columns
    renamed: list[tuple[str, str]] = field(default_factory=list)  #: (old name, new name) of columns
    defaults: list[str] = field(default_factory=list)  #: names of columns that get another DEFAULT alone
    keys: list[DeclaredKey] = field(default_factory=list)  #: new keys, in the order of the text
    dropped_keys: list[str] = field(default_factory=list)  #: names of indexes; PRIMARY for the primary key
    #: names; each is a unique key, a CHECK or a foreign key
    dropped_constraints: list[str] = field(default_factory=list)
    renamed_keys: list[tuple[str, str]] = field(default_factory=list)  #: (old name, new name) of indexes
    charset: str = ""  #: the new default character set; "" if it stays
    converted: str = ""  #: the character set that CONVERT TO names; "" without CONVERT TO
    new_name: TableId | None = None  #: None if the table is not renamed

    @property
    def changes_rows(self) -> bool:
        """Return True if the changes may concern columns, or the key that tells rows apart.

        If this is False, a definition that has only columns is still right behind the statement.
        """
        return bool(
            self.columns
            or self.dropped
            or self.renamed
            or any(key.unique for key in self.keys)
            or self.dropped_keys
            or self.dropped_constraints
            or self.converted
        )

    @property
    def new_names(self) -> dict[str, str]:
        """The columns that get another name: old name -> new name, both in lower case."""
        changed = [(each.replaces, each.column.name) for each in self.columns if each.replaces is not None]
        pairs = [(old.lower(), new.lower()) for old, new in (*self.renamed, *changed)]
        return {old: new for old, new in pairs if old != new}

    def add(self, column: DeclaredColumn, replaces: str | None, after: str | None) -> None:
        """Add a column, and the keys that its definition declares."""
        self.columns.append(PlacedColumn(column, replaces, after))
        self.keys.extend(column.keys())


def read_alter_table(words: Clauses) -> Alteration:
    """Read the rest of an ALTER TABLE behind the table's name, and return its changes.

    Raise NotUnderstood, as `Clauses` does, if a word is not understood.
    """
    alteration = Alteration()
    if not (words.at_end or words.peek() == ";"):
        while True:
            _clause(words, alteration)
            if not words.skip(","):
                break
        words.skip_option({"PARTITION": "BY rest", "REMOVE": "PARTITIONING"})
    words.must_end()
    return alteration


def read_create_index(words: Clauses, kind: str) -> tuple[TableId, Alteration]:
    """Read the rest of a CREATE INDEX behind INDEX, and return the table and the change.

    `kind` is UNIQUE, FULLTEXT, SPATIAL or "".
    """
    name = words.name()
    words.skip_option(INDEX_TYPE)
    words.expect("ON")
    table = words.table()
    key = DeclaredKey(name, kind == "UNIQUE", read_parts(words))
    skip_key_options(words)
    _skip_manner(words)
    return table, Alteration(keys=[key])


def read_drop_index(words: Clauses) -> tuple[TableId, Alteration]:
    """Read the rest of a DROP INDEX behind INDEX, and return the table and the change."""
    name = words.name()
    words.expect("ON")
    table = words.table()
    _skip_manner(words)
    return table, Alteration(dropped_keys=[name])


def _skip_manner(words: Clauses) -> None:
    """Skip ALGORITHM and LOCK. The statement must end behind them."""
    while words.skip_option(_MANNER):
        pass
    words.must_end()


def _clause(words: Clauses, alteration: Alteration) -> None:
    if words.skip_option(_WITHOUT_EFFECT):
        return
    match words.skip_any("ADD", "DROP", "CHANGE", "MODIFY", "ALTER", "RENAME", "CONVERT", "ORDER"):
        case "ADD":
            _add(words, alteration)
        case "DROP":
            _drop(words, alteration)
        case "CHANGE" | "MODIFY" as verb:
            words.skip("COLUMN")
            old = words.column()
            column = read_column(words, words.column() if verb == "CHANGE" else old)
            alteration.add(column, old, _place(words))
        case "ALTER":
            _alter(words, alteration)
        case "RENAME":
            _rename(words, alteration)
        case "CONVERT":
            _convert(words, alteration)
        case "ORDER":
            _skip_order(words, alteration)
        # `read_alter_table` reads PARTITION and REMOVE, because they stand behind all clauses.
        case _ if words.peek() not in ("PARTITION", "REMOVE"):
            while True:
                alteration.charset = one_charset(alteration.charset, read_option(words))
                if words.at_end or words.peek() in (",", ";", "PARTITION", "REMOVE"):
                    break


def _add(words: Clauses, alteration: Alteration) -> None:
    if words.peek() in CONSTRAINTS:
        alteration.keys.extend(read_constraint(words))
    elif words.skip("PARTITION"):
        words.skip_rest()
    else:
        words.skip("COLUMN")
        if words.skip("("):
            read_elements(words, alteration)
        else:
            column = read_column(words, words.column())
            alteration.add(column, None, _place(words))


def read_elements(words: Clauses, alteration: Alteration) -> None:
    """Read the columns and constraints of a CREATE TABLE or of ADD (...), and add them to `alteration`.

    The opening bracket was read. The closing one is read here.
    """
    while True:
        if words.peek() in CONSTRAINTS:
            alteration.keys.extend(read_constraint(words))
        else:
            alteration.add(read_column(words, words.column()), None, None)
        if not words.skip(","):
            break
    words.expect(")")


def _place(words: Clauses) -> str | None:
    if words.skip("FIRST"):
        return FIRST
    return words.column() if words.skip("AFTER") else None


def _drop(words: Clauses, alteration: Alteration) -> None:
    if words.skip_option(_DROPPED_WITHOUT_EFFECT):
        return
    match words.skip_any("PRIMARY", "INDEX", "KEY", "CONSTRAINT"):
        case "PRIMARY":
            words.expect("KEY")
            alteration.dropped_keys.append(PRIMARY)
        case "INDEX" | "KEY":
            alteration.dropped_keys.append(words.name())
        case "CONSTRAINT":
            alteration.dropped_constraints.append(words.name())
        case _:
            words.skip("COLUMN")
            alteration.dropped.append(words.column())
            words.skip_any("RESTRICT", "CASCADE")


def _alter(words: Clauses, alteration: Alteration) -> None:
    """Read ALTER of a default, of the visibility of an index or column, or of a check. None of these changes rows."""
    if words.skip_option({"INDEX": "name VISIBLE|INVISIBLE"}):
        return
    if words.skip_any("CHECK", "CONSTRAINT"):
        words.name()
        if not skip_enforced(words):
            raise words.wrong()
        return
    words.skip("COLUMN")
    column = words.column()
    if not words.skip_option({"DROP": "DEFAULT"}):
        words.expect("SET")
        if words.expect_any("DEFAULT", "VISIBLE", "INVISIBLE") != "DEFAULT":
            return
        words.default()
    alteration.defaults.append(column)


def _rename(words: Clauses, alteration: Alteration) -> None:
    part = words.skip_any("COLUMN", "INDEX", "KEY")
    if not part:
        words.skip_any("TO", "AS", "=")
        alteration.new_name = words.table()
        return
    old = words.name()
    words.expect("TO")
    (alteration.renamed if part == "COLUMN" else alteration.renamed_keys).append((old, words.name()))


def _convert(words: Clauses, alteration: Alteration) -> None:
    words.expect("TO")
    if not skip_charset_word(words):
        raise words.wrong()
    words.skip("=")
    alteration.converted = read_charset(words)  # refuses DEFAULT, a setting of the session that is not in the binlog
    if words.skip("COLLATE"):
        alteration.converted = one_charset(alteration.converted, read_collation(words))


def _skip_order(words: Clauses, alteration: Alteration) -> None:
    """Skip the columns of an ORDER BY. A comma separates two columns, but may also stand before the next clause."""
    words.expect("BY")
    while True:
        words.column()
        words.skip_any("ASC", "DESC")
        if not words.skip(","):
            return
        if words.peek() in _VERBS:
            _clause(words, alteration)
            return
