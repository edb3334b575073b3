"""Readers of the definitions of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from incsnap.ddl.character_sets import read_collation
from incsnap.ddl.clauses import Clauses
from incsnap.ddl.column_defaults import default_text
from incsnap.ddl.column_types import DeclaredType, column_of, read_type
from incsnap.ddl.key_clauses import ATTRIBUTES, DeclaredKey, skip_check, skip_reference
from incsnap.ddl.table_definition import PRIMARY, KeyPart
from incsnap.ddl.words import NotUnderstood
from incsnap.tables import Column

#: Words that end a column's definition.
_ENDS = frozenset((",", ")", ";", "FIRST", "AFTER", "", "PARTITION", "REMOVE"))
#: Attributes without effect on rows, each with the form of what stands behind it (`Clauses.skip_option`).
_WITHOUT_EFFECT = {
    **ATTRIBUTES,
    "COLUMN_FORMAT": "DEFAULT|FIXED|DYNAMIC|COMPRESSED",  # COMPRESSED: only Percona Server has it
    "WITH": "COMPRESSION_DICTIONARY name",  # behind COMPRESSED
    "STORAGE": "DEFAULT|DISK|MEMORY",
    "SRID": "number",
}


@dataclass(slots=True)
class DeclaredColumn:
    """A column as a statement defines it."""

    name: str  #: as the statement writes it
    type: DeclaredType  #: type, as far as the definition tells it
    nullable: bool = True  #: it may be NULL
    virtual: bool = False  #: it is generated and not stored
    charset: str = ""  #: character set that its type or its collation names; "" for the table's
    primary: bool = False  #: it is the primary key
    unique: bool = False  #: it has a unique key, however often its definition says so
    references: bool = False  #: it has a foreign key
    literal: str | int | bytes | None = None  #: its DEFAULT as `Clauses.default` reads it

    @property
    def default(self) -> str | None:
        """The text of its DEFAULT (`default_text`). None: it has none, or the statement does not tell it."""
        return default_text(self.literal, self.type, self.charset)

    def keys(self) -> Iterator[DeclaredKey]:
        """Yield the keys that the definition declares, in the server's order."""
        part = (KeyPart(self.name),)
        if self.primary:
            yield DeclaredKey(PRIMARY, True, part)
        if self.unique:
            yield DeclaredKey("", True, part)
        if self.references:
            yield DeclaredKey("", False, part, for_foreign_key=True)

    def column(self, charset: str) -> Column:
        """Return the column in a table with the default character set `charset`."""
        return column_of(self.name, self.type, self.charset or charset, nullable=self.nullable)


def read_column(words: Clauses, name: str) -> DeclaredColumn:
    """Read a column's definition behind its name."""
    declared = read_type(words)
    column = DeclaredColumn(name, declared, charset=declared.charset)
    nullable: bool | None = None
    if declared.kind == "serial":
        nullable = False
        column.unique = True
    while words.peek() not in _ENDS:
        answer = _attribute(words, column)
        nullable = nullable if answer is None else answer
    if nullable is None:
        nullable = declared.kind != "timestamp" or _timestamp_takes_null(words)
    column.nullable = nullable
    return column


def _attribute(words: Clauses, column: DeclaredColumn) -> bool | None:
    """Read one attribute of a column.

    Return True or False if it says whether the column may be NULL, otherwise None.
    """
    if words.skip_option(_WITHOUT_EFFECT):
        return None
    match words.take():
        case "DEFAULT":
            column.literal = words.default()
        case "NULL":
            return True
        case "NOT":
            return None if words.expect_any("SECONDARY", "NULL") == "SECONDARY" else False
        case "ON":
            words.expect("UPDATE")
            if not words.skip_now():
                raise words.wrong()
        case "AUTO_INCREMENT":
            return None if words.printed else False  # SHOW CREATE TABLE prints NOT NULL beside it
        case "SERIAL":
            words.expect("DEFAULT", "VALUE")
            column.unique = True
            return False
        case "PRIMARY":
            words.expect("KEY")
            column.primary = True
        case "KEY":
            column.primary = True
        case "UNIQUE":
            words.skip("KEY")
            column.unique = True
        case "COLLATE":
            _collate(column, read_collation(words))
        case "GENERATED":
            words.expect("ALWAYS", "AS")
            _generated(words, column)
        case "AS":
            _generated(words, column)
        case "CONSTRAINT":
            if words.peek() != "CHECK":
                words.name()
            words.expect("CHECK")
            skip_check(words)
        case "CHECK":
            skip_check(words)
        case "REFERENCES":
            skip_reference(words)
            column.references = True  # without effect before MySQL 9.0
        case word:
            raise NotUnderstood(f"{word[:40]!r} in the definition of the column {column.name} is not understood")
    return None


def _collate(column: DeclaredColumn, charset: str) -> None:
    """Set the column's character set to that of its collation. Raise NotUnderstood if the type names another one."""
    if column.charset and column.charset != charset:
        raise NotUnderstood(f"the collation of the column {column.name} is not one of its character set")
    column.charset = charset


def _generated(words: Clauses, column: DeclaredColumn) -> None:
    words.skip_brackets()
    column.virtual = not words.skip("STORED")
    if column.virtual:
        words.skip("VIRTUAL")


def _timestamp_takes_null(words: Clauses) -> bool:
    """Return True if a TIMESTAMP without NULL and NOT NULL may be NULL."""
    if words.session.explicit_timestamps is None:
        raise NotUnderstood("explicit_defaults_for_timestamp, which decides what may be NULL, is not known")
    return words.session.explicit_timestamps
