"""The reader of the optional metadata of a table map event: fields of (kind, packed length, value).

Any field may be missing. Kinds that decoding does not need (visibility, dimensions of vectors) and kinds of later
servers are skipped.
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.binlog.protocol import wire_types as codes
from incsnap.binlog.protocol.byte_reader import ByteReader
from incsnap.tables import Column
from incsnap.types.spatial import GEOMETRIES

_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME, _SET_VALUES, _ENUM_VALUES = 1, 2, 3, 4, 5, 6
_GEOMETRY = 7
_SIMPLE_KEY, _PREFIXED_KEY, _ENUM_DEFAULT_CHARSET, _ENUM_COLUMN_CHARSET = 8, 9, 10, 11


@dataclass(slots=True)
class TableMetadata:
    """The metadata of a table's columns. A column is named by its index."""

    wire: tuple[codes.WireColumn, ...]  #: encoding of each column
    names: list[str]  #: column names; empty with MINIMAL metadata
    unsigned: set[int]  #: unsigned columns
    collations: dict[int, int]  #: column -> collation number
    literals: dict[int, tuple[bytes, ...]]  #: column -> literals of an ENUM or SET
    key: tuple[int, ...] = ()  #: columns of the primary key, in its order
    geometries: dict[int, int] = field(default_factory=dict)  #: column -> index in `spatial.GEOMETRIES`

    def column(self, index: int, *, nullable: bool, charsets: Mapping[int, str]) -> Column:
        """Return column number `index` as this metadata describes it.

        `nullable`: whether the column may be NULL. `charsets` maps a collation's number to the name of its character
        set.

        information_schema describes columns too, and both descriptions must give equal Column objects. So a property
        that the binlog lacks, such as the length of a CHAR in characters, is 0 here.
        """
        code, meta = self.wire[index].type_code, self.wire[index].meta
        charset, collation = "", self.collations.get(index)
        if collation is not None and code != codes.VECTOR:
            charset = charsets.get(collation, f"of collation {collation}")
        length = precision = scale = fraction = 0
        values: tuple[str, ...] = ()
        if code in codes.CHARACTER:
            type_ = codes.string_type(code, meta, binary=charset == codes.BINARY)
            length = meta if code != codes.BLOB else 0
        elif code == codes.GEOMETRY:
            kind = self.geometries.get(index, 0)
            type_ = GEOMETRIES[kind] if kind < len(GEOMETRIES) else "geometry of unknown kind"
        else:
            type_ = codes.NAMES[code]
        if code == codes.NEWDECIMAL:
            precision, scale = meta >> 8, meta & 0xFF
        elif code in (codes.TIME2, codes.DATETIME2, codes.TIMESTAMP2):
            fraction = meta
        elif code == codes.BIT:
            length = meta
        elif code in (codes.ENUM, codes.SET):
            values = codes.literals(self.literals.get(index, ()), charset)
        return Column(
            name=self.names[index] if self.names else "", type=type_, nullable=nullable,
            unsigned=index in self.unsigned and code != codes.YEAR, length=length, precision=precision, scale=scale,
            fraction=fraction, charset=charset, values=values,
        )  # fmt: skip


def has_names(reader: ByteReader) -> bool:
    """Whether there is a field of column names, which `binlog_row_metadata=MINIMAL` leaves out.

    Raise BinlogError if a field is cut off.
    """
    while reader.left:
        kind = reader.integer(1)
        reader.skip(reader.length_encoded())
        if kind == _COLUMN_NAME:
            return True
    return False


def parse(reader: ByteReader, wire: tuple[codes.WireColumn, ...]) -> TableMetadata:
    """Read all fields up to the end of the event, and return the metadata of the columns `wire`.

    Raise BinlogError if a field is cut off.
    """
    metadata = TableMetadata(wire, [], set(), {}, {})
    characters = _indexes(wire, *codes.WITH_COLLATION)
    choices = _indexes(wire, codes.ENUM, codes.SET)
    while reader.left:
        kind = reader.integer(1)
        value = ByteReader(reader.take(reader.length_encoded()), reader.what)
        if kind == _SIGNEDNESS:
            metadata.unsigned = _signedness(value, _indexes(wire, *codes.NUMERIC))
        elif kind == _DEFAULT_CHARSET:
            metadata.collations |= _default_collations(value, characters)
        elif kind == _COLUMN_CHARSET:
            metadata.collations |= {index: value.length_encoded() for index in characters}
        elif kind == _ENUM_DEFAULT_CHARSET:
            metadata.collations |= _default_collations(value, choices)
        elif kind == _ENUM_COLUMN_CHARSET:
            metadata.collations |= {index: value.length_encoded() for index in choices}
        elif kind == _COLUMN_NAME:
            while value.left:
                metadata.names.append(value.text(value.length_encoded()))
        elif kind == _ENUM_VALUES:
            metadata.literals |= {index: _literals(value) for index in _indexes(wire, codes.ENUM)}
        elif kind == _SET_VALUES:
            metadata.literals |= {index: _literals(value) for index in _indexes(wire, codes.SET)}
        elif kind == _GEOMETRY:
            metadata.geometries |= {index: value.length_encoded() for index in _indexes(wire, codes.GEOMETRY)}
        elif kind in (_SIMPLE_KEY, _PREFIXED_KEY):
            metadata.key = _key(value, prefixed=kind == _PREFIXED_KEY)
    return metadata


def _indexes(wire: tuple[codes.WireColumn, ...], *types: int) -> list[int]:
    return [index for index, column in enumerate(wire) if column.type_code in types]


def _signedness(value: ByteReader, numeric: list[int]) -> set[int]:
    """Read one bit for each numeric column, the highest bit of a byte first.

    Return the columns whose bit is 1: unsigned.
    """
    bits = value.take((len(numeric) + 7) // 8)
    return {index for place, index in enumerate(numeric) if bits[place >> 3] & 0x80 >> (place & 7)}


def _default_collations(value: ByteReader, indexes: list[int]) -> dict[int, int]:
    """Read a default collation, and (index in `indexes`, collation) for each column with another one."""
    collations = dict.fromkeys(indexes, value.length_encoded())
    while value.left:
        place, collation = value.length_encoded(), value.length_encoded()
        if place < len(indexes):
            collations[indexes[place]] = collation
    return collations


def _literals(value: ByteReader) -> tuple[bytes, ...]:
    return tuple(value.take(value.length_encoded()) for _ in range(value.length_encoded()))


def _key(value: ByteReader, *, prefixed: bool) -> tuple[int, ...]:
    """Return the indexes of the key's columns in its order.

    For a prefix of a column the whole column is taken: it is unique too.
    """
    key = []
    while value.left:
        key.append(value.length_encoded())
        if prefixed:
            value.length_encoded()
    return tuple(key)
