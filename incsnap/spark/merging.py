"""A table of a lake that is kept equal to MySQL's: each batch of changes is one MERGE.

Of each key the batch's last change counts, by ``_position``; a deletion deletes. A MERGE that is done again changes
nothing, and Spark does no other than the last batch again, so the table is right whatever was cut short.
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

_TRUNCATED = "t"
_NEWEST = "incsnap_newest"
#: Characters of what Spark says: Java's begins with long names of classes.
_MOST_OF_ERROR = 300


def merge_into(
    changes: DataFrame,
    table: str,
    *,
    format: str = "delta",  # noqa: A002 (Spark's name)
    keys: Sequence[str] | None = None,
) -> DataStreamWriter:
    """A writer of ``changes`` into ``table``, to be given its ``checkpointLocation`` and started::

        merge_into(changes, "lake.orders").option("checkpointLocation", "/checkpoints/orders").start()

    ``table``: a name of the session's catalog, or a path in the way of the format (``delta.`/lake/orders```). It is
    made with the columns of ``changes``, in ``format``, where it is missing, and gets those that it lacks; one that
    ``changes`` lack stays as it is. The format must know MERGE. ``keys``: what tells rows apart; without them the
    columns of MySQL's primary key. Raises ``ConfigError`` where ``changes`` are not those of one table, flat, or have
    no key.
    """
    columns = [name for name in changes.columns if name not in CHANGE_FIELDS.names]
    if not set(CHANGE_FIELDS.names) <= set(changes.columns) or {"before", "after"} == set(columns):
        raise ConfigError(
            "merge_into takes the changes of one table, with their columns flat",
            "Read them with the option table and without envelope, and keep the columns that begin with _.",
        )
    given = [keys] if isinstance(keys, str) else keys
    of_table = list(given or (field.name for field in changes.schema.fields if (field.metadata or {}).get(KEY)))
    known = {name.lower() for name in columns}
    if absent := [name for name in of_table if name.lower() not in known]:
        raise ConfigError(
            f"keys: these changes have no column {', '.join(absent)}",
            f"Name some of {', '.join(columns)}; or leave keys out for those of MySQL's primary key.",
        )
    hidden = [field.metadata[HIDDEN_KEY] for field in changes.schema.fields if HIDDEN_KEY in (field.metadata or {})]
    if hidden and not of_table:
        raise ConfigError(
            f"nothing tells the rows of these changes apart: of the table's key {hidden[0]}",
            "Change column.include.list, column.exclude.list, column.mask.*, column.truncate.* or converters so that"
            " the key's columns are told as they are; or give merge_into the argument keys=[...].",
        )
    if not of_table:
        raise ConfigError(
            "nothing tells the rows of these changes apart: the table has no primary key",
            "Give merge_into the argument keys=[...]: columns whose values are not null and of one row each.",
        )
    return changes.writeStream.foreachBatch(_merger(table, format, of_table, columns))


def _merger(table: str, kind: str, keys: list[str], columns: list[str]) -> Callable[[DataFrame, int], None]:
    is_fitting = False

    def merge(batch: DataFrame, number: int) -> None:
        nonlocal is_fitting
        spark = batch.sparkSession
        if not is_fitting:
            # Once a query: its changes keep the columns that they have.
            with hint_in_message():
                _make_fitting(spark, table, kind, batch.select(*(col(_quoted(name)) for name in columns)).schema)
            is_fitting = True
        batch.persist()
        try:
            if not batch.where(col("_op") == _TRUNCATED).isEmpty():
                # A batch ends with the TRUNCATE that it has: what it changed before is gone with the rest.
                spark.sql(f"DELETE FROM {table}")
                return
            newest = newest_changes(batch, keys)
            newest.createOrReplaceTempView(_NEWEST)
            spark.sql(merge_statement(table, keys, columns))
        finally:
            batch.unpersist()

    return merge


def _make_fitting(spark: SparkSession, table: str, kind: str, schema: StructType) -> None:
    """Makes the table, or adds the columns that it lacks."""
    # What the metadata of a column say is of the stream.
    plain = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    try:
        if not _exists(spark, table):
            spark.createDataFrame([], plain).writeTo(table).using(kind).create()
            return
    except (AnalysisException, Py4JJavaError) as error:
        # Java's own: classes that are not there, or were made for another Spark.
        why = error.java_exception if isinstance(error, Py4JJavaError) else error
        raise ConfigError(
            f"{table} cannot be looked for or made as a table of {kind}: {shorten(why, _MOST_OF_ERROR)}",
            f"The session needs a release of {kind} that is made for Spark {spark.version}, and its settings:"
            " docs/spark.md has those that there are.",
        ) from error
    has = {name.lower() for name in spark.table(table).columns}
    added = [field for field in plain.fields if field.name.lower() not in has]
    if not added:
        return
    if kind == "delta" and any(isinstance(field.dataType, TimestampNTZType) for field in added):
        # Delta Lake has the type at once in a table that is made with it, and else where this says so.
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    columns = ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in added)
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({columns})")


def _exists(spark: SparkSession, table: str) -> bool:
    try:
        return bool(spark.catalog.tableExists(table))
    except AnalysisException:
        # Delta Lake of a path where nothing is. Whatever else is wrong, the attempt to make the table says.
        return False


def newest_changes(batch: DataFrame, keys: list[str]) -> DataFrame:
    """One row for each key of ``keys``, as the batch leaves it: the last by ``_position``."""
    by_key = [col(_quoted(name)) for name in keys]
    last = max_by(struct(*(_quoted(name) for name in batch.columns)), col("_position"))
    # Under a name that no column of the table has, or a key of that name could not be told from it.
    return batch.groupBy(*by_key).agg(last.alias("_position")).select("_position.*")


def merge_statement(table: str, keys: list[str], columns: list[str]) -> str:
    """SQL of the MERGE of what ``newest_changes`` gives, which is a view by then; ``columns``: those of the table."""
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
