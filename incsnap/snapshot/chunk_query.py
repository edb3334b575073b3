"""The SQL of keyset pagination: text only, nobody is asked anything here.

Five rules hold for every statement:

* **Expanded, not row-wise.** ``(a, b) > (x, y)`` makes MySQL scan the whole index; ``a > x OR (a = x AND b > y)`` does
  not, provided the leading column has a plain range of its own beside it: ``a >= x AND (...)``.
  https://dev.mysql.com/doc/refman/en/range-optimization.html#row-constructor-range-optimization
* **Borders know nothing of the condition.** The maximum and the next boundary look at keys alone, so they stay
  index-only and their cost is the chunk's size. With the condition in them, one that few rows meet would make the
  planner walk the whole table before it finds a boundary. The price is a chunk with few rows, or none.
* **The index is forced** (the primary key's, or the surrogate key's), so that no statistics of the day choose another
  one and sort: a chunk of ``n`` rows is ``n`` steps.
* **Neither uniqueness nor NOT NULL is needed.** Borders are values, not places: all rows of one value are in one chunk.
  So what tells rows apart is always among the columns: else a chunk could not be halved to a single row.
  NULL is less than all values, as MySQL's ORDER BY has it, and is asked for by IS NULL, for nothing compares with it.
* **Each column has a direction**, that of the index (``descending`` names those that run down). In another order MySQL
  sorts all that is left of the table for each border: of 5 million rows by (a DESC, b) 2 to 3 s, instead of 20 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from incsnap.snapshot.keys import Key, KeyValue, key_literal, key_select
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId, quote


def maximum_key(
    table: TableId, columns: Sequence[Column], *, index: str = "PRIMARY", descending: Collection[str] = ()
) -> str:
    """Selects the last key in canonical form; no row when the table is empty."""
    backward = [column.name for column in columns if column.name not in descending]
    return f"SELECT {_keys(columns)} FROM {_source(table, index)} ORDER BY {_names(columns, backward)} LIMIT 1"


def next_boundary(
    table: TableId,
    columns: Sequence[Column],
    after: Key | None,
    maximum: Key,
    rows: int,
    *,
    index: str = "PRIMARY",
    descending: Collection[str] = (),
) -> str:
    """Selects the ``rows``-th key above ``after`` and not above ``maximum``; no row when fewer are left."""
    return (
        f"SELECT {_keys(columns)} FROM {_source(table, index)} WHERE {between(columns, after, maximum, descending)}"
        f" ORDER BY {_names(columns, descending)} LIMIT 1 OFFSET {rows - 1:d}"
    )


def chunk_tail(chunk: Chunk, columns: Sequence[Column]) -> str:
    """``FROM ... WHERE ... ORDER BY ...`` of a chunk; the reader writes ``SELECT`` and its columns before it.

    ``columns``: the chunk's ordering columns as the table has them now (``window.ordering_columns``).
    """
    where = between(columns, chunk.lower, chunk.upper, chunk.descending) + _and_condition(chunk.condition)
    order = _names(columns, chunk.descending)
    return f"FROM {_source(chunk.table, chunk.index)} WHERE {where} ORDER BY {order}"


def condition_probe(table: TableId, condition: str) -> str:
    """A statement that reads nothing and fails when the server does not understand ``condition``."""
    return f"SELECT 1 FROM {table.sql} WHERE 1 = 1{_and_condition(condition)} LIMIT 0"


def above(columns: Sequence[Column], lower: Key, descending: Collection[str] = ()) -> str:
    """``lower < key`` over ``columns``."""
    return _bounded(columns, ">", lower, descending, inclusive=False)


def between(columns: Sequence[Column], lower: Key | None, upper: Key, descending: Collection[str] = ()) -> str:
    """``lower < key <= upper`` over ``columns``. A prefix that both share becomes equalities, the best range of all."""
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
    """``columns sign key`` as a triangle of ORs behind the range of the leading column."""
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


def _equal(column: Column, value: KeyValue) -> str:
    name = quote(column.name)
    return f"{name} IS NULL" if value is None else f"{name} = {key_literal(column, value)}"


def _compared(column: Column, sign: str, value: KeyValue, *, inclusive: bool) -> str:
    """``column sign value`` where NULL is the least of all values."""
    name = quote(column.name)
    if value is None:
        if sign == "<":
            return f"{name} IS NULL" if inclusive else "FALSE"
        return "TRUE" if inclusive else f"{name} IS NOT NULL"
    plain = f"{name} {sign}{'=' if inclusive else ''} {key_literal(column, value)}"
    return f"({plain} OR {name} IS NULL)" if sign == "<" and column.nullable else plain


def _keys(columns: Sequence[Column]) -> str:
    return ", ".join(key_select(column) for column in columns)


def _names(columns: Sequence[Column], descending: Collection[str]) -> str:
    """For ORDER BY."""
    return ", ".join(f"{quote(each.name)}{' DESC' if each.name in descending else ''}" for each in columns)


def _source(table: TableId, index: str) -> str:
    return f"{table.sql} FORCE INDEX ({quote(index)})" if index else table.sql


def _and_condition(condition: str) -> str:
    return f" AND ({condition})" if condition else ""
