"""Definitions of tables as far as later statements about them need them: more than a row needs to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.tables import TableId, TableShape

#: The name of a primary key.
PRIMARY = "PRIMARY"
#: A database that every server has and nobody can drop.
INFORMATION_SCHEMA = "information_schema"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key."""

    column: str  #: the column's name; "" for an expression
    prefix: int = 0  #: characters (bytes of a byte string) that are indexed; 0 for the whole column


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table, unique or not."""

    name: str  #: "" where the name, which the server chose, is not certain
    unique: bool
    parts: tuple[KeyPart, ...]


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table's columns and keys at one moment, and what statements that change the table start from.

    A definition without `charset` tells the columns only: rows can be read by it, and no statement that changes columns
    can be followed from it.
    """

    shape: TableShape  #: the columns and the record key, as the server's dictionary tells them
    charset: str = ""  #: the default character set of the table's new columns
    keys: tuple[Key, ...] = ()  #: all indexes, in the server's order
    virtual: tuple[str, ...] = ()  #: names of the virtual generated columns, which no record key may have


@dataclass(frozen=True, slots=True)
class Definitions:
    """The tables and databases whose definitions are certain at one place of the binlog."""

    tables: Mapping[TableId, TableDefinition] = field(default_factory=dict)
    #: Name of a database -> its default character set, "" where that is not known. A database that is not here does not
    #: exist, if `INFORMATION_SCHEMA` is: then they come from the server's list.
    databases: Mapping[str, str] = field(default_factory=dict)
