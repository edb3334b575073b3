"""Table definitions for the schema change topic in Debezium's form, parsed from SHOW CREATE TABLE.

The text has the literals of defaults, ENUMs and SETs as MySQL prints them. Debezium parses the same text, so its
peculiarities are kept. `generated` is true for AUTO_INCREMENT and ON UPDATE, not for generated columns. The default
CURRENT_TIMESTAMP is the epoch. Comments are left out unless they are requested.
https://dev.mysql.com/doc/refman/en/show-create-table.html
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.words import Token, tokens
from incsnap.mysql.session import QueryRefusedError, query
from incsnap.tables import SourceType, TableId

#: The numbers of java.sql.Types that Debezium uses.
_JDBC = {
    "TINYINT": 5, "SMALLINT": 5, "MEDIUMINT": 4, "INT": 4, "BIGINT": -5, "BIT": -7, "DECIMAL": 3, "FLOAT": 6,
    "DOUBLE": 8, "CHAR": 1, "VARCHAR": 12, "TINYTEXT": 12, "TEXT": 12, "MEDIUMTEXT": 12, "LONGTEXT": 12, "ENUM": 1,
    "SET": 1, "BINARY": -2, "VARBINARY": -3, "TINYBLOB": 2004, "BLOB": 2004, "MEDIUMBLOB": 2004, "LONGBLOB": 2004,
    "DATE": 91, "TIME": 92, "DATETIME": 93, "TIMESTAMP": 2014, "YEAR": 4,
}  # fmt: skip
_OTHER = 1111
#: The number of a TINYINT from Debezium 3.7 on.
_TINYINT = -6
_TEXTS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET"))
#: Time zone of our sessions.
_OURS = "+00:00"
_EPOCH = "1970-01-01 00:00:00"
_PRINTED = str.maketrans({"\0": r"\0", "\n": r"\n", "\r": r"\r", "\\": r"\\", "'": "''"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A table's definition, as text and in Debezium's form."""

    ddl: str  #: the text of SHOW CREATE TABLE
    shown: dict[str, Any]  #: the field `table` of a schema change record

    @property
    def engine(self) -> str:
        """Return the name of the storage engine as the server spells it; "" for a view."""
        return _after(_parts(list(tokens(self.ddl)))[1], "ENGINE") or ""

    def needs_key(self, index: str) -> bool:
        """Whether the table has no key besides the unique `index`, and the index has no expression.

        Debezium shows such an index as an ALTER of the table.
        """
        parts = [part for part in _parts(list(tokens(self.ddl)))[0] if part]
        own = [part for part in parts if part[0] == ("word", "UNIQUE") and part[2][1].lower() == index.lower()]
        required = {column["name"] for column in self.shown["columns"] if not column["optional"]}
        return any(map(_key_columns, own)) and not _key([part for part in parts if part not in own], required)


def definitions_of(
    connection: Connection[Any], tables: Mapping[TableId, str], *, comments: bool = False
) -> dict[TableId, Definition]:
    """Return the present definitions of the tables that exist and may be seen. Send one query for each table.

    `tables` has for each table the time zone in which the server shows DEFAULTs of TIMESTAMP; "" for the server's own.
    In the zone of the session that ran a statement, a DEFAULT is shown as the statement has it.
    """
    definitions = {}
    zone = _OURS
    try:
        for table in sorted(tables, key=lambda table: tables[table]):
            if tables[table] != zone:
                zone = tables[table]
                _show_in(connection, zone)
            try:
                rows = query(connection, f"SHOW CREATE TABLE {table.sql}")
            except QueryRefusedError:
                continue
            ddl = str(rows[0][1])
            definitions[table] = Definition(ddl, shown(ddl, comments=comments))
    finally:
        if zone != _OURS:
            query(connection, f"SET time_zone = '{_OURS}'")
    return definitions


def _show_in(connection: Connection[Any], zone: str) -> None:
    """Set the session's time zone; "" or a zone that the server does not know: the server's own."""
    if zone:
        with suppress(QueryRefusedError):
            query(connection, "SET time_zone = %s", [zone])
            return
    query(connection, "SET time_zone = @@GLOBAL.time_zone")


def shown(ddl: str, *, comments: bool = False) -> dict[str, Any]:
    """Return the field `table` of a schema change record for the text of SHOW CREATE TABLE.

    With `comments` include the comments of the table and its columns.
    """
    parts, options = _parts(list(tokens(ddl)))
    named = (part for part in parts if part and part[0][0] == "name")
    charset = _after(options, "CHARSET")
    columns = [_column(part, number, charset, comments) for number, part in enumerate(named, 1)]
    return {
        "defaultCharsetName": charset,
        "primaryKeyColumnNames": _key(parts, {column["name"] for column in columns if not column["optional"]}),
        "columns": columns,
        "comment": _comment(options) if comments else None,
    }


def in_release(table: dict[str, Any], release: str) -> dict[str, Any]:
    """Return the field `table` of a schema change record as that release of Debezium has it.

    `table` is as in 3.6, where a TINYINT has the number of a SMALLINT.
    """
    if release == "3.6":
        return table
    columns = [
        {**column, "jdbcType": _TINYINT} if column["typeName"].split(" ")[0] == "TINYINT" else column
        for column in table["columns"]
    ]
    return {**table, "columns": columns}


def _parts(sql_tokens: list[Token]) -> tuple[list[list[Token]], list[Token]]:
    """Return the parts between commas inside the outer brackets, and the tokens after these brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for at, (kind, text) in enumerate(sql_tokens):
        if kind == "other" and text == ")":
            depth -= 1
            if depth == 0:
                return parts, sql_tokens[at + 1 :]
        if depth == 1 and kind == "other" and text == ",":
            parts.append([])
        elif depth:
            parts[-1].append((kind, text))
        if kind == "other" and text == "(":
            depth += 1
    return parts, []


def _column(part: list[Token], position: int, table_charset: str | None, comments: bool) -> dict[str, Any]:
    """Return a column in Debezium's form. `part` is its definition, `position` counts from 1."""
    name, base = part[0][1], part[1][1].upper()
    arguments, rest = _arguments(part[2:])
    words = _outer(rest)
    source, literals = _source_type(part[1:]), _literals(arguments)
    changing = "AUTO_INCREMENT" in words or any(words[at : at + 2] == ["ON", "UPDATE"] for at in range(len(words) - 1))
    return {
        "name": name,
        "jdbcType": _JDBC.get(base, _OTHER),
        "nativeType": None,
        "typeName": source.name,
        "typeExpression": source.name,
        "charsetName": (_after(rest, "SET") or table_charset) if base in _TEXTS else None,
        "length": source.length,
        "scale": source.scale,
        "position": position,
        "optional": not any(words[at : at + 2] == ["NOT", "NULL"] for at in range(len(words) - 1)),
        "autoIncremented": changing,
        "generated": changing,
        "comment": _comment(rest) if comments else None,
        "defaultValueExpression": _default(rest),
        "enumValues": literals or None,
    }


def source_type(defined: str) -> SourceType:
    """Return name, length and scale of a type as Debezium shows them.

    `defined` is MySQL's text, for example `decimal(6,2) unsigned`.
    """
    return _source_type(list(tokens(defined)))


def _source_type(part: list[Token]) -> SourceType:
    """Return the type that begins at the first token of `part`."""
    base = part[0][1].upper()
    arguments, rest = _arguments(part[1:])
    words = _outer(rest)
    lengths = [int(text) for kind, text in arguments if kind == "word" and text.isdecimal()]
    length = lengths[0] if lengths else None
    if base == "ENUM":
        length = 1
    elif base == "SET":
        length = max(0, 2 * len(_literals(arguments)) - 1)
    name = " ".join([base, *(word for word in ("UNSIGNED", "ZEROFILL") if word in words)])
    return SourceType(name, length, lengths[1] if len(lengths) > 1 else None)


def _literals(arguments: list[Token]) -> list[str]:
    """Return the string literals with their quotes. A binary literal has its prefix: `x'FF41'`."""
    before = [("", ""), *arguments]
    return [
        (text_before if kind_before == "word" else "") + text
        for (kind_before, text_before), (kind, text) in zip(before, arguments, strict=False)
        if kind == "string"
    ]


def _arguments(rest: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the tokens inside the type's brackets, and the tokens after them."""
    if not rest or rest[0] != ("other", "("):
        return [], rest
    end = rest.index(("other", ")"))
    return rest[1:end], rest[end + 1 :]


def _outer(rest: list[Token]) -> list[str]:
    """Return the words outside brackets, in capitals."""
    words, depth = [], 0
    for kind, text in rest:
        depth += (kind == "other") * ((text == "(") - (text == ")"))
        if kind == "word" and not depth:
            words.append(text.upper())
    return words


def _default(rest: list[Token]) -> str | None:
    """Return the DEFAULT's text, or None if the column has no DEFAULT, or NULL or an expression as DEFAULT."""
    depth = 0
    for at, (kind, text) in enumerate(rest[:-1]):
        depth += (kind == "other") * ((text == "(") - (text == ")"))
        if depth or kind != "word" or text.upper() != "DEFAULT":
            continue
        kind, text = rest[at + 1]
        following = rest[at + 2] if at + 2 < len(rest) else ("", "")
        if kind == "string":
            return text[1:-1]
        if kind != "word" or text.upper() == "NULL":
            return None
        if text.upper() == "B" and following[0] == "string":
            return following[1][1:-1]
        return _EPOCH if text.upper() == "CURRENT_TIMESTAMP" else text
    return None


def _comment(sql_tokens: list[Token]) -> str | None:
    """Return the text of COMMENT without its quotes, escaped as printed, or None."""
    depth = 0
    for at, (kind, text) in enumerate(sql_tokens):
        depth += (kind == "other") * ((text == "(") - (text == ")"))
        if kind == "word" and text.upper() == "COMMENT" and not depth:
            return next((text[1:-1] for kind, text in sql_tokens[at + 1 : at + 3] if kind == "string"), None)
    return None


def as_printed(text: str) -> str:
    """Return a comment as SHOW CREATE TABLE prints it between quotes, with zero bytes, line ends, backslashes and
    quotes escaped.

    Debezium shows comments in schemas this way.
    """
    return text.translate(_PRINTED)


def _after(sql_tokens: list[Token], word: str) -> str | None:
    """Return the word after `word` and an optional equals sign, or None."""
    for at, (kind, text) in enumerate(sql_tokens):
        if kind == "word" and text.upper() == word:
            following = [text for kind, text in sql_tokens[at + 1 : at + 3] if kind == "word"]
            return following[0] if following else None
    return None


def _key(parts: list[list[Token]], required: set[str]) -> list[str]:
    """Return the columns of the primary key, or of the first unique key without NULLs and expressions, or []."""
    keys = [(part[0][1].upper(), part) for part in parts if part and part[0][0] == "word"]
    for kind in ("PRIMARY", "UNIQUE"):
        for verb, part in keys:
            names = _key_columns(part)
            if verb == kind and names and required.issuperset(names):
                return names
    return []


def _key_columns(part: list[Token]) -> list[str]:
    """Return the columns of a key, or [] if the key has an expression."""
    names, depth = [], 0
    for at, (kind, text) in enumerate(part):
        depth += (kind == "other") * ((text == "(") - (text == ")"))
        if depth == 1 and kind == "name":
            names.append(text)
        # A bracket after a column holds a length. A bracket after anything else holds an expression.
        if depth == 2 and text == "(" and part[at - 1][0] != "name":
            return []
    return names
