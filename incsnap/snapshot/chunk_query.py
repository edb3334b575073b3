"""The SQL of keyset pagination: text only, nobody is asked anything here.

Four rules hold for every statement:

* **Expanded, not row-wise.** ``(a, b) > (x, y)`` makes MySQL scan the whole index; ``a > x OR (a = x AND b > y)`` does
  not, provided the leading column has a plain range of its own beside it: ``a >= x AND (...)``.
  https://dev.mysql.com/doc/refman/en/range-optimization.html#row-constructor-range-optimization
* **Borders know nothing of the condition.** The maximum and the next boundary look at keys alone, so they stay
  index-only and their cost is the chunk's size. With the condition in them, one that few rows meet would make the
  planner walk the whole table before it finds a boundary. The price is a chunk with few rows, or none.
* **The index is forced** (the primary key's, or the surrogate key's), so that no statistics of the day choose another
  one and sort: a chunk of ``n`` rows is ``n`` steps.
* **Neither uniqueness nor NOT NULL is needed.** Borders are values, not places: all rows of one value are in one chunk.
  NULL comes before all values, as MySQL's ORDER BY has it, and is asked for by IS NULL, for nothing compares with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from incsnap.snapshot.keys import Key, KeyValue, key_literal, key_select
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId, quote


def maximum_key(table: TableId, columns: Sequence[Column], *, index: str = "PRIMARY") -> str:
    """Selects the greatest key in canonical form; no row when the table is empty."""
    descending = ", ".join(f"{quote(c.name)} DESC" for c in columns)
    return f"SELECT {_keys(columns)} FROM {_source(table, index)} ORDER BY {descending} LIMIT 1"


def next_boundary(
    table: TableId,
    columns: Sequence[Column],
    after: Key | None,
    maximum: Key,
    rows: int,
    *,
    index: str = "PRIMARY",
) -> str:
    """Selects the ``rows``-th key above ``after`` and not above ``maximum``; no row when fewer are left."""
    return (
        f"SELECT {_keys(columns)} FROM {_source(table, index)} WHERE {between(columns, after, maximum)}"
        f" ORDER BY {_names(columns)} LIMIT 1 OFFSET {rows - 1:d}"
    )


def chunk_tail(chunk: Chunk, columns: Sequence[Column]) -> str:
    """``FROM ... WHERE ... ORDER BY ...`` of a chunk; the reader writes ``SELECT`` and its columns before it.

    ``columns``: the chunk's ordering columns as the table has them now (``window.ordering_columns``).
    """
    where = between(columns, chunk.lower, chunk.upper) + _and_condition(chunk.condition)
    return f"FROM {_source(chunk.table, chunk.index)} WHERE {where} ORDER BY {_names(columns)}"


def condition_probe(table: TableId, condition: str) -> str:
    """A statement that reads nothing and fails when the server does not understand ``condition``."""
    return f"SELECT 1 FROM {table.sql} WHERE 1 = 1{_and_condition(condition)} LIMIT 0"


def between(columns: Sequence[Column], lower: Key | None, upper: Key) -> str:
    """``lower < key <= upper`` over ``columns``. A prefix that both share becomes equalities, the best range of all."""
    if lower is None:
        return _bounded(columns, "<", upper, inclusive=True)
    terms: list[str] = []
    shared = 0
    while shared < len(columns) - 1 and lower[shared] == upper[shared]:
        terms.append(_equal(columns[shared], lower[shared]))
        shared += 1
    rest = columns[shared:]
    terms.append(_bounded(rest, ">", lower[shared:], inclusive=False))
    terms.append(_bounded(rest, "<", upper[shared:], inclusive=True))
    return " AND ".join(terms)


def _bounded(columns: Sequence[Column], sign: str, key: Key, *, inclusive: bool) -> str:
    """``key sign columns`` as a triangle of ORs behind the range of the leading column."""
    last = len(columns) - 1
    branches = []
    for level, (column, value) in enumerate(zip(columns, key, strict=True)):
        equal = [_equal(columns[i], key[i]) for i in range(level)]
        compared = _compared(column, sign, value, inclusive=inclusive and level == last)
        branches.append(" AND ".join([*equal, compared]))
    if len(branches) == 1:
        return f"({branches[0]})"
    triangle = " OR ".join(f"({branch})" for branch in branches)
    return f"({_compared(columns[0], sign, key[0], inclusive=True)} AND ({triangle}))"


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


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(quote(column.name) for column in columns)


def _source(table: TableId, index: str) -> str:
    return f"{table.sql} FORCE INDEX ({quote(index)})" if index else table.sql


def _and_condition(condition: str) -> str:
    return f" AND ({condition})" if condition else ""
