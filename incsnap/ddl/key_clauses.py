"""Readers of keys and other constraints, in CREATE TABLE, ALTER TABLE and CREATE INDEX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from incsnap.ddl.clauses import Clauses
from incsnap.ddl.table_definition import PRIMARY, KeyPart

#: Words that begin a constraint or an index. A column with such a name must be in quotes.
CONSTRAINTS = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"))
#: The type of an index (`Clauses.skip_option`).
INDEX_TYPE = dict.fromkeys(("USING", "TYPE"), "BTREE|RTREE|HASH")
#: Options that a column and a key may have, without effect on rows.
ATTRIBUTES = {
    "COMMENT": "string",
    "VISIBLE": "",
    "INVISIBLE": "",
    "ENGINE_ATTRIBUTE": "= string",
    "SECONDARY_ENGINE_ATTRIBUTE": "= string",
}
_KEY_OPTIONS = {**ATTRIBUTES, **INDEX_TYPE, "KEY_BLOCK_SIZE": "= number", "WITH": "PARSER name"}


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """An index as a statement declares it."""

    name: str  #: PRIMARY for a primary key; "" if the server chooses the name
    unique: bool  #: whether the index is a primary or a unique key
    parts: tuple[KeyPart, ...]  #: columns and expressions, in order
    for_foreign_key: bool = False  #: The server makes the index for a foreign key, unless another index serves.


def read_constraint(words: Clauses) -> Iterator[DeclaredKey]:
    """Read one constraint or index. Yield the key that it defines, if it defines one.

    Raise NotUnderstood if the constraint is unknown.
    """
    constraint = ""
    if words.skip("CONSTRAINT") and words.peek() not in CONSTRAINTS:
        constraint = words.name()
    match words.take():
        case "PRIMARY":
            words.expect("KEY")
            _read_name(words)
            yield _key(words, PRIMARY, unique=True)
        case "UNIQUE":
            words.skip_any("KEY", "INDEX")
            yield _key(words, _read_name(words) or constraint, unique=True)
        case "INDEX" | "KEY":
            yield _key(words, _read_name(words), unique=False)
        case "FULLTEXT" | "SPATIAL":
            words.skip_any("KEY", "INDEX")
            yield _key(words, _read_name(words), unique=False)
        case "FOREIGN":
            words.expect("KEY")
            if words.peek() != "(":
                words.name()
            yield DeclaredKey("", False, read_parts(words), for_foreign_key=True)
            words.expect("REFERENCES")
            skip_reference(words)
        case "CHECK":
            skip_check(words)
        case _:
            raise words.wrong()


def _read_name(words: Clauses) -> str:
    """Read an index's name and type, and return the name. Both may be left out; the name is then ""."""
    name = ""
    if words.peek() not in ("(", "USING"):
        name = words.name()
    words.skip_option(INDEX_TYPE)
    return name


def _key(words: Clauses, name: str, *, unique: bool) -> DeclaredKey:
    key = DeclaredKey(name, unique, read_parts(words))
    skip_key_options(words)
    return key


def read_parts(words: Clauses) -> tuple[KeyPart, ...]:
    """Read the columns and expressions of a key, with the brackets around them."""
    words.expect("(")
    parts = words.listed(partial(_read_part, words))
    words.expect(")")
    return tuple(parts)


def _read_part(words: Clauses) -> KeyPart:
    name, prefix = "", 0
    if words.peek() == "(":
        words.skip_brackets()
    else:
        name = words.column()
        if words.skip("("):
            prefix = words.number()
            words.expect(")")
    words.skip_any("ASC", "DESC")
    return KeyPart(name, prefix)


def skip_key_options(words: Clauses) -> None:
    """Skip the options behind the columns of a key."""
    while words.skip_option(_KEY_OPTIONS):
        pass


def skip_check(words: Clauses) -> None:
    """Skip the expression of a CHECK, and the words that say whether it is enforced."""
    words.skip_brackets()
    skip_enforced(words)


def skip_enforced(words: Clauses) -> bool:
    """Skip ENFORCED or NOT ENFORCED. Return True if it was there."""
    if words.skip("NOT"):
        words.expect("ENFORCED")
        return True
    return words.skip("ENFORCED")


def skip_reference(words: Clauses) -> None:
    """Skip the text behind REFERENCES: the other table, its columns, and the actions of the foreign key."""
    words.table()
    if words.peek() == "(":
        read_parts(words)
    words.skip_option({"MATCH": "FULL|PARTIAL|SIMPLE"})
    while words.skip("ON"):
        words.expect_any("DELETE", "UPDATE")
        if words.skip("SET"):
            words.expect_any("NULL", "DEFAULT")
        elif words.skip("NO"):
            words.expect("ACTION")
        else:
            words.expect_any("RESTRICT", "CASCADE")
