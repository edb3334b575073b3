"""A table of a lake that is kept equal to a MySQL table: each batch of changes is one MERGE.

Of each key only the batch's last change counts, by `_position`. A deletion deletes the row. A repeated MERGE changes
nothing, and Spark repeats the last batch only. So the table is right after every interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, max_by, struct
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from incsnap.errors import ConfigError, shorten
from incsnap.spark.error_text import hint_in_message
from incsnap.spark.frames import HIDDEN_KEY, KEY
from incsnap.tasks.frame_columns import CHANGE_FIELDS

_NEWEST = "incsnap_newest"
#: Most characters of an error of Spark. Java's errors begin with long names of classes.
_MOST_OF_ERROR = 300


def merge_into(
    changes: DataFrame,
    table: str,
    *,
    format: str = "delta",  # noqa: A002 (Spark's name)
    keys: Sequence[str] | None = None,
) -> DataStreamWriter:
    """Return a writer of `changes` into `table`. Give the writer its `checkpointLocation` and start it.

    `table`: a name in the session's catalog, or a path as the format writes it, for example "delta.`/lake/orders`". A
    missing table is created in `format` with the columns of `changes`. Columns that the table lacks are added; a column
    that `changes` lacks stays as it is. The format must support MERGE. `keys`: columns that tell rows apart; by default
    those of MySQL's primary key.

    Raise ConfigError if `changes` are not flat changes of one table, or have no key. A query fails with ConfigError if
    the table cannot be read or created.

    >>> incsnap.register(spark)
    >>> reader = spark.readStream.format("incsnap").option("config", "shop.properties")
    >>> changes = reader.option("table", "shop.orders").load()
    >>> writer = incsnap.merge_into(changes, "lake.orders").option("checkpointLocation", "checkpoints/orders")

    Then `query = writer.start()`.
    """
    columns = [name for name in changes.columns if name not in CHANGE_FIELDS.names]
    if not set(CHANGE_FIELDS.names) <= set(changes.columns) or {"before", "after"} == set(columns):
        raise ConfigError(
            f"merge_into needs the flat changes of one table, and these columns are none: {', '.join(changes.columns)}",
            "Set the option table and leave envelope out. Keep the columns that begin with _.",
        )
    given = [keys] if isinstance(keys, str) else keys
    of_table = list(given or (field.name for field in changes.schema.fields if (field.metadata or {}).get(KEY)))
    known = {name.lower() for name in columns}
    if absent := [name for name in of_table if name.lower() not in known]:
        raise ConfigError(
            f"merge_into into {table}: the changes have no column {', '.join(absent)}, which keys names",
            f"Name columns of {', '.join(columns)} in keys. Or leave keys out to use MySQL's primary key.",
        )
    hidden = [field.metadata[HIDDEN_KEY] for field in changes.schema.fields if HIDDEN_KEY in (field.metadata or {})]
    if hidden and not of_table:
        raise ConfigError(
            f"merge_into into {table} has no key: the settings leave out or change these columns of it: {hidden[0]}",
            "Change column.include.list, column.exclude.list, column.mask.*, column.truncate.* or converters so that"
            " the key's columns keep their values. Or give merge_into the argument keys=[...].",
        )
    if not of_table:
        raise ConfigError(
            f"merge_into into {table} has no key: the MySQL table has no primary key",
            "Give merge_into the argument keys=[...]: columns that are never null and together unique.",
        )
    return changes.writeStream.foreachBatch(_merger(table, format, of_table, columns))


def _merger(table: str, kind: str, keys: list[str], columns: list[str]) -> Callable[[DataFrame, int], None]:
    """Return the function that merges one batch."""
    is_fitting = False

    def merge(batch: DataFrame, number: int) -> None:
        nonlocal is_fitting
        spark = batch.sparkSession
        if not is_fitting:
            # Once per query, because a query's columns never change.
            with hint_in_message():
                _make_fitting(spark, table, kind, batch.select(*(col(_quoted(name)) for name in columns)).schema)
            is_fitting = True
        batch.persist()
        try:
            if not batch.where(col("_op") == "t").isEmpty():
                # A TRUNCATE is the last change of its batch, so it also deletes what the batch changed before.
                spark.sql(f"DELETE FROM {table}")
                return
            newest = newest_changes(batch, keys)
            newest.createOrReplaceTempView(_NEWEST)
            spark.sql(merge_statement(table, keys, columns))
        finally:
            batch.unpersist()

    return merge


def _make_fitting(spark: SparkSession, table: str, kind: str, schema: StructType) -> None:
    """Create the table, or add the columns that it lacks. Raise ConfigError if it cannot be created."""
    # The columns' metadata is for the stream only.
    plain = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    try:
        if not _exists(spark, table):
            spark.createDataFrame([], plain).writeTo(table).using(kind).create()
            return
    except (AnalysisException, Py4JJavaError) as error:
        # An error of Java: classes are missing, or were made for another Spark.
        why = error.java_exception if isinstance(error, Py4JJavaError) else error
        raise ConfigError(
            f"The {kind} table {table} cannot be read or created: {shorten(why, _MOST_OF_ERROR)}",
            f"Give the session a release of {kind} that is made for Spark {spark.version}, and its settings:"
            " docs/spark.md lists the releases.",
        ) from error
    has = {name.lower() for name in spark.table(table).columns}
    added = [field for field in plain.fields if field.name.lower() not in has]
    if not added:
        return
    if kind == "delta" and any(isinstance(field.dataType, TimestampNTZType) for field in added):
        # Delta Lake supports this type in a table that was created with it. Another table needs this property first.
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    columns = ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in added)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")


def _exists(spark: SparkSession, table: str) -> bool:
    try:
        return bool(spark.catalog.tableExists(table))
    except AnalysisException:
        # Delta Lake raises this for a path without a table. The attempt to create the table reports any other cause.
        return False


def newest_changes(batch: DataFrame, keys: list[str]) -> DataFrame:
    """Return one row for each key of the batch: the last change by `_position`."""
    by_key = [col(_quoted(name)) for name in keys]
    last = max_by(struct(*(_quoted(name) for name in batch.columns)), col("_position"))
    # The alias is a name that no column of the table has. A key with the alias as its name could not be told from it.
    return batch.groupBy(*by_key).agg(last.alias("_position")).select("_position.*")


def merge_statement(table: str, keys: list[str], columns: list[str]) -> str:
    """Return the SQL of the MERGE.

    Its source is a view of the result of `newest_changes`. `columns`: those of the table.
    """
    same = " AND ".join(f"t.{_quoted(name)} <=> s.{_quoted(name)}" for name in keys)
    sets = ", ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in columns)
    names, values = (", ".join(f"{prefix}{_quoted(name)}" for name in columns) for prefix in ("", "s."))
    return (
        f"MERGE INTO {table} AS t USING {_NEWEST} AS s ON {same}"
        " WHEN MATCHED AND s._op = 'd' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND s._op <> 'd' THEN INSERT ({names}) VALUES ({values})"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
