"""The SQL of keyset pagination, as text: maximum key, next boundary and rows of a chunk. Nothing is executed here.

Five rules hold for every statement:

* **Expanded, not row-wise.** `(a, b) > (x, y)` makes MySQL scan the whole index. `a > x OR (a = x AND b > y)` does not,
  if the leading column has a plain range of its own beside it: `a >= x AND (...)`.
  https://dev.mysql.com/doc/refman/en/range-optimization.html#row-constructor-range-optimization
* **Boundaries ignore the condition.** The maximum and the next boundary read keys alone. So these statements stay
  index-only, and their cost is the size of a chunk. With a condition that few rows fulfil, the planner would walk the
  whole table before it finds a boundary. The price is a chunk with few rows, or none.
* **The index is forced** (that of the primary key or the surrogate key). Otherwise statistics might choose another
  index and a sort. A chunk of `n` rows takes `n` steps.
* **Keys may repeat and may be NULL.** Boundaries are values, not places, so all rows of one value are in one chunk. The
  columns that tell rows apart are always among the ordering columns. Otherwise a chunk could not be halved down to one
  row. NULL is less than all values, as in MySQL's ORDER BY. It is selected by IS NULL, because nothing compares with
  it.
* **Each column has a direction**, that of the index; `descending` names the columns that run down. In any other order
  MySQL sorts the rest of the table for each boundary. For 5 million rows by (a DESC, b) that takes 2 to 3 s instead of
  20 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from incsnap.snapshot.keys import Key, KeyValue, SharedText, given_literal, key_literal, key_select
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId, quote

#: Types of columns that may have zero dates.
_DATED = frozenset({"date", "datetime", "timestamp"})
#: Types of columns that have a number, by which `key_literal` names a value, and a text.
_NUMBERED_TEXTS = frozenset({"enum", "set"})
#: The text of the epoch, which records show for the zero date of a NOT NULL column.
_EPOCH = re.compile(r"1970-01-01( 00:00:00(\.0+)?)?\Z")


def maximum_key(
    table: TableId,
    columns: Sequence[Column],
    *,
    index: str = "PRIMARY",
    descending: Collection[str] = (),
    first: Key | None = None,
    last: Key | None = None,
) -> str:
    """Return the query for the last key in canonical form, between `first` and `last` as `within` has them.

    It gives no row if there is none.
    """
    backward = [column.name for column in columns if column.name not in descending]
    limits = within(columns, first, last)
    where = f" WHERE {limits}" if limits else ""
    return f"SELECT {_keys(columns)} FROM {_source(table, index)}{where} ORDER BY {_names(columns, backward)} LIMIT 1"


def next_boundary(
    table: TableId,
    columns: Sequence[Column],
    after: Key | None,
    maximum: Key,
    rows: int,
    *,
    index: str = "PRIMARY",
    descending: Collection[str] = (),
    first: Key | None = None,
    last: Key | None = None,
) -> str:
    """Return the query for the `rows`-th key above `after` and up to `maximum`, between `first` and `last`.

    It gives no row if fewer rows are left.
    """
    where = between(columns, after, maximum, descending) + _and_condition(within(columns, first, last))
    return (
        f"SELECT {_keys(columns)} FROM {_source(table, index)} WHERE {where}"
        f" ORDER BY {_names(columns, descending)} LIMIT 1 OFFSET {rows - 1:d}"
    )


def chunk_tail(chunk: Chunk, columns: Sequence[Column]) -> str:
    """Return the query of a chunk from `FROM` to its end. The reader puts `SELECT` and its columns before it.

    `columns` are the chunk's ordering columns as the table has them now (`window.ordering_columns`).
    """
    where = between(columns, chunk.lower, chunk.upper, chunk.descending)
    for condition in (within(columns, chunk.first, chunk.last), _sample(columns, chunk), chunk.condition):
        where += _and_condition(condition)
    order = _names(columns, chunk.descending)
    return f"FROM {_source(chunk.table, chunk.index)} WHERE {where} ORDER BY {order}"


def listed_tail(chunk: Chunk, columns: Sequence[Column], keys: Sequence[Key]) -> str:
    """Return the query of a chunk of listed keys from `FROM` to its end.

    `columns` are the columns of `keys` as the table has them now.
    """
    where = (any_of(columns, keys) if keys else "FALSE") + _and_condition(chunk.condition)
    return f"FROM {_source(chunk.table, chunk.index)} WHERE {where}"


def any_of(columns: Sequence[Column], keys: Sequence[Key]) -> str:
    """Return the SQL condition that `columns` are one of `keys`, of which there is at least one.

    MySQL finds the rows by the index. For a row constructor it does so only if there is more than one key.
    https://dev.mysql.com/doc/refman/en/range-optimization.html#row-constructor-range-optimization

    A value is one that records show. Records show other values of the table in the same way, and the condition finds
    these values too (`_shown_alike`).
    """
    whole: list[Key] = []
    others: list[Key] = []
    for key in keys:
        is_plain = None not in key and not any(map(_shown_alike, columns, key))
        (whole if is_plain else others).append(key)
    shared = [key for key in others if isinstance(key[0], SharedText)] if len(columns) == 1 else []
    if len(shared) > 1:
        # One condition for all: each condition walks through the table.
        whole += shared
        others = [key for key in others if not isinstance(key[0], SharedText)]
    if len(whole) == 1:
        whole, others = [], [*whole, *others]
    terms = [f"({' AND '.join(_shown_as(*each) for each in zip(columns, key, strict=True))})" for key in others]
    if whole:
        terms += _among(columns, whole)
    if len(shared) > 1:
        terms.append(_shown_among(columns[0], [text for (text,) in shared if text is not None]))
    return f"({' OR '.join(terms)})"


def _among(columns: Sequence[Column], keys: Sequence[Key]) -> list[str]:
    """Return SQL conditions of which one holds if `columns` are one of `keys`: two keys or more, without NULL.

    A row constructor compares an ENUM or a SET with a number by its text, and finds no row. So the keys with the same
    values of such columns share a condition for these columns.
    """
    texts = [place for place, column in enumerate(columns) if column.type in _NUMBERED_TEXTS]
    if texts and len(columns) > 1:
        others = [place for place in range(len(columns)) if place not in texts]
        rests: dict[Key, list[Key]] = {}
        for key in keys:
            rests.setdefault(tuple(key[place] for place in texts), []).append(tuple(key[place] for place in others))
        terms = []
        for values, rest in rests.items():
            conditions = [_equal(columns[place], value) for place, value in zip(texts, values, strict=True)]
            if others:
                conditions.append(any_of([columns[place] for place in others], rest))
            terms.append(f"({' AND '.join(conditions)})")
        return terms
    names = ", ".join(quote(column.name) for column in columns)
    listed = (", ".join(map(given_literal, columns, key)) for key in keys)
    if len(columns) == 1:
        return [f"{names} IN ({', '.join(listed)})"]
    return [f"({names}) IN ({', '.join(f'({each})' for each in listed)})"]


def within(columns: Sequence[Column], first: Key | None, last: Key | None) -> str:
    """Return the SQL condition `first <= key <= last` over leading columns; "" for no limit.

    A limit may have values for some leading columns only. Values are compared as MySQL compares them, whatever the
    order of the index. So a row with NULL is not below a limit.
    """
    limits = ((">", first), ("<", last))
    compared = [replace(column, nullable=False) for column in columns]
    return " AND ".join(
        _bounded(compared[: len(key)], sign, key, (), inclusive=True) for sign, key in limits if key is not None
    )


def _sample(columns: Sequence[Column], chunk: Chunk) -> str:
    """Return the SQL condition for one row in `chunk.every`, by a hash of the key; "" for all rows.

    The seed and the key's values are joined with a character that no number has, so that neighbours differ.
    """
    if not chunk.every:
        return ""
    return f"CRC32(CONCAT_WS('#', {chunk.seed:d}, {_keys(columns)})) % {chunk.every:d} = 0"


def condition_probe(table: TableId, condition: str) -> str:
    """Return a statement that reads no row and fails if the server does not understand `condition`."""
    return f"SELECT 1 FROM {table.sql} WHERE 1 = 1{_and_condition(condition)} LIMIT 0"


def above(columns: Sequence[Column], lower: Key, descending: Collection[str] = ()) -> str:
    """Return the SQL condition `lower < key` over `columns`."""
    return _bounded(columns, ">", lower, descending, inclusive=False)


def between(columns: Sequence[Column], lower: Key | None, upper: Key, descending: Collection[str] = ()) -> str:
    """Return the SQL condition `lower < key <= upper` over `columns`.

    Leading values that are the same in both keys become equalities, the best range of all.
    """
    if lower is None:
        return _bounded(columns, "<", upper, descending, inclusive=True)
    terms: list[str] = []
    shared = 0
    while shared < len(columns) - 1 and lower[shared] == upper[shared]:
        terms.append(_equal(columns[shared], lower[shared]))
        shared += 1
    rest = columns[shared:]
    terms.append(above(rest, lower[shared:], descending))
    terms.append(_bounded(rest, "<", upper[shared:], descending, inclusive=True))
    return " AND ".join(terms)


def _bounded(columns: Sequence[Column], sign: str, key: Key, descending: Collection[str], *, inclusive: bool) -> str:
    """Return `columns sign key` as SQL: the range of the leading column, and ORs for the whole key."""
    last = len(columns) - 1
    turned = {"<": ">", ">": "<"}[sign]
    signs = [turned if column.name in descending else sign for column in columns]
    branches = []
    for level, (column, value) in enumerate(zip(columns, key, strict=True)):
        equal = [_equal(columns[i], key[i]) for i in range(level)]
        compared = _compared(column, signs[level], value, inclusive=inclusive and level == last)
        branches.append(" AND ".join([*equal, compared]))
    if len(branches) == 1:
        return f"({branches[0]})"
    triangle = " OR ".join(f"({branch})" for branch in branches)
    return f"({_compared(columns[0], signs[0], key[0], inclusive=True)} AND ({triangle}))"


def _shown_as(column: Column, value: KeyValue) -> str:
    """Return the SQL condition that records show `column` with this value."""
    conditions = [_equal(column, value, literal=given_literal), *_shown_alike(column, value)]
    return f"({' OR '.join(conditions)})" if len(conditions) > 1 else conditions[0]


def _shown_alike(column: Column, value: KeyValue) -> list[str]:
    """Return SQL conditions for other values of `column` that records show in the same way as `value`.

    An invalid date has a 0 as year, month or day, or a day that its month does not have (ALLOW_INVALID_DATES). It is
    shown as NULL, or as the epoch if the column is NOT NULL. The only invalid TIMESTAMP is the whole zero date. The
    error value of an ENUM is shown as the empty text.
    """
    if isinstance(value, SharedText):
        return [_shown_among(column, [value])]
    name = quote(column.name)
    if column.type in _DATED and (value is None if column.nullable else _EPOCH.match(value or "")):
        if column.type == "timestamp":
            return [f"{name} = '0000-00-00 00:00:00'"]
        # LAST_DAY of a date without a month is NULL.
        return [f"YEAR({name}) = 0", f"COALESCE(DAY({name}) NOT BETWEEN 1 AND DAY(LAST_DAY({name})), TRUE)"]
    if column.type == "enum" and value and "" in column.values and int(value) == column.values.index("") + 1:
        return [f"{name} = 0"]
    return []


def _shown_among(column: Column, texts: Sequence[str]) -> str:
    """Return the SQL condition that `column` is shown as one of `texts`, whatever its bytes. It may hold for others."""
    name = quote(column.name)
    if column.charset == "ucs2":
        # MySQL does not convert halves of surrogate pairs, and records show a pair as one character.
        return f"HEX({name}) REGEXP '^(.{{4}})*D[89A-F]'"
    listed = ", ".join(f"_utf8mb4 x'{text.encode().hex()}'" for text in texts)
    return f"CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin IN ({listed})"


def _equal(column: Column, value: KeyValue, literal: Callable[[Column, KeyValue], str] = key_literal) -> str:
    """Return the SQL condition that `column` has this value, of which `literal` makes SQL."""
    name = quote(column.name)
    return f"{name} IS NULL" if value is None else f"{name} = {literal(column, value)}"


def _compared(column: Column, sign: str, value: KeyValue, *, inclusive: bool) -> str:
    """Return the SQL condition `column sign value`, where NULL is less than all values."""
    name = quote(column.name)
    if value is None:
        if sign == "<":
            return f"{name} IS NULL" if inclusive else "FALSE"
        return "TRUE" if inclusive else f"{name} IS NOT NULL"
    plain = f"{name} {sign}{'=' if inclusive else ''} {key_literal(column, value)}"
    return f"({plain} OR {name} IS NULL)" if sign == "<" and column.nullable else plain


def _keys(columns: Sequence[Column]) -> str:
    """Return the SELECT list that prints a key."""
    return ", ".join(key_select(column) for column in columns)


def _names(columns: Sequence[Column], descending: Collection[str]) -> str:
    """Return the ORDER BY list of the columns."""
    return ", ".join(f"{quote(each.name)}{' DESC' if each.name in descending else ''}" for each in columns)


def _source(table: TableId, index: str) -> str:
    """Return the table for FROM, with the forced index."""
    return f"{table.sql} FORCE INDEX ({quote(index)})" if index else table.sql


def _and_condition(condition: str) -> str:
    """Return the signal's condition with ` AND ` before it, or "" for none."""
    return f" AND ({condition})" if condition else ""
