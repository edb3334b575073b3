"""Readers of the types of columns, with all their synonyms, and the columns that the server makes of these types."""

from __future__ import annotations

from dataclasses import dataclass, replace

from incsnap.ddl.character_sets import BINARY, read_charset, skip_charset_word, width_of
from incsnap.ddl.clauses import REAL_AS_FLOAT, Clauses
from incsnap.ddl.words import NotUnderstood
from incsnap.tables import Column
from incsnap.types.charsets import UTF8, can_hold

_INTEGERS = {
    "TINYINT": "tinyint", "INT1": "tinyint", "SMALLINT": "smallint", "INT2": "smallint", "MEDIUMINT": "mediumint",
    "INT3": "mediumint", "MIDDLEINT": "mediumint", "INT": "int", "INTEGER": "int", "INT4": "int", "BIGINT": "bigint",
    "INT8": "bigint",
}  # fmt: skip
#: Types without length and other options: name -> DATA_TYPE.
_PLAIN = {
    "DATE": "date", "JSON": "json", "BOOL": "tinyint", "BOOLEAN": "tinyint", "TINYBLOB": "tinyblob",
    "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob", "GEOMETRY": "geometry", "POINT": "point",
    "LINESTRING": "linestring", "POLYGON": "polygon", "MULTIPOINT": "multipoint", "MULTILINESTRING": "multilinestring",
    "MULTIPOLYGON": "multipolygon", "GEOMETRYCOLLECTION": "geomcollection", "GEOMCOLLECTION": "geomcollection",
}  # fmt: skip
_TEXTS = {"TINYTEXT": "tinytext", "TEXT": "text", "MEDIUMTEXT": "mediumtext", "LONGTEXT": "longtext"}
_DECIMALS = frozenset(("DECIMAL", "DEC", "NUMERIC", "FIXED"))
_CLOCKS = {"TIME": "time", "DATETIME": "datetime", "TIMESTAMP": "timestamp"}
#: (prefix, most bytes) of the kinds of TEXT and BLOB.
_SIZES = (("tiny", 0xFF), ("", 0xFFFF), ("medium", 0xFFFFFF), ("long", 0xFFFFFFFF))
_LARGER = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext", "longtext": "longtext"}
#: Character sets in which some ASCII characters do not have their ASCII bytes.
_NO_ASCII = frozenset(("ucs2", "utf16", "utf16le", "utf32", "swe7"))
_AS_BINARY = {"char": "binary", "varchar": "varbinary"}
_CHARACTERS = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"))


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type as a statement declares it, before the table's character set is known."""

    kind: str  #: MySQL's DATA_TYPE; that of a text also if its character set is `binary`; `serial` for SERIAL
    length: int | None = None  #: the number in brackets: characters, bytes, bits, digits or fraction; None without one
    scale: int = 0  #: the second number of a DECIMAL
    unsigned: bool = False  #: the type says UNSIGNED, or implies it
    charset: str = ""  #: character set that the type names; "" for the table's
    values: tuple[str, ...] = ()  #: literals of an ENUM or SET
    #: whether the literals' bytes in the session's character set are UTF-8, as a binary ENUM or SET needs
    utf8: bool = True


def read_type(words: Clauses) -> DeclaredType:
    """Read a type. What stands behind the type (NULL, DEFAULT, COLLATE and so on) is left to the caller.

    Raise NotUnderstood for an unknown type.
    """
    word = words.take()
    if word in _PLAIN:
        return DeclaredType(_PLAIN[word])
    if word in _INTEGERS:
        _length(words)
        return _number(words, _INTEGERS[word])
    if word in _DECIMALS:
        precision, scale = _numbers(words)
        return _number(words, "decimal", precision or 10, scale)
    if word in _CLOCKS:
        return DeclaredType(_CLOCKS[word], _length(words))
    if word in _TEXTS:
        return _text(words, _TEXTS[word], _length(words) if word == "TEXT" else None)
    match word:
        case "FLOAT" | "FLOAT4":
            precision, scale = _numbers(words)
            return _number(words, "double" if scale is None and (precision or 0) > 24 else "float")
        case "DOUBLE" | "FLOAT8" | "REAL":
            words.skip("PRECISION")
            _numbers(words)
            return _number(words, "float" if word == "REAL" and _real_is_float(words) else "double")
        case "BIT":
            return DeclaredType("bit", _length(words) or 1)
        case "YEAR":
            _length(words)
            return replace(_number(words, "year"), unsigned=False)
        case "SERIAL":
            return DeclaredType("serial", unsigned=True)
        case "VECTOR":
            _length(words)
            return DeclaredType("vector")
        case "BINARY":
            length = _length(words)
            return DeclaredType("char", 1 if length is None else length, charset=BINARY)
        case "VARBINARY":
            return DeclaredType("varchar", _required_length(words), charset=BINARY)
        case "BLOB":
            return DeclaredType("text", _length(words), charset=BINARY)
        case "ENUM" | "SET":
            values = _literals(words)
            return replace(_text(words, word.lower(), values=values), utf8=_is_utf8(values, words.session.connection))
        case "LONG":
            if words.skip("VARBINARY"):
                return DeclaredType("mediumblob")
            if words.skip_any("CHAR", "CHARACTER"):
                if words.skip("SET"):
                    return DeclaredType("mediumtext", charset=_skip_binary(words, read_charset(words)))
                words.expect("VARYING")
            else:
                words.skip_any("VARCHAR", "VARCHARACTER")
            return _text(words, "mediumtext")
        case "CHAR" | "CHARACTER" | "VARCHAR" | "VARCHARACTER" | "NATIONAL" | "NCHAR" | "NVARCHAR":
            return _string(words, word)
    raise NotUnderstood(f"the type {word!r} is not known")


def _real_is_float(words: Clauses) -> bool:
    if words.session.sql_mode is None:
        raise NotUnderstood("the sql_mode, which decides what REAL means, is not known")
    return bool(words.session.sql_mode & REAL_AS_FLOAT)


def _string(words: Clauses, word: str) -> DeclaredType:
    """Read the rest of CHAR and VARCHAR, NATIONAL or not."""
    national = word.startswith("N")
    if word == "NATIONAL":
        word = words.take()
        if word not in ("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER"):
            raise NotUnderstood(f"NATIONAL {word} is not understood")
    varying = "VAR" in word or bool(words.skip("VARYING"))
    if word == "NCHAR" and not varying:
        varying = bool(words.skip_any("VARCHAR", "VARCHARACTER"))
    kind, length = ("varchar", _required_length(words)) if varying else ("char", _length(words))
    length = 1 if length is None else length
    if national:
        words.skip("BINARY")
        return DeclaredType(kind, length, charset="utf8mb3")
    return _text(words, kind, length)


def _text(words: Clauses, kind: str, length: int | None = None, values: tuple[str, ...] = ()) -> DeclaredType:
    """Read the character set behind a text's type. BINARY there only chooses a collation."""
    charset = ""
    while True:
        if words.skip("ASCII"):
            charset = "latin1"
        elif words.skip("UNICODE"):
            charset = "ucs2"
        elif words.skip("BYTE"):
            charset = BINARY
        elif skip_charset_word(words):
            charset = read_charset(words)
        elif not words.skip("BINARY"):
            return DeclaredType(kind, length, charset=charset, values=values)


def _skip_binary(words: Clauses, charset: str) -> str:
    words.skip("BINARY")
    return charset


def _number(words: Clauses, kind: str, length: int | None = None, scale: int | None = None) -> DeclaredType:
    """Read the sign behind a number's type. ZEROFILL makes a number unsigned."""
    unsigned = False
    while option := words.skip_any("UNSIGNED", "SIGNED", "ZEROFILL"):
        unsigned |= option != "SIGNED"
    return DeclaredType(kind, length, scale or 0, unsigned)


def _length(words: Clauses) -> int | None:
    if not words.skip("("):
        return None
    length = words.number()
    words.expect(")")
    return length


def _required_length(words: Clauses) -> int:
    length = _length(words)
    if length is None:
        raise words.wrong()
    return length


def _numbers(words: Clauses) -> tuple[int | None, int | None]:
    """Read the two numbers of DECIMAL(10,2); None for a number that is not there."""
    if not words.skip("("):
        return None, None
    precision = words.number()
    scale = words.number() if words.skip(",") else None
    words.expect(")")
    return precision, scale


def _literals(words: Clauses) -> tuple[str, ...]:
    """Read the literals of an ENUM or SET. The server first converts them to the session's character set."""
    words.expect("(")
    values = words.listed(words.string)
    words.expect(")")
    connection = words.session.connection
    for value in values:
        if not value.isascii() and not (connection and can_hold(value, connection)):
            raise NotUnderstood(f"the literal {value[:40]!r} may not be a text of the session's character set")
    return tuple(values)


def _is_utf8(values: tuple[str, ...], charset: str) -> bool:
    return charset in UTF8 or bool(charset and charset not in _NO_ASCII and "".join(values).isascii())


def column_of(name: str, declared: DeclaredType, charset: str, *, nullable: bool) -> Column:
    """Return the column that the server makes of a declared type.

    `charset`: the character set of a text. If the SQL mode allows, the server makes a TEXT of a VARCHAR with more than
    65,535 bytes; otherwise it refuses the statement. A TEXT with a length becomes the smallest kind that holds it.

    Raise NotUnderstood if a literal of an ENUM or SET may not be a text of the character set.
    """
    kind, length = declared.kind, declared.length
    if kind in ("enum", "set"):
        values = declared.values if charset == BINARY else tuple(value.rstrip(" ") for value in declared.values)
        for value in values:
            if not (declared.utf8 if charset == BINARY else can_hold(value, charset)):
                raise NotUnderstood(f"the literal {value[:40]!r} of the column {name} may not be a text of {charset}")
        return Column(name, kind, nullable, charset=charset, values=values)
    if kind in _CHARACTERS:
        return _character_column(name, kind, length, charset, nullable=nullable)
    return Column(
        name,
        "bigint" if kind == "serial" else kind,
        nullable,
        unsigned=declared.unsigned,
        length=length or 0 if kind == "bit" else 0,
        precision=length or 0 if kind == "decimal" else 0,
        scale=declared.scale,
        fraction=length or 0 if kind in ("time", "datetime", "timestamp") else 0,
        charset=BINARY if kind.endswith("blob") else "",
    )


def _character_column(name: str, kind: str, length: int | None, charset: str, *, nullable: bool) -> Column:
    octets = (length or 0) * width_of(charset)
    if (kind == "varchar" and octets > 0xFFFF) or (kind == "text" and length):
        kind = next((prefix + "text" for prefix, most in _SIZES if octets <= most), "longtext")
    sized = kind in ("char", "varchar")
    if charset == BINARY:
        kind = _AS_BINARY.get(kind, kind.replace("text", "blob"))
    return Column(name, kind, nullable, length=octets if sized else 0, charset=charset)


def converted(column: Column, charset: str) -> Column:
    """Return the column as CONVERT TO CHARACTER SET leaves it. A TEXT whose characters become wider becomes the next
    larger kind.

    MySQL 9.7 does not convert the literals of an ENUM or SET: it reads their bytes as text of the new character set.
    Raise NotUnderstood if this may damage a literal, or if the column becomes too long for a VARCHAR.
    """
    if not column.charset or column.charset in (BINARY, charset):
        return column
    literals = "".join(column.values)
    if literals and not (
        {column.charset, charset}.isdisjoint(_NO_ASCII) and literals.isascii() and "?" not in literals
    ):
        raise NotUnderstood(f"the literals of the column {column.name} may be damaged by their conversion to {charset}")
    wider = width_of(charset) > width_of(column.charset)
    kind = _LARGER.get(column.type, column.type) if wider else column.type
    length = column.length // width_of(column.charset) if kind in ("char", "varchar") else None
    declared = DeclaredType(kind, length, values=column.values)
    after = column_of(column.name, declared, charset, nullable=column.nullable)
    if length is not None and octets_of_text(after):
        raise NotUnderstood(f"the column {column.name} becomes too long for a VARCHAR by its conversion to {charset}")
    return after


def characters_of(column: Column) -> int:
    """Return how many characters (bytes of a byte string) a CHAR or VARCHAR may have; 0 for other types."""
    if column.type in ("char", "varchar", "binary", "varbinary"):
        return column.length // width_of(column.charset)
    return 0


def octets_of_text(column: Column) -> int:
    """Return how many bytes a TEXT or BLOB may have; 0 for other types."""
    return next((most for size, most in _SIZES if column.type in (f"{size}text", f"{size}blob")), 0)
