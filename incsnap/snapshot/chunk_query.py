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

from collections.abc import Collection, Sequence

from incsnap.snapshot.keys import Key, KeyValue, key_literal, key_select
from incsnap.snapshot.window import Chunk
from incsnap.tables import Column, TableId, quote


def maximum_key(
    table: TableId, columns: Sequence[Column], *, index: str = "PRIMARY", descending: Collection[str] = ()
) -> str:
    """Return the query for the last key in canonical form. It gives no row if the table is empty."""
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
    """Return the query for the `rows`-th key above `after` and up to `maximum`.

    It gives no row if fewer rows are left.
    """
    return (
        f"SELECT {_keys(columns)} FROM {_source(table, index)} WHERE {between(columns, after, maximum, descending)}"
        f" ORDER BY {_names(columns, descending)} LIMIT 1 OFFSET {rows - 1:d}"
    )


def chunk_tail(chunk: Chunk, columns: Sequence[Column]) -> str:
    """Return the query of a chunk from `FROM` to its end. The reader puts `SELECT` and its columns before it.

    `columns` are the chunk's ordering columns as the table has them now (`window.ordering_columns`).
    """
    where = between(columns, chunk.lower, chunk.upper, chunk.descending) + _and_condition(chunk.condition)
    order = _names(columns, chunk.descending)
    return f"FROM {_source(chunk.table, chunk.index)} WHERE {where} ORDER BY {order}"


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


def _equal(column: Column, value: KeyValue) -> str:
    """Return the SQL condition that `column` has this value."""
    name = quote(column.name)
    return f"{name} IS NULL" if value is None else f"{name} = {key_literal(column, value)}"


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
