"""The program `python -m tests.support.lake_comparison`: a lake's table that is compared by `incsnap.compare`.

It runs in its own process because it uses another Spark (`lab.fetched_lake`). `incsnap.merge_into` fills a lake's table
by a snapshot. Statements of the lake spoil it, then MySQL's table changes. The program prints the differences after
each step as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import click
from pyspark.sql import SparkSession

import incsnap
from incsnap.mysql.session import connect, query
from incsnap.mysql.watermarks import executed
from lab.fetched_lake import LAKES
from lab.lake_query import lake_session


@click.command()
@click.argument("config")
@click.argument("table")
@click.option("--format", "kind", type=click.Choice(list(LAKES)), required=True)
@click.option("--warehouse", required=True, help="Folder of the lake's tables.")
@click.option("--spoil", multiple=True, help="Statement on the lake's table, which {name} names.")
@click.option("--change", multiple=True, help="Statement on the server.")
def lake_comparison(
    config: str, table: str, kind: str, warehouse: str, spoil: tuple[str, ...], change: tuple[str, ...]
) -> None:
    """Fill a lake's table from TABLE (settings in CONFIG), and print how the two differ after each step."""
    name = LAKES[kind].table
    spark = lake_session(LAKES[kind], warehouse)
    settings = incsnap.Settings.from_file(config)
    with closing(connect(settings.mysql)) as connection:
        gtid_set = str(executed(connection))
        _fill(spark, config, table, name, kind, query(connection, f"SELECT COUNT(*) FROM {table}")[0][0])

        def tell(step: str) -> None:
            differing = incsnap.compare(spark, settings, table, spark.table(name), gtid_set).collect()
            differences = sorted([int(row["id"]), row["_kind"], row["_columns"] or []] for row in differing)
            sys.stdout.write(f"{json.dumps({'step': step, 'differences': differences})}\n")
            sys.stdout.flush()

        tell("filled")
        for statement in spoil:
            spark.sql(statement.format(name=name))
        tell("spoilt")
        for statement in change:
            query(connection, statement)
        tell("changed")
    # Spark's threads would outlive the program.
    os._exit(0)


def _fill(spark: SparkSession, config: str, table: str, name: str, kind: str, rows: int) -> None:
    """Merge a snapshot of `table` into the lake's table `name`, until the lake has all `rows` rows."""
    changes = spark.readStream.format("incsnap").option("config", config).option("table", table).load()
    checkpoint = str(Path(config).parent / "spark")
    running = incsnap.merge_into(changes, name, format=kind).option("checkpointLocation", checkpoint).start()
    try:
        while not spark.catalog.tableExists(name) or _rows(spark, name) < rows:
            # It raises the query's error.
            if running.awaitTermination(1):
                raise AssertionError("the query has ended")
    finally:
        running.stop()


def _rows(spark: SparkSession, name: str) -> int:
    """Return how many rows the lake's table has now. Iceberg's catalog keeps what another session has seen."""
    spark.sql(f"REFRESH TABLE {name}")
    return spark.table(name).count()


if __name__ == "__main__":
    lake_comparison()
