"""Tests of the statement that merges a batch of changes, in a Spark session without a format that supports MERGE.

`test_lakes.py` merges into real tables.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from incsnap.errors import ConfigError
from incsnap.spark.described_batches import described_batch
from incsnap.spark.frames import HIDDEN_KEY, KEY
from incsnap.spark.lake_columns import StreamColumns
from incsnap.spark.lake_state import PROPERTY
from incsnap.spark.lake_table import LakeTable
from incsnap.spark.merging import merge_into, merge_statement, newest_changes
from incsnap.tasks import blocks
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.tasks.described_rows import Alteration
from tests.support.waiting import wait_until

METADATA = "_op string, _ts timestamp, _gtid string, _position string, _snapshot boolean"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def batch(spark: SparkSession, *changes: tuple[str, str, Any, Any]) -> DataFrame:
    """A batch of changes: operation, position, and the values of a table of two columns."""
    rows = [(op, None, None, position, op == "r", a, b) for op, position, a, b in changes]
    return spark.createDataFrame(rows, f"{METADATA}, `the id` int, v string")


def test_each_key_is_as_its_last_change_by_position_left_it(spark: SparkSession) -> None:
    changes = batch(
        spark,
        ("u", "0.10.0", 1, "new"),
        ("c", "0.02.0", 1, "old"),
        ("d", "0.11.0", 2, "gone"),
        ("r", "0.00.0", 2, "read"),
        ("c", "0.12.1", 3, "moved"),
        ("c", "0.03.0", None, "no key"),
    )

    rows = newest_changes(changes, ["the id"]).select("_op", "the id", "v").collect()

    assert {tuple(row) for row in rows} == {
        ("u", 1, "new"),
        ("d", 2, "gone"),
        ("c", 3, "moved"),
        ("c", None, "no key"),
    }


def test_a_statement_that_leaves_the_columns_as_they_are_is_told_apart_from_changes(spark: SparkSession) -> None:
    schema = pa.schema([*CHANGE_FIELDS, ("id", pa.int32())])
    changes = pa.RecordBatch.from_arrays([pa.nulls(2, each.type) for each in schema], schema=schema)
    described, alteration = schema.serialize().to_pybytes(), Alteration("1", "CREATE INDEX i ON t (id)", {})
    rows = [(described, None, bytes(blocks.encode(changes))), (described, alteration.to_json(), None)]

    of_batch = described_batch(spark.createDataFrame(rows, "described binary, altered binary, changes binary"))

    assert (of_batch.alteration, [of_batch.behind]) == (alteration, list(of_batch.columns))
    assert of_batch.changes is not None
    assert of_batch.changes.count() == 2


def test_a_key_may_have_any_name(spark: SparkSession) -> None:
    names = ["newest", "t", "s", "a.b", "a`b", "incsnap_newest"]
    changes = batch(spark, ("u", "0.10.0", 1, "new"), ("c", "0.02.0", 1, "old"))

    for name in names:
        rows = newest_changes(changes.withColumnRenamed("the id", name), [name]).collect()
        assert [tuple(row)[-2:] for row in rows] == [(1, "new")], name


def test_the_statement_is_one_that_spark_understands(spark: SparkSession) -> None:
    statement = merge_statement("lake.shop.orders", ["the id"], ["the id", "v`v"])
    parser = spark._jsparkSession.sessionState().sqlParser()

    # The plan's text is not compared: an earlier test may have started this JVM with a limit for its length.
    plan = parser.parsePlan(statement)

    assert plan.nodeName() == "MergeIntoTable"
    assert plan.targetTable().child().multipartIdentifier().mkString(".") == "lake.shop.orders"


def test_the_keys_are_mysqls_primary_key_or_given(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    marks = [StructField(each.split()[0], StringType()) for each in METADATA.split(", ")]
    flat = StructType([*marks, StructField("id", IntegerType())])

    with pytest.raises(ConfigError, match="needs the flat changes of one table"):
        merge_into(stream, "t")
    with pytest.raises(ConfigError, match="the MySQL table has no primary key"):
        merge_into(of_schema(stream, flat), "t")
    with pytest.raises(ConfigError, match="the changes have no column order_id, which keys names"):
        merge_into(of_schema(stream, flat), "t", keys=["id", "order_id"])
    for keys in (["id"], "ID"):
        assert merge_into(of_schema(stream, flat), "t", keys=keys) is not None
    hidden = StructType([*marks, StructField("id", IntegerType(), metadata={HIDDEN_KEY: "id is left out"})])
    with pytest.raises(ConfigError, match="these columns of it: id is left out") as refused:
        merge_into(of_schema(stream, hidden), "t")
    assert "column.exclude.list" in refused.value.hint
    keyed = StructType([*marks, StructField("id", IntegerType(), metadata={KEY: True})])
    assert merge_into(of_schema(stream, keyed), "t") is not None


@pytest.mark.parametrize("table", ["orders", "delta.`/nowhere/orders`"])
def test_a_format_that_the_session_has_not_is_told_by_name(spark: SparkSession, tmp_path: Path, table: str) -> None:
    marks = [StructField(each.split()[0], StringType()) for each in METADATA.split(", ")]
    keyed = StructType([*marks, StructField("id", IntegerType(), metadata={KEY: True})])
    stream = of_schema(spark.readStream.format("rate").load(), keyed)
    query = merge_into(stream, table).option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: not query.isActive)

    why = str(query.exception())
    assert f"The delta table {table} cannot be read or created" in why
    assert f"made for Spark {spark.version}" in why


def of_schema(stream: DataFrame, schema: StructType) -> DataFrame:
    """A stream with these columns."""
    columns = [stream["value"].cast(each.dataType).alias(each.name, metadata=each.metadata) for each in schema.fields]
    return stream.select(*columns)


ID, CODE = StructField("id", IntegerType()), StructField("code", StringType())
ANEW, LATER = StructField("anew", IntegerType()), StructField("later", IntegerType())


@pytest.fixture
def keyed(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table that the query has followed by the key `id`, with one row. `later` came by a statement, without a value.

    Parquet cannot merge, but can add columns.
    """
    spark.sql(f"CREATE TABLE keyed (id INT, code STRING, later INT) USING parquet LOCATION '{tmp_path}/keyed'")
    spark.sql("INSERT INTO keyed VALUES (1, 'a', NULL)")
    LakeTable(spark, "keyed", "parquet").create(StreamColumns((ID, CODE, LATER), ("id",)))
    LakeTable(spark, "keyed", "parquet").follow(StreamColumns((ID, CODE, LATER), ("id",)))
    yield "keyed"
    spark.sql("DROP TABLE keyed")


@pytest.mark.parametrize(
    ("fields", "key", "origins", "null"),
    [
        ((ID, CODE, LATER, ANEW), ("anew",), {"anew": None}, "anew"),
        ((ID, CODE, LATER, ANEW), ("id", "anew"), None, "anew"),
        # An earlier statement has added the column.
        ((ID, CODE, LATER), ("later",), {}, "later"),
        ((ID, CODE, LATER), ("code",), {}, ""),
        ((ID, CODE, LATER, ANEW), ("id",), {"anew": None}, ""),
    ],
)
def test_a_key_whose_values_the_lake_lacks_is_refused_until_the_lake_is_empty(
    spark: SparkSession,
    keyed: str,
    fields: tuple[StructField, ...],
    key: tuple[str, ...],
    origins: dict[str, str | None] | None,
    null: str,
) -> None:
    altered, columns = Alteration("7", "ALTER TABLE t ...", origins), StreamColumns(fields, key)

    for _ in range(2 if null else 0):  # the query starts again
        with pytest.raises(ConfigError, match=rf"null in {null} there") as refused:
            LakeTable(spark, keyed, "parquet").alter(altered, columns)
        assert "behind ALTER TABLE t" in refused.value.message
        assert "execute-snapshot" in refused.value.hint
    if null:
        spark.createDataFrame([], spark.table(keyed).schema).write.insertInto(keyed, overwrite=True)
    LakeTable(spark, keyed, "parquet").alter(altered, columns)
    spark.sql(
        f"INSERT INTO {keyed} ({', '.join(each.name for each in fields)}) VALUES ({'NULL, ' * (len(fields) - 1)}NULL)"
    )
    # The key stays, so nothing is looked for any more.
    LakeTable(spark, keyed, "parquet").follow(StreamColumns((*fields, StructField("more", IntegerType())), key))


def test_columns_that_the_user_calls_the_key_are_refused_only_if_they_are_new(spark: SparkSession, keyed: str) -> None:
    # An earlier release has not recorded the key.
    spark.sql(f"ALTER TABLE {keyed} UNSET TBLPROPERTIES ('{PROPERTY}')")
    LakeTable(spark, keyed, "parquet", ("later",)).create(StreamColumns((ID, CODE, LATER)))
    LakeTable(spark, keyed, "parquet", ("later",)).follow(StreamColumns((ID, CODE, LATER)))

    with pytest.raises(ConfigError, match=r"by the key \(later, anew\): old rows have null in anew there"):
        LakeTable(spark, keyed, "parquet", ("later", "anew")).follow(StreamColumns((ID, CODE, LATER, ANEW)))
