"""``spark.read.format("incsnap")``: a table's rows as a DataFrame, with the columns of its changes.

One partition is one SELECT, so its rows are those of one moment. Several partitions are ranges of the key, each read by
a connection of its own: MySQL cannot share a snapshot between connections, so each range is of its own moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pymysql.connections import Connection
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from incsnap.config.settings import Settings
from incsnap.envelope.frame_format import frame_fields
from incsnap.envelope.json_rows import rows_of
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import stream_rows
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.session import connect, query
from incsnap.planner.answers import Answers
from incsnap.snapshot.chunk_query import above, chunk_tail
from incsnap.snapshot.keys import Key
from incsnap.snapshot.questions import Describe, Failed, KeyOrder, MaximumKey, NextBoundary, Refused
from incsnap.snapshot.window import Chunk, ordering_columns
from incsnap.spark.error_text import hint_in_message
from incsnap.spark.spark_release import arrow_schema
from incsnap.tables import TableId, TableShape
from incsnap.tasks.frame_columns import CHANGE_FIELDS, SchemaChanged, first_position_of

#: Seconds that the server waits for a task which Spark keeps from taking rows.
_PATIENCE_SECONDS = 3600
_HINT = "Leave numPartitions out: one SELECT then reads the table."


class RangePart(InputPartition):
    """``lower < key <= upper`` of the columns ``columns``; all of the table where they are None."""

    def __init__(self, order: KeyOrder | None = None, lower: Key | None = None, upper: Key | None = None) -> None:
        self.order, self.lower, self.upper = order, lower, upper


class TableFrame(DataSourceReader):
    """``partitions``: how many, as the option has it."""

    def __init__(self, settings: Settings, schema: StructType, partitions: str) -> None:
        assert settings.frame is not None
        if settings.frame.table is None or settings.frame.envelope:
            raise ConfigError(
                "spark.read reads the rows of one table", "Set the option table=database.table, without envelope."
            )
        if not partitions.isdecimal() or int(partitions) < 1:
            raise ConfigError(f"numPartitions: {partitions!r} is not a whole number from 1 on", _HINT)
        self._table, self._settings, self._count = settings.frame.table, settings, int(partitions)
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        if self._count == 1:
            return [RangePart()]
        with hint_in_message():
            connection = connect(self._settings.mysql)
            try:
                return _ranges(connection, self._settings, self._table, self._count)
            finally:
                connection.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, RangePart)
        with hint_in_message():
            connection = connect(self._settings.mysql, read_timeout=float(_PATIENCE_SECONDS))
            try:
                query(connection, f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}")
                yield from self._rows(connection, partition)
            finally:
                connection.close()

    def _rows(self, connection: Connection[Any], part: RangePart) -> Iterator[pa.RecordBatch]:
        shape = shape_of(connection, self._table)
        if shape is not None and self._settings.columns.needs_definitions:
            shape = shape_with_defaults(connection, shape, definitions=True)
        view = view_of(shape or TableShape(self._table, ()), self._settings.columns)
        if shape is None or not pa.schema([*CHANGE_FIELDS, *frame_fields(view)]).equals(self._schema):
            raise SchemaChanged(f"{self._table} has other columns than when the DataFrame was made", "Make it anew.")
        now_us = time.time_ns() // 1000
        for columns in stream_rows(connection, shape, _tail(shape, part), view.needed):
            if n := rows_of(columns):
                arrays = [*_marks(now_us, n), *(field.frame(columns) for field in view.fields)]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _marks(now_us: int, n: int) -> list[Any]:
    """The marks of ``n`` rows, as of rows that are read for a stream; all of them come before its first batch."""
    values = ["r", now_us, None, first_position_of(0), True]
    return [pa.repeat(pa.scalar(value, field.type), n) for value, field in zip(values, CHANGE_FIELDS, strict=True)]


def _tail(shape: TableShape, part: RangePart) -> str:
    if part.order is None:
        return f"FROM {shape.id.sql}"
    columns = ordering_columns(shape, part.order.columns)
    if part.upper is not None:
        order = part.order
        chunk = Chunk(shape.id, order.columns, part.lower, part.upper, index=order.index, descending=order.descending)
        return chunk_tail(chunk, columns)
    # What was inserted above the greatest key since it was looked for belongs to the table too.
    if part.lower is None:
        return f"FROM {shape.id.sql}"
    return f"FROM {shape.id.sql} WHERE {above(columns, part.lower, part.order.descending)}"


def _ranges(connection: Connection[Any], settings: Settings, table: TableId, count: int) -> list[RangePart]:
    """Ranges of about as many rows; the last one has no end. Raises ``ConfigError`` where the table has no order."""
    answers = Answers(connection, settings.columns)
    order = answers(Describe(table, "", "", GtidSet()))
    if isinstance(order, (Refused, Failed)):
        why = order.reason if isinstance(order, Refused) else order.message
        raise ConfigError(f"{table} cannot be read in several partitions: {why}", _HINT)
    assert isinstance(order, KeyOrder)
    maximum = answers(MaximumKey(table, order.columns, order.index, GtidSet(), order.descending))
    ((rows,),) = query(connection, f"SELECT COUNT(*) FROM {table.sql}")
    step = max(1, -(-int(rows) // count))
    ranges: list[RangePart] = []
    lower: Key | None = None
    while isinstance(maximum, tuple) and len(ranges) < count - 1:
        boundary = NextBoundary(table, order.columns, order.index, lower, maximum, step, descending=order.descending)
        upper = answers(boundary)
        if isinstance(upper, Failed):
            raise ConfigError(f"{table} cannot be read in several partitions: {upper.message}", _HINT)
        if not isinstance(upper, tuple):
            break
        ranges.append(RangePart(order, lower, upper))
        lower = upper
    return [*ranges, RangePart(order, lower)]
