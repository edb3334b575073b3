"""The reader behind `spark.read.format("incsnap")`: a table's rows as a DataFrame, with the columns of its changes.

One partition is one SELECT, so its rows are from one moment. Several partitions are ranges of the key, each read by a
connection of its own. MySQL cannot share a snapshot between connections, so each range is from a moment of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
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
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.chunk_reader import stream_rows
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.session import connect, query
from incsnap.planner.key_ranges import HINT, RangePart, range_tail, ranges_of
from incsnap.spark.spark_release import arrow_schema
from incsnap.tables import TableId, TableShape
from incsnap.tasks.change_marks import CHANGE_FIELDS, first_position_of
from incsnap.tasks.error_text import hint_in_message
from incsnap.tasks.frame_columns import SchemaChanged

#: Seconds that the server waits for a task that takes no rows because Spark keeps it waiting.
_PATIENCE_SECONDS = 3600


class TableFrame(DataSourceReader):
    """The reader of a table. `partitions`: the option numPartitions, as text."""

    def __init__(self, settings: Settings, schema: StructType, partitions: str) -> None:
        """Raise ConfigError if no table is given, with the option envelope, or if `partitions` is no whole number from
        1 up."""
        assert settings.frame is not None
        if settings.frame.table is None or settings.frame.envelope:
            raise ConfigError(
                "spark.read needs the option table, and has no option envelope",
                "Set the option table=database.table, and leave envelope out.",
            )
        if not partitions.isdecimal() or int(partitions) < 1:
            raise ConfigError(f"numPartitions: {partitions!r} is not a whole number from 1 up", HINT)
        self._table, self._settings, self._count = settings.frame.table, settings, int(partitions)
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges of the key, one per task. Raise ConfigError if the table cannot be divided."""
        if self._count == 1:
            return [RangePart()]
        with hint_in_message(), closing(connect(self._settings.mysql)) as connection:
            return ranges_of(connection, self._settings, self._table, self._count)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range.

        Raise SchemaChanged if the table's columns have changed. Spark calls this in a task.
        """
        assert isinstance(partition, RangePart)
        timed = partial(connect, read_timeout=float(_PATIENCE_SECONDS))
        with hint_in_message(), closing(timed(self._settings.mysql)) as connection:
            query(connection, f"SET SESSION net_write_timeout = {_PATIENCE_SECONDS}")
            yield from self._rows(connection, partition)

    def _rows(self, connection: Connection[Any], part: RangePart) -> Iterator[pa.RecordBatch]:
        shape = present_shape(connection, self._table, self._settings)
        view = view_of(shape or TableShape(self._table, ()), self._settings.columns)
        if shape is None or not pa.schema([*CHANGE_FIELDS, *frame_fields(view)]).equals(self._schema):
            raise SchemaChanged(
                f"The columns of {self._table} have changed since the DataFrame was made",
                "Call load() again to make a DataFrame with the new columns.",
            )
        now_us = time.time_ns() // 1000
        for columns in stream_rows(connection, shape, range_tail(shape, part), view.needed):
            if n := rows_of(columns):
                arrays = [*_marks(now_us, n), *(field.frame(columns, self._settings.modes) for field in view.fields)]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def present_shape(connection: Connection[Any], table: TableId, settings: Settings) -> TableShape | None:
    """Return the table's columns as the server has them now, with the types that DataFrames need; None if there is no
    such table.
    """
    shape = shape_of(connection, table)
    if shape is not None and settings.columns.needs_definitions:
        return shape_with_defaults(connection, shape, definitions=True)
    return shape


def _marks(now_us: int, n: int) -> list[Any]:
    """Return the marks of `n` rows: like rows that a stream reads, at a position before its first batch."""
    values = ["r", now_us, None, first_position_of(0), True]
    return [pa.repeat(pa.scalar(value, field.type), n) for value, field in zip(values, CHANGE_FIELDS, strict=True)]
