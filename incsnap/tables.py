"""Tables and columns as plain values. They travel to Spark's workers, so all of them pickle and compare."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_NAME = r"\s*(?:`((?:[^`]|``)+)`|([^.`\s](?:[^.]*[^.\s])?))\s*"
_QUALIFIED = re.compile(rf"{_NAME}\.{_NAME}")


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A data collection: ``database.table``, both as the server writes them."""

    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableId:
        """The table that ``db.table`` names; ``ValueError`` for anything else. A name in back-ticks, written as in SQL,
        may have dots in it."""
        match = _QUALIFIED.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not database.table")
        quoted_database, database, quoted_table, table = match.groups()
        return cls(database or quoted_database.replace("``", "`"), table or quoted_table.replace("``", "`"))

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In JSON ``["database", "table"]``: an offset may name thousands."""
        name = core_schema.str_schema()
        pair = core_schema.tuple_schema([name, name])
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(lambda names: cls(*names), pair),
            python_schema=core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda table: [table.database, table.table]),
        )

    @property
    def sql(self) -> str:
        """The name as SQL writes it, back-ticked."""
        return f"{quote(self.database)}.{quote(self.table)}"


def quote(identifier: str) -> str:
    """An identifier in back-ticks. https://dev.mysql.com/doc/refman/en/identifiers.html"""
    return "`" + identifier.replace("`", "``") + "`"


#: What differs within each list is only how long a value may be.
TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BYTE_STRINGS = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


@dataclass(frozen=True, slots=True)
class Column:
    """One column, described alike whether it was read from a table map event or from information_schema.

    ``type`` is MySQL's DATA_TYPE in lower case: tinyint smallint mediumint int bigint decimal float double
    char varchar tinytext text mediumtext longtext binary varbinary tinyblob blob mediumblob longblob enum set
    date time datetime timestamp year json bit vector geometry point linestring polygon multipoint multilinestring
    multipolygon geomcollection ...
    """

    name: str
    type: str
    nullable: bool = True
    unsigned: bool = False
    #: char(n), varchar(n), binary(n) and varbinary(n): bytes at most; bit(n): bits; 0 where it means nothing.
    length: int = 0
    #: decimal(precision, scale)
    precision: int = 0
    scale: int = 0
    #: digits after the second of time, datetime and timestamp: 0 to 6.
    fraction: int = 0
    #: character set of a text, ENUM or SET column (``utf8mb4``), ``binary`` for byte columns, "" elsewhere.
    charset: str = ""
    #: the literals of an ENUM or SET, in order.
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceType:
    """A column's type as its definition has it: the name in capitals with UNSIGNED and ZEROFILL (``INT UNSIGNED``), and
    the two numbers in brackets, where there are any (a display width too). An ENUM's length is 1, that of a SET of n
    is 2n - 1."""

    name: str
    length: int | None = None
    scale: int | None = None


class Declared(NamedTuple):
    """What only schemas show of a column, and no table map tells. ``type``: MySQL's DATA_TYPE in lower case;
    ``default``: its DEFAULT as information_schema prints it; ``source``, and ``comment`` ("" for none) as SHOW
    CREATE TABLE prints it: where somebody has asked for them."""

    column: str
    type: str
    default: str | None = None
    source: SourceType | None = None
    comment: str = ""


#: Of a table's columns; those of which nothing is to be told are left out.
Defaults = tuple[Declared, ...]
#: (table, its DEFAULTs): pairs, because it travels in the parts of a batch.
TableDefaults = tuple[tuple[TableId, Defaults], ...]


@dataclass(frozen=True, slots=True)
class TableShape:
    """A table's columns at one moment, and its key.

    ``key`` holds indexes into ``columns`` in the order of the primary key; empty for a table without one.
    """

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    #: (index of a column, its DEFAULT as information_schema prints it), where somebody has asked for them: table maps
    #: do not tell, and only schemas show them.
    defaults: tuple[tuple[int, str], ...] = ()
    #: (index of a column, its type as it was defined), as above.
    sources: tuple[tuple[int, SourceType], ...] = ()
    #: (index of a column, its comment), as above.
    comments: tuple[tuple[int, str], ...] = ()

    def with_defaults(self, defaults: Defaults) -> TableShape:
        """Those of ``defaults`` whose column is still the one they were read for."""
        places = {(column.name, column.type): index for index, column in enumerate(self.columns)}
        known = [(places[each[:2]], each) for each in defaults if each[:2] in places]
        return replace(
            self,
            defaults=tuple((index, each.default) for index, each in known if each.default is not None),
            sources=tuple((index, each.source) for index, each in known if each.source is not None),
            comments=tuple((index, each.comment) for index, each in known if each.comment),
        )


@dataclass(frozen=True, slots=True)
class Index:
    """An index that is in order. ``columns``: None for a prefix of a column, which does not order by the whole column,
    and for an expression. ``descending``: the names of those that it has in descending order."""

    name: str
    columns: tuple[str | None, ...]
    descending: tuple[str, ...] = ()
