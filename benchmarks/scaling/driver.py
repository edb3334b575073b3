"""The cost of sending the binlog through Spark's driver to executors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StructField, StructType

from benchmarks.scaling.timing import ROUNDS, median, took

#: Bytes that one Spark job carries, and one of its tasks.
_TRAVEL_BYTES, _TASK_BYTES = 64 << 20, 8 << 20


class _Bytes(InputPartition):
    def __init__(self, content: bytes) -> None:
        self.content = content


class _Carried(DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return [_Bytes(bytes([number]) * _TASK_BYTES) for number in range(_TRAVEL_BYTES // _TASK_BYTES)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Bytes)
        yield pa.record_batch({"size": [len(partition.content)]})


class _CarriedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "carried"

    def schema(self) -> StructType:
        return StructType([StructField("size", LongType())])

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Carried()


def of_travel() -> dict[str, float]:
    """Return elapsed seconds a byte for binlog that travels from the planner to executors inside Spark's tasks.

    The executors are processes of their own on this machine, as on a cluster.
    """
    with patch.dict(os.environ, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"):
        return _carried()


def _carried() -> dict[str, float]:
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parents[2]))
    spark = builder.config("spark.rpc.message.maxSize", "512").getOrCreate()
    try:
        spark.dataSource.register(_CarriedSource)

        def carry() -> None:
            assert spark.read.format("carried").load().groupBy().sum().collect()[0][0] == _TRAVEL_BYTES

        carry()
        carried = median([took(carry) for _ in range(ROUNDS)])
        empty = median([took(lambda: spark.range(2).groupBy().sum().collect()) for _ in range(ROUNDS)])
    finally:
        spark.stop()
    return {"travel.elapsed": max(0.0, carried.elapsed - empty.elapsed) / _TRAVEL_BYTES}
