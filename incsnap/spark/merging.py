"""A table of a lake that is kept equal to MySQL's: each batch of changes is one MERGE.

Of each key the batch's last change counts, by ``_position``; a deletion deletes. A MERGE that is done again changes
nothing, and Spark does no other than the last batch again, so the table is right whatever was cut short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, max_by, struct
from pyspark.sql.streaming.readwriter import DataStreamWriter

from incsnap.errors import ConfigError
from incsnap.spark.frames import KEY
from incsnap.tasks.frame_columns import TOLD

_TRUNCATED = "t"
_NEWEST = "incsnap_newest"


def merge_into(
    changes: DataFrame,
    table: str,
    *,
    format: str = "delta",  # noqa: A002 (Spark's name)
    keys: Sequence[str] | None = None,
) -> DataStreamWriter:
    """A writer of ``changes`` into ``table``, to be given its ``checkpointLocation`` and started::

        merge_into(changes, "lake.orders").option("checkpointLocation", "/checkpoints/orders").start()

    ``table`` is made with the columns of ``changes``, in ``format``, where it is missing; the format must know MERGE.
    ``keys``: what tells rows apart; without them the columns of MySQL's primary key. Raises ``ConfigError`` where
    ``changes`` are not those of one table, flat, or have no key.
    """
    columns = [name for name in changes.columns if name not in TOLD.names]
    if not set(TOLD.names) <= set(changes.columns) or {"before", "after"} == set(columns):
        raise ConfigError(
            "merge_into takes the changes of one table, with their columns flat",
            "Read them with the option table and without envelope, and keep the columns that begin with _.",
        )
    of_table = list(keys or (field.name for field in changes.schema.fields if (field.metadata or {}).get(KEY)))
    if not of_table:
        raise ConfigError(
            "nothing tells the rows of these changes apart: the table has no primary key",
            "Give merge_into the argument keys=[...]: columns whose values are not null and of one row each.",
        )
    return changes.writeStream.foreachBatch(_merger(table, format, of_table, columns))


def _merger(table: str, kind: str, keys: list[str], columns: list[str]) -> Callable[[DataFrame, int], None]:
    def merge(batch: DataFrame, number: int) -> None:
        spark = batch.sparkSession
        if not spark.catalog.tableExists(table):
            # MySQL's columns alone, and without their metadata, which is the stream's.
            empty = spark.createDataFrame([], batch.select(*columns).schema)
            empty.writeTo(table).using(kind).create()
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


def newest_changes(batch: DataFrame, keys: list[str]) -> DataFrame:
    """One row for each key of ``keys``, as the batch leaves it: the last by ``_position``."""
    by_key = [col(_quoted(name)) for name in keys]
    last = max_by(struct(*(_quoted(name) for name in batch.columns)), col("_position"))
    return batch.groupBy(*by_key).agg(last.alias("newest")).select("newest.*")


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
