"""The decision whether rows that were written before an ALTER TABLE have values that no consumer can know.

A consumer has a row's record from before the statement. It has the table's definition behind the statement in the
schema of newer records and on the schema change topic. So it knows the value of a new column that is NULL or has a
constant DEFAULT. It cannot know an expression, a counter, or what a conversion makes of a value.

`unknown_values` decides by two definitions and by where the columns come from (`column_origins`). The definitions may
have several statements between them. A column that several statements have defined counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from incsnap.ddl.column_statements import NO_STATEMENT, ColumnStatements
from incsnap.ddl.conversions import keeps_expressions, keeps_values
from incsnap.tables import CharsetName


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column as information_schema describes it, as far as values of old rows depend on it."""

    name: str  #: as the server writes it
    type: str  #: COLUMN_TYPE, for example `decimal(6,2) unsigned`
    nullable: bool = True  #: whether the column takes NULL
    charset: CharsetName = ""  #: character set of a text; "" for other types
    default: str | None = None  #: DEFAULT as it is printed; None: none, or NULL
    computed: bool = False  #: whether the DEFAULT is an expression; CURRENT_TIMESTAMP is one
    generated: str = ""  #: expression of a generated column; "" for another column
    counted: bool = False  #: AUTO_INCREMENT


@dataclass(frozen=True, slots=True)
class DefinedTable:
    """The columns of a table at one moment."""

    columns: tuple[DefinedColumn, ...]  #: in their order
    key: tuple[str, ...] = ()  #: columns of the key that tells rows apart, in the key's order; (): no such key


#: Name of a column behind the statements -> its name before them, None for a new column. Both are in lower case.
#: Columns that are not named have kept their name.
Origins = Mapping[str, str | None]

_NAME = re.compile(r"`((?:[^`]|``)+)`")
_SEVERAL = "is defined by several statements in a row"


def unknown_values(
    before: DefinedTable,
    after: DefinedTable,
    origins: Origins | None,
    statements: ColumnStatements = NO_STATEMENT,
    is_captured: Callable[[str], bool] = lambda _: True,
    *,
    is_copied: bool = False,
) -> tuple[str, ...]:
    """Return why old rows have values that consumers cannot know, a reason for each column; () if they know all.

    `origins`: None if the statements between the definitions were not understood. Then a new column may be a former
    one under a new name. `statements`: the statements that have defined columns. `is_captured`: whether records have a
    column, by its name. `is_copied`: gh-ost or pt-online-schema-change has filled a copy of the table.
    """
    return tuple(_unknown(before, after, origins, statements, is_captured, is_copied))


def changed_columns(
    before: DefinedTable,
    after: DefinedTable,
    origins: Origins | None,
    statements: ColumnStatements = NO_STATEMENT,
) -> tuple[str, ...]:
    """Return the differences of the columns and the key, a text for each; () if there are none.

    A column that several statements have defined is a difference. Arguments are those of `unknown_values`. Columns that
    are not captured are compared like all others.

    A DEFAULT, the order of columns, collations and comments are no differences: no value depends on them.
    """
    pairs = _pairs(before, after, origins)
    differences = [f"column {name} is dropped" for name in _gone(before, pairs)]
    for column, former in pairs:
        if former is None:
            differences.append(f"column {column.name} is new")
        elif column.name.lower() != former.name.lower():
            differences.append(f"column {former.name} is {column.name} now")
        elif _form(column) != _form(former):
            differences.append(f"column {column.name} is {_form(column)}, and was {_form(former)}")
        elif _number(statements, column, former) > 1:
            differences.append(f"column {column.name} {_SEVERAL}")
    return (*differences, *_other_key(before, pairs, after))


_Pair = tuple[DefinedColumn, DefinedColumn | None]


def _pairs(before: DefinedTable, after: DefinedTable, origins: Origins | None) -> list[_Pair]:
    """Return each column behind the statements, with what it was before them; None for a new column."""
    former = {column.name.lower(): column for column in before.columns}
    known = origins or {}
    names = (column.name.lower() for column in after.columns)
    sources = [known.get(name, name) for name in names]
    return [(column, former.get(source or "")) for column, source in zip(after.columns, sources, strict=True)]


def _gone(before: DefinedTable, pairs: list[_Pair]) -> list[str]:
    """Return the columns that are gone, by their names."""
    kept = {former.name for _, former in pairs if former is not None}
    return [column.name for column in before.columns if column.name not in kept]


def _number(statements: ColumnStatements, column: DefinedColumn, former: DefinedColumn | None) -> int:
    """Return how many statements have defined the column."""
    is_text = bool(column.charset or (former is not None and former.charset))
    return statements.number(column.name, is_new=former is None, is_text=is_text)


def _unknown(
    before: DefinedTable,
    after: DefinedTable,
    origins: Origins | None,
    statements: ColumnStatements,
    is_captured: Callable[[str], bool],
    is_copied: bool,
) -> Iterator[str]:
    pairs = _pairs(before, after, origins)
    gone = _gone(before, pairs)
    may_be_renamed = gone if origins is None else []
    names_of_gone = {name.lower() for name in gone}
    changed = _changed(pairs)
    for column, former in pairs:
        if not is_captured(column.name):
            continue
        reason = _of_new(column) if former is None else _of_kept(column, former) or _of_expression(column, changed)
        if not reason and is_copied and former is not None and former.generated and not column.generated:
            reason = "was generated, and the tool for online schema changes does not copy such values"
        if not reason and former is None and column.name.lower() in names_of_gone:
            reason = "has the name of a dropped column"
        if not reason and former is None and may_be_renamed:
            reason = f"may be one of {', '.join(may_be_renamed)} under a new name"
        if not reason and _number(statements, column, former) > 1:
            reason = _SEVERAL
        if not reason and statements.others and (former is None or _form(column) != _form(former)):
            reason = "comes with another table, which has taken the place of this one"
        if reason:
            yield f"column {column.name} {'is new, and ' if former is None else ''}{reason}"
    yield from _other_key(before, pairs, after)


def _of_new(column: DefinedColumn) -> str:
    """Return why the values of a new column are not known; "" if they are known."""
    if column.generated:
        return "is generated"
    if column.counted:
        return "has AUTO_INCREMENT"
    if column.computed:
        return f"has an expression as its DEFAULT: {column.default}"
    if column.default is None and not column.nullable:
        return "is NOT NULL without a DEFAULT, so no schema shows the value in old rows"
    return ""


def _of_kept(column: DefinedColumn, former: DefinedColumn) -> str:
    """Return why the values of a column that was there before are not known; "" if they are known."""
    if column.name.lower() != former.name.lower():
        return f"was {former.name}, under which records of old rows have its values"
    if column.generated and column.generated != former.generated:
        return f"is generated by another expression: {column.generated}"
    if column.counted and not former.counted:
        return "has AUTO_INCREMENT now"
    if former.nullable and not column.nullable:
        return "is NOT NULL now, and its NULLs have become values"
    if not keeps_values(former.type, column.type, former.charset, column.charset):
        return f"is {_form(column)} now, and was {_form(former)}"
    return ""


def _of_expression(column: DefinedColumn, changed: Collection[str]) -> str:
    """Return why the values of a generated column are not known although its expression stays; "" if they are known."""
    names = sorted(_named(column.generated).intersection(changed))
    return f"is generated from {', '.join(names)}, whose definition changes" if names else ""


def _changed(pairs: list[_Pair]) -> set[str]:
    """Return the columns, in lower case, that may have other values in an expression than before the statements.

    An expression may show what a record does not: the number of an ENUM's member, or the bytes of a text.
    """
    changed = {
        column.name.lower()
        for column, former in pairs
        if former is not None
        and (
            column.charset != former.charset
            or not keeps_expressions(former.type, column.type)
            or (former.nullable and not column.nullable)
        )
    }
    for column, _ in pairs:  # an expression names only generated columns that stand before
        if _named(column.generated) & changed:
            changed.add(column.name.lower())
    return changed


def _named(expression: str) -> set[str]:
    """Return the columns, in lower case, that an expression names. The server prints names in backticks."""
    return {name.replace("``", "`").lower() for name in _NAME.findall(expression)}


def _other_key(before: DefinedTable, pairs: list[_Pair], after: DefinedTable) -> Iterator[str]:
    """Yield a reason if records have other keys."""
    former = {column.name.lower(): was.name.lower() for column, was in pairs if was is not None}
    if [former.get(name.lower()) for name in after.key] != [name.lower() for name in before.key]:
        yield f"the key is ({', '.join(after.key)}) now, and was ({', '.join(before.key)})"


def _form(column: DefinedColumn) -> str:
    """Return the column's definition for people, as far as values depend on it."""
    words = [column.type]
    words += [f"CHARACTER SET {column.charset}"] if column.charset else []
    words += [f"AS ({column.generated})"] if column.generated else []
    words += [] if column.nullable else ["NOT NULL"]
    words += ["AUTO_INCREMENT"] if column.counted else []
    return " ".join(words)
