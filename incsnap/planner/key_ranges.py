"""The ranges of a table's key: rows that one SELECT reads in a task."""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection
from pyspark.sql.datasource import InputPartition

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.mysql.session import query
from incsnap.planner.answers import Answers
from incsnap.snapshot.chunk_query import above, chunk_tail
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import Answer, Describe, KeyOrder, MaximumKey, NextBoundary, Refused
from incsnap.snapshot.window import Chunk, ordering_columns
from incsnap.tables import TableId, TableShape

#: The hint of errors about ranges.
HINT = "Leave numPartitions out. One SELECT then reads the table."


class RangePart(InputPartition):
    """The rows with `lower < key <= upper` in `order`; all rows if `order` is None.

    A bound that is None does not limit.
    """

    def __init__(self, order: KeyOrder | None = None, lower: Key | None = None, upper: Key | None = None) -> None:
        self.order, self.lower, self.upper = order, lower, upper


def range_tail(shape: TableShape, part: RangePart, condition: str = "") -> str:
    """Return the SELECT's clauses from FROM on. `condition`: SQL that chooses rows; "" for all."""
    if part.order is None or part.lower is part.upper is None:
        return f"FROM {shape.id.sql}" + (f" WHERE {condition}" if condition else "")
    columns = ordering_columns(shape, part.order.columns)
    if part.upper is not None:
        order = part.order
        chunk = Chunk(
            shape.id,
            order.columns,
            part.lower,
            part.upper,
            condition,
            index=order.index,
            descending=order.descending,
        )
        return chunk_tail(chunk, columns)
    # The last range has no end, so it includes rows that were inserted above the maximum key meanwhile.
    assert part.lower is not None
    where = above(columns, part.lower, part.order.descending) + (f" AND ({condition})" if condition else "")
    return f"FROM {shape.id.sql} WHERE {where}"


def ranges_of(connection: Connection[Any], settings: Settings, table: TableId, count: int) -> list[RangePart]:
    """Return ranges of about the same number of rows; the last one has no end.

    Raise ConfigError if the table has no order of keys, or if MySQL does not answer a question about the keys.
    """
    answers = Answers(connection, settings.columns)
    order = answers(Describe(table, "", "", GtidSet()))
    if not isinstance(order, KeyOrder):
        raise _refusal(table, order)
    maximum = _key(table, answers(MaximumKey(table, order.columns, order.index, GtidSet(), order.descending)))
    ((rows,),) = query(connection, f"SELECT COUNT(*) FROM {table.sql}")
    step = max(1, -(-int(rows) // count))
    ranges: list[RangePart] = []
    lower: Key | None = None
    while maximum is not None and len(ranges) < count - 1:
        boundary = NextBoundary(table, order.columns, order.index, lower, maximum, step, descending=order.descending)
        upper = _key(table, answers(boundary))
        if upper is None:
            break
        ranges.append(RangePart(order, lower, upper))
        lower = upper
    return [*ranges, RangePart(order, lower)]


def _key(table: TableId, answer: Answer) -> Key | None:
    """Return the key that an answer has; None if the table has no such key. Raise ConfigError if it is no answer."""
    if answer is None or isinstance(answer, tuple):
        return answer
    raise _refusal(table, answer)


def _refusal(table: TableId, answer: Answer) -> ConfigError:
    """Return the error for a question that MySQL has not answered."""
    reason = answer.reason if isinstance(answer, Refused) else getattr(answer, "message", "MySQL gave no answer")
    return ConfigError(f"{table} cannot be read in several partitions: {reason}", HINT)
