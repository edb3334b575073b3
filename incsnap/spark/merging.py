"""A table of a lake that is kept equal to a MySQL table: each batch of changes is one MERGE.

Of each key only the batch's last change counts, by `_position`. A deletion deletes the row. A repeated MERGE changes
nothing, and Spark repeats the last batch only. So the table is right after every interruption.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, max_by, struct
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructField

from incsnap.errors import ConfigError
from incsnap.spark.described_batches import DescribedBatch, described_batch, described_stream
from incsnap.spark.frames import FORMAT, HIDDEN_KEY, KEY
from incsnap.spark.lake_columns import StreamColumns
from incsnap.spark.lake_table import LakeTable
from incsnap.tables import quote
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.tasks.error_text import hint_in_message

_NEWEST = "incsnap_newest"


def merge_into(
    changes: DataFrame,
    table: str,
    *,
    format: str = "delta",  # noqa: A002 (Spark's name)
    keys: Sequence[str] | None = None,
) -> DataStreamWriter:
    """Return a writer of `changes` into `table`. Give the writer its `checkpointLocation` and start it.

    `table`: a name in the session's catalog, or a path as the format writes it, for example "delta.`/lake/orders`". A
    missing table is created in `format` with the columns of `changes`. The format must support MERGE. `keys`: columns
    that tell rows apart; by default those of MySQL's primary key.

    If `changes` are as `load()` returned them, the table follows statements that add, drop, rename or widen columns in
    MySQL. If they were changed since, such a statement ends the query. Columns that the table lacks are added at the
    next start, and a column that `changes` lacks stays as it is.

    Raise ConfigError if `changes` are not flat changes of one table, or have no key. A query fails with ConfigError if
    the table cannot be read or created, or if the format cannot follow a statement.

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
    described = described_stream(changes, FORMAT)
    plain = tuple(StructField(field.name, field.dataType) for field in changes.schema.fields if field.name in columns)
    at_first = StreamColumns(plain, tuple(of_table))
    merger = _Merger(table, format, at_first, tuple(given or ()), is_described=described is not None)
    return (changes if described is None else described).writeStream.foreachBatch(merger.merge)


class _Merger:
    """The function that merges batches, and its state: the lake's table.

    `columns`: those of the DataFrame when it was made. `keys`: columns that the user calls the key; empty: those of
    MySQL's key, which a statement may change. `is_described`: whether batches have described rows.
    """

    def __init__(
        self, table: str, kind: str, columns: StreamColumns, keys: tuple[str, ...], *, is_described: bool
    ) -> None:
        self._table, self._kind, self._columns, self._keys = table, kind, columns, keys
        self._is_described = is_described
        self._lake: LakeTable | None = None

    def merge(self, batch: DataFrame, number: int) -> None:
        """Merge one batch, and follow the statement that it ends with."""
        with hint_in_message():
            batch.persist()
            try:
                if self._is_described:
                    self._merge_described(described_batch(batch), batch.sparkSession)
                else:
                    self._merge_flat(batch)
            finally:
                batch.unpersist()

    def _opened(self, spark: SparkSession, columns: StreamColumns) -> LakeTable:
        """Return the lake's table. The first call creates a missing one with `columns`."""
        if self._lake is None:
            lake = LakeTable(spark, self._table, self._kind, self._keys)
            lake.create(columns)
            self._lake = lake
        return self._lake

    def _merge_flat(self, batch: DataFrame) -> None:
        lake = self._opened(batch.sparkSession, self._columns)
        # The caller may have left out columns, which the table keeps.
        lake.follow(self._columns, by_statements=False)
        # A TRUNCATE is the last change of its batch, so it also deletes what the batch changed before.
        if not batch.where(col("_op") == "t").isEmpty():
            lake.delete_all()
        else:
            self._merge(batch, self._columns.keys)

    def _merge_described(self, batch: DescribedBatch, spark: SparkSession) -> None:
        lake = self._opened(spark, batch.columns[0] if batch.columns else self._columns)
        if batch.alteration is None or not lake.is_behind(batch.alteration):
            for columns in batch.columns:
                lake.follow(columns)
            if batch.is_truncated:
                lake.delete_all()
            elif batch.changes is not None:
                # A MERGE reads its source more than once.
                changes = batch.changes.persist()
                try:
                    self._merge(changes, batch.columns[-1].keys)
                finally:
                    changes.unpersist()
        if batch.alteration is not None:
            lake.alter(batch.alteration, batch.behind)

    def _merge(self, changes: DataFrame, keys: tuple[str, ...]) -> None:
        """Merge changes of rows."""
        keys = self._keys or keys
        columns = [name for name in changes.columns if name not in CHANGE_FIELDS.names]
        if not keys or not {key.lower() for key in keys} <= {name.lower() for name in columns}:
            raise ConfigError(
                f"merge_into into {self._table}: the table's rows have no key {', '.join(keys)} any more",
                "Begin the query again, with the argument keys=[...]: columns that are never null and together unique.",
            )
        newest_changes(changes, list(keys)).createOrReplaceTempView(_NEWEST)
        changes.sparkSession.sql(merge_statement(self._table, list(keys), columns))


def newest_changes(batch: DataFrame, keys: list[str]) -> DataFrame:
    """Return one row for each key of the batch: the last change by `_position`."""
    by_key = [col(quote(name)) for name in keys]
    last = max_by(struct(*(quote(name) for name in batch.columns)), col("_position"))
    # The alias is a name that no column of the table has. A key with the alias as its name could not be told from it.
    return batch.groupBy(*by_key).agg(last.alias("_position")).select("_position.*")


def merge_statement(table: str, keys: list[str], columns: list[str]) -> str:
    """Return the SQL of the MERGE.

    Its source is a view of the result of `newest_changes`. `columns`: those of the table.
    """
    same = " AND ".join(f"t.{quote(name)} <=> s.{quote(name)}" for name in keys)
    sets = ", ".join(f"t.{quote(name)} = s.{quote(name)}" for name in columns)
    names, values = (", ".join(f"{prefix}{quote(name)}" for name in columns) for prefix in ("", "s."))
    return (
        f"MERGE INTO {table} AS t USING {_NEWEST} AS s ON {same}"
        " WHEN MATCHED AND s._op = 'd' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {sets}"
        f" WHEN NOT MATCHED AND s._op <> 'd' THEN INSERT ({names}) VALUES ({values})"
    )
