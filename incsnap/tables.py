"""Tables and columns as plain values. They travel to Spark's workers, so all of them can be pickled and compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_NAME = r"\s*(?:`((?:[^`]|``)+)`|([^.`\s](?:[^.]*[^.\s])?))\s*"
_QUALIFIED = re.compile(rf"{_NAME}\.{_NAME}")


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table, with the spelling of the server."""

    database: str  #: name of the database
    table: str  #: name without the database

    @classmethod
    def parse(cls, text: str) -> TableId:
        """Return the table that `db.table` names. Raise ValueError for another text.

        A name in backticks, written as in SQL, may contain dots.
        """
        match = _QUALIFIED.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not database.table")
        quoted_database, database, quoted_table, table = match.groups()
        return cls(database or quoted_database.replace("``", "`"), table or quoted_table.replace("``", "`"))

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema for pydantic: `["database", "table"]` in JSON, because an offset may name thousands of
        tables."""
        name = core_schema.str_schema()
        pair = core_schema.tuple_schema([name, name])
        return core_schema.json_or_python_schema(
            json_schema=core_schema.no_info_after_validator_function(lambda names: cls(*names), pair),
            python_schema=core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda table: [table.database, table.table]),
        )

    @property
    def folded(self) -> str:
        """The name for comparisons. Statements may write a name in any letter case."""
        return str(self).lower()

    @property
    def sql(self) -> str:
        """The name in SQL, with backticks."""
        return f"{quote(self.database)}.{quote(self.table)}"


def quote(identifier: str) -> str:
    """Return an identifier in backticks. https://dev.mysql.com/doc/refman/en/identifiers.html"""
    return "`" + identifier.replace("`", "``") + "`"


def printed_charset(name: str) -> str:
    """Return the name of a character set or collation as MySQL 8.0.30 and later print it.

    Before MySQL 8.0.28, `utf8mb3` is printed as `utf8`. Before MySQL 8.0.30, so are the names of its collations.

    >>> printed_charset("utf8"), printed_charset("utf8_bin"), printed_charset("utf8mb4")
    ('utf8mb3', 'utf8mb3_bin', 'utf8mb4')
    """
    return f"utf8mb3{name[4:]}" if name == "utf8" or name.startswith("utf8_") else name


#: Name of a character set. A stored name may be the one of an older server: reading it gives the newer name.
CharsetName = Annotated[str, AfterValidator(printed_charset)]

#: Types of texts, and below of byte strings. Within each set the types differ only in the length of their values.
TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
BYTE_STRINGS = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column, described in equal terms whether it was read from a table map event or from information_schema."""

    name: str  #: name of the column
    #: MySQL's DATA_TYPE in lower case: tinyint smallint mediumint int bigint decimal float double char varchar tinytext
    #: text mediumtext longtext binary varbinary tinyblob blob mediumblob longblob enum set date time datetime timestamp
    #: year json bit vector geometry point linestring polygon multipoint multilinestring multipolygon geomcollection ...
    type: str
    nullable: bool = True  #: whether the column takes NULL
    unsigned: bool = False  #: False for types that are not numbers
    length: int = 0  #: most bytes of char(n), varchar(n), binary(n) and varbinary(n); bits of bit(n); 0 for other types
    precision: int = 0  #: of decimal(precision, scale); 0 for other types
    scale: int = 0  #: of decimal(precision, scale); 0 for other types
    fraction: int = 0  #: digits after the second of time, datetime and timestamp: 0 to 6
    #: character set of a text, ENUM or SET column (`utf8mb4`); `binary` for byte columns, "" for others
    charset: CharsetName = ""
    values: tuple[str, ...] = ()  #: literals of an ENUM or SET, in order


@dataclass(frozen=True, slots=True)
class SourceType:
    """A column's type as it was defined."""

    name: str  #: in capitals, with UNSIGNED and ZEROFILL, for example `INT UNSIGNED`
    #: first number in brackets, also a display width; 1 for an ENUM, 2n - 1 for a SET of n; None: none
    length: int | None = None
    scale: int | None = None  #: second number in brackets; None: none


class Declared(NamedTuple):
    """The properties of a column that only schemas show and no table map contains."""

    column: str  #: the column's name
    type: str  #: MySQL's DATA_TYPE in lower case
    default: str | None = None  #: DEFAULT as information_schema prints it; None: none
    source: SourceType | None = None  #: type as it was defined; None: not asked for
    comment: str = ""  #: as SHOW CREATE TABLE prints it; "": none, or not asked for


#: The properties of a table's columns. Columns without any are left out.
Defaults = tuple[Declared, ...]
#: Pairs of a table and the properties of its columns. The planner passes them to the source tasks, for the schemas of
#: records.
TableDefaults = tuple[tuple[TableId, Defaults], ...]


@dataclass(frozen=True, slots=True)
class TableShape:
    """The columns and the key of a table at one moment."""

    id: TableId  #: name of the table
    columns: tuple[Column, ...]  #: in ordinal order
    #: indexes of the primary key's columns in `columns`, in the key's order; empty: no primary key
    key: tuple[int, ...] = ()
    #: Pairs of a column's index and its DEFAULT as information_schema prints it, if it was asked for. Table maps do not
    #: have DEFAULTs, and only schemas show them.
    defaults: tuple[tuple[int, str], ...] = ()
    #: pairs of a column's index and its type as it was defined, if asked for
    sources: tuple[tuple[int, SourceType], ...] = ()
    comments: tuple[tuple[int, str], ...] = ()  #: pairs of a column's index and its comment, if asked for

    def with_defaults(self, defaults: Defaults) -> TableShape:
        """Return this shape with the properties in `defaults`.

        Leave out a property if the table has no column with the name and type for which it was read. The table may have
        been altered meanwhile.
        """
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
    """An ordered index."""

    name: str  #: PRIMARY for the primary key
    #: None for a prefix of a column, which does not order by the whole column, and for an expression
    columns: tuple[str | None, ...]
    descending: tuple[str, ...] = ()  #: names of the columns in descending order
