"""``python -m lab.lake_query``: a query that keeps a lake's table equal to a MySQL table, as a user would write it.

A program of its own, because its Spark is another one (``fetched_lake``). It ends with SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Event

import click
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import incsnap
from incsnap.spark import merge_into
from lab.fetched_lake import LAKES, Lake


@click.command()
@click.argument("config")
@click.argument("table")
@click.argument("name")
@click.option("--format", "kind", type=click.Choice(list(LAKES)), required=True)
@click.option("--checkpoint", required=True, help="Spark's checkpointLocation.")
@click.option("--warehouse", required=True, help="Where tables are that have no path.")
def lake_query(config: str, table: str, name: str, kind: str, checkpoint: str, warehouse: str) -> None:
    """Merge the changes of TABLE (settings in CONFIG) into the lake's table NAME, until SIGTERM."""
    end = Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    spark = _session(LAKES[kind], warehouse)
    reader = spark.readStream.format("incsnap").option("config", config).option("table", table)
    while not end.is_set():
        query = merge_into(reader.load(), name, format=kind).option("checkpointLocation", checkpoint).start()
        try:
            # Not in one call for ever: nothing else can be asked of Spark by this thread meanwhile.
            while not end.is_set():
                query.awaitTermination(1)
        except StreamingQueryException as error:
            if "Make the stream anew" not in str(error):
                raise
            # The columns of the table have changed: load() asks for them again.
        query.stop()
    spark.stop()


def _session(lake: Lake, warehouse: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Small batches on few cores: compiled quickly rather than well, and done in few tasks.
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **lake.session(warehouse),
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    incsnap.register(spark)
    return spark


if __name__ == "__main__":
    lake_query()
