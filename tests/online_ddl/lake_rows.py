"""The program `python -m tests.online_ddl.lake_rows`: the rows of a lake's table as Parquet files.

It runs in its own process because it uses another Spark (`lab.fetched_lake`). Spark reads the table, as delta-rs cannot
read one whose columns were renamed.
"""

from __future__ import annotations

import os
import time

import click
from pyspark.sql import SparkSession

from lab.fetched_lake import LAKES
from lab.lake_query import lake_session

_PATIENCE_SECONDS = 1_800.0


@click.command()
@click.argument("name")
@click.argument("folder")
@click.option("--format", "kind", type=click.Choice(list(LAKES)), required=True)
@click.option("--warehouse", required=True, help="Folder of the lake's tables.")
@click.option("--version", type=int, required=True, help="The version of the last change, which is waited for.")
def lake_rows(name: str, folder: str, kind: str, warehouse: str, version: int) -> None:
    """Write the rows of the lake's table NAME into FOLDER, in the order of `id`."""
    spark = lake_session(LAKES[kind], warehouse)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not has_version(spark, name, version):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} has no row of version {version} after {_PATIENCE_SECONDS:.0f} s")
        time.sleep(2)
    spark.table(name).orderBy("id").write.parquet(folder)
    # Spark's threads would outlive the program.
    os._exit(0)


def has_version(spark: SparkSession, name: str, version: int) -> bool:
    """Whether the newest state of the table has a row of that version."""
    spark.sql(f"REFRESH TABLE {name}")
    return not spark.table(name).where(f"version = {version}").isEmpty()


if __name__ == "__main__":
    lake_rows()
