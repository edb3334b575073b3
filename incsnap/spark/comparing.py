"""The comparison of a MySQL table with any DataFrame that has its columns: `incsnap.compare`.

The proof is that of `incsnap verify` (`incsnap.verify.proof`), with the DataFrame in the topic's place:

1. The table is read. Each SELECT sees all of the GTID set, because the server has executed the set before.
2. The end of the binlog is noted: the high watermark. All that the SELECTs saw lies before it.
3. The binlog is read from the set to the high watermark. A row that has no event there is the same in all of this time.
   A row that has events had the versions that the events show.

So for each key all versions since the set are known. The DataFrame is right about the key if it has one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pymysql.connections import Connection
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's name)
from pyspark.sql.types import DataType, LongType, StructField, StructType

from incsnap.config.frames import settings_of_table
from incsnap.config.settings import Settings
from incsnap.envelope.frame_format import frame_fields, hidden_keys, key_names
from incsnap.envelope.table_view import TableView, view_of
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import connect, query
from incsnap.planner.key_ranges import RangePart, ranges_of
from incsnap.spark.common_types import common_type
from incsnap.spark.spark_release import spark_schema
from incsnap.spark.table_frames import TableFrame, present_shape
from incsnap.tables import TableId
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.verify.changed_rows import row_versions

#: Rows of one SELECT.
_RANGE_ROWS = 200_000


def compare(spark: SparkSession, settings: Settings, table: str, frame: DataFrame, gtid_set: str) -> DataFrame:
    """Compare the MySQL table with `frame`, and return a DataFrame with a row for each key that differs.

    `table`: `db.table`, and a name with dots in it in back-ticks. `frame` has the table's columns, with the types that
    incsnap's DataFrames have (docs/spark.md); other columns are ignored. `gtid_set`: what `frame` contains at least. A
    row of `frame` is right if the table had this row at `gtid_set` or at any time since.

    The result has the columns of the key, `_kind` and `_columns`. `_kind` is `missing`, `wrong`, `extra`, or
    `duplicate` for several rows with one key. `_columns` names the columns that differ from the row at `gtid_set`, if
    the kind is `wrong`.

    Raise ConfigError if the two cannot be compared, TableChanged if a statement has changed the table since, and
    ServerUnreachable.

    >>> settings = incsnap.Settings.from_file("shop.properties")
    >>> differences = incsnap.compare(spark, settings, "shop.orders", orders, gtid_set)
    >>> differences.columns, differences.count()
    (['id', '_kind', '_columns'], 0)
    """
    if frame.isStreaming:
        raise ConfigError("compare needs a DataFrame that is no stream", "Read the table that the stream writes.")
    since = GtidSet.parse(gtid_set)
    named = _table_of(table)
    plain, images = (settings_of_table(settings, named, envelope=envelope) for envelope in (False, True))
    with closing(connect(settings.mysql)) as connection:
        _refuse_position(connection, since)
        shape = present_shape(connection, named, plain)
        if shape is None:
            raise ConfigError(f"The table {table} does not exist", "Name it as database.table, and GRANT SELECT on it.")
        view = view_of(shape, plain.columns)
        columns = _columns_of(view, frame)
        parts = _ranges(connection, plain, shape.id)
        rows = _rows_now(spark, plain, view, parts).localCheckpoint()
        high = watermarks.high_watermark(connection)
        versions = row_versions(connection, images, shape, since, high)
    return _differences(spark, columns, rows, versions, frame).localCheckpoint()


@dataclass(frozen=True, slots=True)
class _Compared:
    """A column of both sides."""

    name: str  #: in MySQL's table
    other: str  #: in the DataFrame, which may have another letter case
    own: DataType  #: type of the table's values
    type: DataType  #: type in which the values are compared
    is_key: bool  #: whether the column belongs to the key


def _table_of(name: str) -> TableId:
    """Return the table that the option `table` of a DataFrame would mean. Raise ConfigError for another text."""
    try:
        return TableId.parse(name)
    except ValueError:
        raise ConfigError(
            f"compare: {name!r} is not of the form database.table",
            "Name the table as database.table. Write a name with dots in it in back-ticks.",
        ) from None


def _refuse_position(connection: Connection[Any], since: GtidSet) -> None:
    """Raise ConfigError if the server cannot tell what has changed since."""
    if unknown := since - watermarks.executed(connection):
        raise ConfigError(
            f"gtid_set has transactions that the server has not executed: {unknown}",
            "Take gtid_set from this server (SELECT @@gtid_executed), or wait until this replica has caught up.",
        )
    if gone := watermarks.purged(connection) - since:
        raise ConfigError(
            f"the server has purged binlog that is not in gtid_set: {gone}",
            "Compare a newer DataFrame with its newer gtid_set, or raise binlog_expire_logs_seconds.",
        )


def _columns_of(view: TableView, frame: DataFrame) -> list[_Compared]:
    """Return the columns that are compared. Raise ConfigError if there is no key, or a column is missing."""
    table, keys = view.shape.id, key_names(view)
    if not keys:
        hidden = ", ".join(hidden_keys(view))
        reason = f"the settings leave out or change these columns of its key: {hidden}" if hidden else "no primary key"
        raise ConfigError(f"{table} cannot be compared: {reason}", "Compare a table whose key is in the DataFrame.")
    own = spark_schema(pa.schema(frame_fields(view))).fields
    theirs = {field.name.lower(): field for field in frame.schema.fields}
    if absent := [field.name for field in own if field.name.lower() not in theirs]:
        raise ConfigError(
            f"The DataFrame lacks columns of {table}: {', '.join(absent)}",
            "Give them to the DataFrame, or leave them out of the table with column.exclude.list.",
        )
    compared, unlike = [], []
    for field in own:
        other = theirs[field.name.lower()]
        shared = common_type(field.dataType, other.dataType)
        if shared is None:
            unlike.append(f"{field.name} is {field.dataType.simpleString()} and not {other.dataType.simpleString()}")
        else:
            compared.append(_Compared(field.name, other.name, field.dataType, shared, field.name in keys))
    if unlike:
        raise ConfigError(
            f"Columns of the DataFrame have other types than those of {table}: {'; '.join(unlike)}",
            "Cast them in the DataFrame.",
        )
    return compared


def _ranges(connection: Connection[Any], settings: Settings, table: TableId) -> Sequence[RangePart]:
    ((rows,),) = query(connection, f"SELECT COUNT(*) FROM {table.sql}")
    count = int(rows) // _RANGE_ROWS
    try:
        return ranges_of(connection, settings, table, count) if count > 1 else [RangePart()]
    except ConfigError:
        # The table has no order by which it could be divided.
        return [RangePart()]


def _rows_now(spark: SparkSession, settings: Settings, view: TableView, parts: Sequence[RangePart]) -> DataFrame:
    """Return the table's rows, read by one SELECT for each of `parts`."""
    schema = spark_schema(pa.schema([*CHANGE_FIELDS, *frame_fields(view)]))
    reader = TableFrame(settings, schema, "1")

    def read(numbers: Iterable[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from reader.read(parts[number])

    rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(read, schema)
    return rows.drop(*CHANGE_FIELDS.names)


def _differences(
    spark: SparkSession, columns: Sequence[_Compared], rows: DataFrame, versions: pa.Table, frame: DataFrame
) -> DataFrame:
    """Return the keys of which the DataFrame has none of the versions."""
    keys = [f"k{number}" for number, column in enumerate(columns) if column.is_key]
    own = StructType([StructField(f"c{number}", column.own) for number, column in enumerate(columns)])
    now = rows.toDF(*own.names).select(F.struct(*own.names).alias("row"))
    table = _keyed(columns, now, "row").select(*keys, F.array(_row(columns, "row")).alias("versions"))
    if versions.num_rows:
        table = _with_versions(spark, columns, table, own, versions)
    fields = (F.col(_quoted(each.other)).alias(f"c{number}") for number, each in enumerate(columns))
    theirs = frame.select(F.struct(*fields).alias("row"))
    other = (
        _keyed(columns, theirs, "row")
        .groupBy(*keys)
        .agg(F.count(F.lit(1)).alias("count"), F.first(_row(columns, "row")).alias("other"))
    )
    joined = _joined(table, other, keys, "full_outer")
    return _named(columns, keys, joined)


def _with_versions(
    spark: SparkSession, columns: Sequence[_Compared], table: DataFrame, own: StructType, versions: pa.Table
) -> DataFrame:
    """Return `table` with the versions of keys that changed."""
    keys = [f"k{number}" for number, column in enumerate(columns) if column.is_key]
    arrays = []
    for name in ("key", "row"):
        struct = versions.column(name).combine_chunks()
        arrays.append(pa.StructArray.from_arrays(struct.flatten(), names=own.names, mask=struct.is_null()))
    given = pa.table([versions.column("number"), *arrays], names=["number", "key", "row"])
    schema = StructType([StructField("number", LongType()), StructField("key", own), StructField("row", own)])
    each = _keyed(columns, spark.createDataFrame(given, schema), "key", "number", "row")
    row = F.when(F.col("row").isNotNull(), _row(columns, "row"))
    in_order = F.sort_array(F.collect_list(F.struct("number", row.alias("row"))))
    changed = each.groupBy(*keys).agg(F.transform(in_order, lambda version: version.getField("row")).alias("versions"))
    return _joined(table, changed.select(*keys), keys, "left_anti").unionByName(changed)


def _keyed(columns: Sequence[_Compared], frame: DataFrame, struct: str, *more: str) -> DataFrame:
    """Return `frame` with the key's columns of `struct`, and with `struct` itself."""
    keys = [
        F.col(struct).getField(f"c{number}").cast(column.type).alias(f"k{number}")
        for number, column in enumerate(columns)
        if column.is_key
    ]
    return frame.select(*keys, struct, *more)


def _row(columns: Sequence[_Compared], struct: str) -> Column:
    """Return the row with the types in which rows are compared."""
    fields = (
        F.col(struct).getField(f"c{number}").cast(each.type).alias(f"c{number}") for number, each in enumerate(columns)
    )
    return F.struct(*fields)


def _joined(left: DataFrame, right: DataFrame, keys: Sequence[str], how: str) -> DataFrame:
    """Join by keys that may be null. The keys of `right` get the prefix `other_`."""
    renamed = right.withColumnsRenamed({key: f"other_{key}" for key in keys})
    same = [left[key].eqNullSafe(renamed[f"other_{key}"]) for key in keys]
    return left.join(renamed, same, how)


def _named(columns: Sequence[_Compared], keys: Sequence[str], joined: DataFrame) -> DataFrame:
    """Return the differences, with the names that the caller knows."""
    other, first = F.col("other"), F.get("versions", F.lit(0))
    absent = F.col("versions").isNull()
    is_right = F.exists("versions", lambda version: version.eqNullSafe(other))
    kind = (
        F.when(F.col("count") > 1, "duplicate")
        .when(F.coalesce(is_right, F.lit(False)), None)
        .when(other.isNull(), "missing")
        .when(absent | first.isNull(), "extra")
        .otherwise("wrong")
    )
    differing = [
        F.when(~first.getField(f"c{number}").eqNullSafe(other.getField(f"c{number}")), F.lit(column.name))
        for number, column in enumerate(columns)
    ]
    names = F.when(F.col("_kind") == "wrong", F.array_compact(F.array(*differing)))
    named = joined.withColumn("_kind", kind).where(F.col("_kind").isNotNull())
    own = [column.name for column in columns if column.is_key]
    shown = (
        F.when(absent, F.col(f"other_{key}")).otherwise(F.col(key)).alias(name)
        for key, name in zip(keys, own, strict=True)
    )
    return named.select(*shown, "_kind", names.alias("_columns"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
