"""Definitions of tables: what later statements about a table need to know, which is more than reading rows needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.tables import CharsetName, TableId, TableShape

#: The name of a primary key.
PRIMARY = "PRIMARY"


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key."""

    column: str  #: name of the column; "" for an expression
    prefix: int = 0  #: characters (bytes of a byte string) that are indexed; 0 for the whole column


@dataclass(frozen=True, slots=True)
class Key:
    """An index of a table, unique or not."""

    name: str  #: "" if the server chose the name and it is not certain
    unique: bool  #: whether the index is a primary or a unique key
    parts: tuple[KeyPart, ...]  #: columns and expressions, in order


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table's columns and keys at one moment, from which a statement that changes the table is followed.

    A definition without `charset` has only the columns: rows can be read with it, but no statement that changes columns
    can be followed from it.
    """

    shape: TableShape  #: the columns and the record key, as the server's dictionary has them
    charset: CharsetName = ""  #: default character set of the table's new columns
    keys: tuple[Key, ...] = ()  #: all indexes, in the server's order
    virtual: tuple[str, ...] = ()  #: names of the virtual generated columns, which are never in a record key


@dataclass(frozen=True, slots=True)
class Definitions:
    """The definitions of tables and databases that are certain at one place of the binlog."""

    tables: Mapping[TableId, TableDefinition] = field(default_factory=dict)  #: others are unknown
    #: Name of a database -> its default character set, "" if unknown
    databases: Mapping[str, str] = field(default_factory=dict)
