"""The program `python -m lab.lake_query`: a query that keeps a lake's table equal to a MySQL table.

The query is written as a user writes it. It runs in its own process because it uses another Spark (`fetched_lake`).
SIGTERM ends it.
"""

from __future__ import annotations

import os
import signal
import sys
from threading import Event

import click
from pyspark.sql import SparkSession

import incsnap
from lab.fetched_lake import LAKES, Lake


@click.command()
@click.argument("config")
@click.argument("table")
@click.argument("name")
@click.option("--format", "kind", type=click.Choice(list(LAKES)), required=True)
@click.option("--checkpoint", required=True, help="Spark's checkpointLocation.")
@click.option("--warehouse", required=True, help="Folder of tables without a path of their own.")
def lake_query(config: str, table: str, name: str, kind: str, checkpoint: str, warehouse: str) -> None:
    """Merge the changes of TABLE (settings in CONFIG) into the lake's table NAME, until SIGTERM."""
    end = Event()
    signal.signal(signal.SIGTERM, lambda number, frame: end.set())
    spark = lake_session(LAKES[kind], warehouse)
    changes = spark.readStream.format("incsnap").option("config", config).option("table", table).load()
    query = incsnap.merge_into(changes, name, format=kind).option("checkpointLocation", checkpoint).start()
    # Not one endless call: this thread could ask Spark for nothing else meanwhile.
    while not end.is_set() and not query.awaitTermination(1):
        pass
    query.stop()
    spark.stop()


def lake_session(lake: Lake, warehouse: str) -> SparkSession:
    """Return a session that knows the lake, with its tables in the folder `warehouse`."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Small batches on few cores: quick compilation matters more than fast code, and few tasks are enough.
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
