"""The definition of a table behind an alteration, with names resolved in MySQL's order.

Names of columns to drop, change or rename are names before the statement. The column behind AFTER has its name behind
the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from incsnap.ddl.alterations import FIRST, Alteration, PlacedColumn
from incsnap.ddl.character_sets import BINARY
from incsnap.ddl.column_types import converted, octets_of_text
from incsnap.ddl.keys import in_order, is_same, position_of, record_key, resized, with_declared
from incsnap.ddl.table_definition import PRIMARY, Key, KeyPart, TableDefinition
from incsnap.ddl.words import NotUnderstood
from incsnap.tables import Column, TableId, TableShape


@dataclass(frozen=True, slots=True)
class _Place:
    """A column of the table behind the statement."""

    column: Column  #: the column after the statement
    virtual: bool  #: generated and not stored
    before: Column | None  #: the column before the statement; None for a new one


def altered(table: TableDefinition, alteration: Alteration) -> TableDefinition:
    """Return the definition of the table behind the statement. The table's name stays: the caller renames it.

    Raise NotUnderstood if the statement does not fit the definition, or if its result is not certain.
    """
    charset = alteration.converted or alteration.charset or table.charset
    places = _columns(table, alteration, charset)
    if len({place.column.name.casefold() for place in places}) != len(places):
        raise NotUnderstood("two columns of the table would have one name, by the definition that is known")
    columns = [place.column for place in places]
    kept = _kept_keys(table, alteration, places)
    keys = with_declared(kept, alteration.keys, columns)
    return made(table.shape.id, columns, keys, charset, tuple(place.column.name for place in places if place.virtual))


def made(
    table: TableId, columns: Sequence[Column], keys: Sequence[Key], charset: str, virtual: tuple[str, ...]
) -> TableDefinition:
    """Return the definition that the server makes of columns and keys. A primary key's columns are never NULL.

    Raise NotUnderstood if there are two primary keys.
    """
    primary = {part.column for key in keys if key.name == PRIMARY for part in key.parts}
    if sum(key.name == PRIMARY for key in keys) > 1:
        raise NotUnderstood("the table would have two primary keys, by the definition that is known")
    columns = tuple(replace(column, nullable=False) if column.name in primary else column for column in columns)
    keys = in_order(keys, columns, virtual)
    return TableDefinition(TableShape(table, columns, record_key(keys, columns, virtual)), charset, keys, virtual)


def _columns(table: TableDefinition, alteration: Alteration, charset: str) -> list[_Place]:
    """Return the columns behind the statement. New and moved columns take their places one after another."""
    names = [column.name for column in table.shape.columns]
    dropped = {position_of(name, names) for name in alteration.dropped}
    renamed = {position_of(old, names): new for old, new in alteration.renamed}
    changed: dict[int, PlacedColumn] = {}
    for each in alteration.columns:
        if each.replaces is not None:
            number = position_of(each.replaces, names)
            if number in changed or number in dropped or number in renamed:
                raise NotUnderstood(f"the column {each.replaces} is changed twice")
            changed[number] = each
    if not dropped.isdisjoint(renamed):
        raise NotUnderstood("a column is dropped and renamed")
    places: list[_Place] = []
    for number, column in enumerate(table.shape.columns):
        if number in dropped:
            continue
        if number not in changed:
            kept = converted(column, alteration.converted) if alteration.converted else column
            name = renamed.get(number, column.name)
            places.append(_Place(replace(kept, name=name), column.name in table.virtual, column))
        else:
            places.append(_declared(changed[number], column, charset, alteration.converted))
    for each in alteration.columns:
        if each.replaces is None:
            _insert(places, _declared(each, None, charset, alteration.converted), each.after)
        elif each.after is not None:
            before = table.shape.columns[position_of(each.replaces, names)]
            moved = next(place for place in places if place.before is before)
            places.remove(moved)
            _insert(places, moved, each.after)
    return places


def _declared(placed: PlacedColumn, before: Column | None, charset: str, convert: str) -> _Place:
    """Return a column that the statement defines.

    CONVERT TO also changes the character set of such a column, unless its character set is binary.
    """
    declared = placed.column
    if convert and (declared.charset or charset) != BINARY:
        declared = replace(declared, charset=convert)
    column = declared.column(charset)
    if convert and before is not None and octets_of_text(column):
        raise NotUnderstood(
            f"the size of {column.name} is not certain where CONVERT TO stands beside its new definition"
        )
    return _Place(column, declared.virtual, before)


def _insert(places: list[_Place], place: _Place, after: str | None) -> None:
    if after is None:
        places.append(place)
    elif after == FIRST:
        places.insert(0, place)
    else:
        places.insert(1 + position_of(after, [each.column.name for each in places]), place)


def _kept_keys(table: TableDefinition, alteration: Alteration, places: Sequence[_Place]) -> list[Key]:
    """Return the keys that stay, with their names and columns behind the statement."""
    keys = list(table.keys)
    dropped = {_key_named(name, keys) for name in alteration.dropped_keys}
    for name in alteration.dropped_constraints:
        matches = [place for place, key in enumerate(keys) if key.unique and is_same(key.name, name)]
        if not matches:
            _refuse_unnamed(keys)
        dropped.update(matches)
    renamed = {_key_named(old, keys): new for old, new in alteration.renamed_keys}
    kept = []
    for number, key in enumerate(keys):
        if number in dropped:
            continue
        parts = tuple(part for each in key.parts if (part := _kept_part(key, each, places)) is not None)
        if parts:
            kept.append(replace(key, name=renamed.get(number, key.name), parts=parts))
    return kept


def _key_named(name: str, keys: Sequence[Key]) -> int | None:
    """Return the index in `keys` of the key with that name.

    Return None for an index that is not unique and whose name is unknown. Raise NotUnderstood if there is no such key,
    or if a unique key may have this name.
    """
    matches = [place for place, key in enumerate(keys) if key.name and is_same(key.name, name)]
    if matches and (keys[matches[0]].unique or all(key.name for key in keys)):
        return matches[0]
    _refuse_unnamed(keys)
    if matches:
        return matches[0]
    if all(key.name for key in keys):
        raise NotUnderstood(f"there is no index {name!r} in the definition that is known")
    return None


def _refuse_unnamed(keys: Sequence[Key]) -> None:
    """Raise NotUnderstood if the name of a unique key is unknown."""
    if any(key.unique and not key.name for key in keys):
        raise NotUnderstood("the names that the server gave to the table's keys are not certain")


def _kept_part(key: Key, part: KeyPart, places: Sequence[_Place]) -> KeyPart | None:
    """Return the part of a key behind the statement; None if its column is gone.

    MySQL looks for the column among the columns behind the statement, in their order. A column that was there before is
    found by its name before the statement, a new one by its own name.
    """
    if not part.column:
        return part
    for place in places:
        if place.before is None:
            if is_same(place.column.name, part.column):
                raise NotUnderstood(f"the key's column {part.column} is dropped and added")
        elif is_same(place.before.name, part.column):
            return resized(part, place.before, place.column) if key.unique else replace(part, column=place.column.name)
    return None
