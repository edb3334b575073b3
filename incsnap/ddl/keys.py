"""Keys as the server makes them of declared keys: their names, their order, and the key of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from incsnap.ddl.character_sets import width_of
from incsnap.ddl.column_types import characters_of, octets_of_text
from incsnap.ddl.key_clauses import DeclaredKey
from incsnap.ddl.table_definition import PRIMARY, Key, KeyPart
from incsnap.ddl.words import NotUnderstood
from incsnap.tables import Column

#: The name that the server gives an index whose first part is an expression.
_FUNCTIONAL = "functional_index"
#: Longest name of a column behind which a number certainly fits: names have at most 64 characters.
_SHORT = 60


def position_of(name: str, names: Sequence[str]) -> int:
    """Return the index of `name` in the names of columns or keys. The server compares names in any letter case.

    Raise NotUnderstood if there is no such name.
    """
    if name in names:
        return names.index(name)
    folded = name.casefold()
    matches = [place for place, other in enumerate(names) if other.casefold() == folded]
    if len(matches) != 1:
        raise NotUnderstood(f"there is no {name!r} in the definition that is known")
    return matches[0]


def is_same(name: str, other: str) -> bool:
    """Return True if the server takes both names for the name of one column or key."""
    return name.casefold() == other.casefold()


def with_declared(keys: Sequence[Key], declared: Iterable[DeclaredKey], columns: Sequence[Column]) -> tuple[Key, ...]:
    """Return `keys` and behind them the keys that a statement declares, in the statement's order."""
    joined = list(keys)
    names = [column.name for column in columns]
    for each in declared:
        parts = tuple(_part(part, columns, names) for part in each.parts)
        if each.for_foreign_key:
            joined.append(Key("", False, parts))
            continue
        name = each.name or _chosen_name(parts[0].column or _FUNCTIONAL, joined)
        joined.append(Key(name, each.unique, parts))
    return tuple(joined)


def _part(part: KeyPart, columns: Sequence[Column], names: Sequence[str]) -> KeyPart:
    if not part.column:
        return part
    column = columns[position_of(part.column, names)]
    # A prefix of a number or an ENUM is as long as the column, so it is no prefix.
    shorter = octets_of_text(column) or part.prefix < characters_of(column)
    return KeyPart(column.name, part.prefix if shorter else 0)


def _chosen_name(base: str, keys: Sequence[Key]) -> str:
    """Return the name that the server gives a key; "" if it is not certain.

    The server takes the first column's name, and adds a number if another key has that name. An index that was made for
    a foreign key disappears as soon as another index serves. So the name of an index that is not unique may be free or
    taken.
    """
    taken = {key.name.casefold() for key in keys if key.unique}
    doubtful = {key.name.casefold() for key in keys if not key.unique}
    if any(not key.name for key in keys) or len(base) > _SHORT:
        return ""
    for number in range(1, 100):
        name = base if number == 1 else f"{base}_{number}"
        if name.casefold() in doubtful:
            return ""
        if name.casefold() not in taken and not (number == 1 and is_same(name, PRIMARY)):
            return name
    return ""


def in_order(keys: Iterable[Key], columns: Sequence[Column], virtual: Collection[str]) -> tuple[Key, ...]:
    """Return keys in the server's order: the primary key, unique keys without NULLs, other unique keys, all others.

    Among unique keys of one kind, keys of whole columns come before keys with prefixes. Keys with expressions or
    virtual columns come last. The order decides which key stands in for a primary key (see `record_key`).
    """
    nullable = {column.name for column in columns if column.nullable}

    def rank(key: Key) -> tuple[bool, ...]:
        if not key.unique:
            return (True,)
        names = {part.column for part in key.parts}
        return (
            False,
            key.name != PRIMARY,
            not nullable.isdisjoint(names),
            any(part.prefix for part in key.parts),
            "" in names or not names.isdisjoint(virtual),
        )

    return tuple(sorted(keys, key=rank))


def record_key(keys: Iterable[Key], columns: Sequence[Column], virtual: Collection[str]) -> tuple[int, ...]:
    """Return the indexes of the columns that tell rows apart: those of the primary key, or of the key that stands in
    for it.

    The first unique key of whole columns without NULLs stands in. The server also accepts a TINYTEXT or TINYBLOB that
    is indexed up to its full length as a whole column. But its dictionary does not show such a key, so the result is
    then empty.
    """
    places = {column.name: place for place, column in enumerate(columns)}
    by_name = {column.name: column for column in columns}
    for key in keys:
        names = [part.column for part in key.parts]
        if key.name == PRIMARY:
            return tuple(places[name] for name in names)
        if not key.unique or any(not name or name in virtual for name in names):
            continue
        if any(by_name[part.column].nullable or not _whole(part, by_name[part.column]) for part in key.parts):
            continue
        return () if any(part.prefix for part in key.parts) else tuple(places[name] for name in names)
    return ()


def _whole(part: KeyPart, column: Column) -> bool:
    return not part.prefix or part.prefix * width_of(column.charset) == octets_of_text(column)


def resized(part: KeyPart, before: Column, after: Column) -> KeyPart:
    """Return the part of a key whose column was changed. A prefix that is not shorter than the column is dropped.

    Raise NotUnderstood if the length of the prefix is not certain.
    """
    is_text = bool(characters_of(after) or octets_of_text(after))
    if is_text and before.values:
        raise NotUnderstood(f"the prefix by which the former {before.type} {after.name} is indexed is not certain")
    shorter = part.prefix < characters_of(after) or octets_of_text(after)
    return KeyPart(after.name, part.prefix if shorter else 0)
