"""The data source `format("incsnap")`: MySQL's tables and their changes as DataFrames.

This module has the options and the columns. `changes_reader` reads the stream (`spark.readStream`), `table_frames`
reads a table once (`spark.read`).
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import closing

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructField, StructType

from incsnap.config.frames import frame_settings, of_table, refuse_mode
from incsnap.config.settings import Settings
from incsnap.envelope.frame_format import frame_fields, hidden_keys, key_names
from incsnap.envelope.table_view import TableView, view_of
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import connect
from incsnap.spark import process_log
from incsnap.spark.changes_reader import ChangesReader
from incsnap.spark.spark_release import spark_schema
from incsnap.spark.table_frames import TableFrame, present_shape
from incsnap.tables import TableId
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.tasks.described_rows import DESCRIBED_ROWS
from incsnap.tasks.error_text import hint_in_message
from incsnap.tasks.frame_columns import RECORD

log = logging.getLogger(__name__)

FORMAT = "incsnap"
#: Key of a column's metadata: the column is part of the key that tells the table's rows apart.
KEY = "incsnap.key"
#: Key of the metadata of `_position`: names the key columns that the DataFrame does not show as they are. No column has
#: `KEY` then.
HIDDEN_KEY = "incsnap.key.hidden"


class ChangesFrame(DataSource):
    """The data source.

    Its options are those of `config.frames`: config, table, envelope, numPartitions, Debezium's names.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        #: What the server had executed before it was asked for the columns; None if it was not asked.
        self._executed: GtidSet | None = None
        #: The table in the server's letter case, which the option need not have.
        self._table: TableId | None = None

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Ask the server for the table's columns and return the DataFrame's schema.

        Spark calls this once, when the DataFrame is made. The table and the executed GTIDs then travel with this
        object.
        """
        with hint_in_message():
            loaded = frame_settings(self.options)
            process_log.set_up(logging.WARNING, loaded.settings.monitoring.log_format)
            for warning in loaded.warnings:
                log.warning("%s", warning)
            frame = loaded.settings.frame
            assert frame is not None
            marks = list(CHANGE_FIELDS)
            if frame.table is None:
                return spark_schema(pa.schema([*RECORD, *marks]))
            self._executed, view = _executed_and_view(loaded.settings)
            self._table = view.shape.id
            fields = frame_fields(view)
            if frame.described:
                return spark_schema(DESCRIBED_ROWS)
            if frame.envelope:
                row = pa.struct(fields)
                return spark_schema(pa.schema([*marks, pa.field("before", row), pa.field("after", row)]))
            _refuse_names_of_marks(view)
            return _with_keys(spark_schema(pa.schema([*marks, *fields])), view)

    def streamReader(self, schema: StructType) -> ChangesReader:  # noqa: N802 (Spark's name)
        """Return the reader of the stream. Raise ConfigError if the caller gave a schema."""
        with hint_in_message():
            settings = frame_settings(self.options).settings
            assert settings.frame is not None
            refuse_mode(settings.snapshot.mode)
            if settings.frame.table is not None and self._executed is None:
                raise ConfigError("A stream of changes takes its schema from the table", "Leave .schema(...) out.")
            is_described = settings.frame.described
            columns = "" if is_described else hashlib.sha256(schema.json().encode()).hexdigest()[:16]
            return ChangesReader(of_table(settings, self._table, columns), schema, self._executed or GtidSet())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the table as it is now."""
        with hint_in_message():
            settings = frame_settings(self.options).settings
            return TableFrame(settings, schema, self.options.get("numpartitions", "1"))


def register(spark: SparkSession) -> None:
    """Make `format("incsnap")` known to the session, as every Python data source needs.

    A stream has one row for each change: the table's columns, and the marks `_op`, `_ts`, `_gtid`, `_position` and
    `_snapshot` (docs/spark.md). Spark raises the errors of `load()`, for example a ConfigError for a missing table.

    >>> incsnap.register(spark)
    >>> reader = spark.readStream.format("incsnap").option("config", "shop.properties")
    >>> changes = reader.option("table", "shop.orders").load()
    >>> changes.isStreaming, changes.columns[0]
    (True, '_op')
    """
    spark.dataSource.register(ChangesFrame)


def _executed_and_view(settings: Settings) -> tuple[GtidSet, TableView]:
    """Return the GTIDs that the server has executed, and then the table's columns.

    The columns are as they are after these GTIDs, or later. Raise ConfigError if the table does not exist or is not
    visible to the user.
    """
    assert settings.frame is not None
    assert settings.frame.table is not None
    with closing(connect(settings.mysql)) as connection:
        executed = watermarks.executed(connection)
        shape = present_shape(connection, settings.frame.table, settings)
    if shape is None:
        raise ConfigError(
            f"The table {settings.frame.table} does not exist, or user {settings.mysql.user!r} may not see it",
            "Correct the option table, or GRANT SELECT on the table.",
        )
    return executed, view_of(shape, settings.columns)


def _refuse_names_of_marks(view: TableView) -> None:
    """Raise ConfigError if the table has a column with the name of a mark, such as `_op`."""
    twice = sorted(field.name for field in view.fields if field.name.lower() in CHANGE_FIELDS.names)
    if twice:
        raise ConfigError(
            f"Columns of {view.shape.id} have names that the DataFrame uses itself: {', '.join(twice)}",
            "Set the option envelope=true, which keeps them apart. Or leave the columns out by column.exclude.list.",
        )


def _with_keys(schema: StructType, view: TableView) -> StructType:
    """Return the schema with the metadata `KEY`, or `HIDDEN_KEY`."""
    keys, hidden = key_names(view), ", ".join(hidden_keys(view))

    def metadata(name: str) -> dict[str, object] | None:
        if hidden and name == "_position":
            return {HIDDEN_KEY: hidden}
        return {KEY: True} if name in keys else None

    return StructType(
        [StructField(field.name, field.dataType, field.nullable, metadata(field.name)) for field in schema.fields]
    )
