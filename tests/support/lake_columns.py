"""The program `python -m tests.support.lake_columns`: a lake's table that follows statements on the MySQL table.

It runs in its own process because it uses another Spark (`lab.fetched_lake`). One query of `incsnap.merge_into` runs
through all steps. After each step the program waits until both tables have the same columns and rows. Then it prints
the lake's columns with their types as a line of JSON. An error of the query ends the program, and is printed too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from pymysql.cursors import DictCursor
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import incsnap
from incsnap.mysql.session import connect
from incsnap.spark.lake_state import PROPERTY
from lab.fetched_lake import LAKES
from lab.lake_query import lake_session

_PATIENCE_SECONDS = 400.0
_CUT = "the query is cut off here"


@click.command()
@click.argument("config")
@click.argument("table")
@click.option("--format", "kind", type=click.Choice(list(LAKES)), required=True)
@click.option("--warehouse", required=True, help="Folder of the lake's tables.")
@click.option("--step", "steps", multiple=True, help="JSON list of statements on the server, run one after the other.")
@click.option("--lag", is_flag=True, help="Stop the query while the statements of a step run, except for the first.")
@click.option("--plain", is_flag=True, help="Before each start write the state as JSON, as earlier releases did.")
@click.option("--cut", is_flag=True, help="End the query in step n, behind the nth statement that changes the lake.")
def lake_columns(
    config: str, table: str, kind: str, warehouse: str, steps: tuple[str, ...], lag: bool, plain: bool, cut: bool
) -> None:
    """Keep a lake's table equal to TABLE (settings in CONFIG) through all steps."""
    name = LAKES[kind].table
    spark = lake_session(LAKES[kind], warehouse)
    settings = incsnap.Settings.from_file(config)
    with closing(connect(settings.mysql)) as connection:
        query = started(spark, config, table, name, kind)
        for number, step in enumerate(steps):
            if lag and number:
                query.stop()
            if cut and number:
                cut_behind(number)
            with connection.cursor() as cursor:
                for statement in json.loads(step):
                    cursor.execute(statement)
            if plain and number:
                state = bytes.fromhex(spark.sql(f"SHOW TBLPROPERTIES {name} ('{PROPERTY}')").collect()[0]["value"])
                spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{PROPERTY}' = '{state.decode()}')")
            if lag and number:
                query = started(spark, config, table, name, kind)
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while time.monotonic() < deadline:
                if not query.isActive and _CUT in str(query.exception()):
                    tell({"cut": number})
                    query = started(spark, config, table, name, kind)
                if not query.isActive or not differs(spark, name, connection, table):
                    break
                time.sleep(0.5)
            if not query.isActive:
                tell({"error": str(query.exception())})
                os._exit(0)
            difference = differs(spark, name, connection, table)
            columns = [] if difference else [f"{each} {type_}" for each, type_ in spark.table(name).dtypes]
            tell({"difference": difference, "columns": columns})
        query.stop()
    # Spark's threads would outlive the program.
    os._exit(0)


def cut_behind(count: int) -> None:
    """Make the `count`-th statement that changes the lake raise an error after it has worked, once."""
    plain, left = SparkSession.sql, [count]

    def sql(self: SparkSession, statement: str, *more: Any, **others: Any) -> DataFrame:
        done = plain(self, statement, *more, **others)
        changes = statement.startswith(("ALTER", "MERGE", "DELETE"))
        left[0] -= changes
        if changes and not left[0]:
            SparkSession.sql = plain  # type: ignore[method-assign]
            raise RuntimeError(_CUT)
        return done

    SparkSession.sql = sql  # type: ignore[method-assign,assignment]


def started(spark: SparkSession, config: str, table: str, name: str, kind: str) -> StreamingQuery:
    """Start the query, as a user does."""
    changes = spark.readStream.format("incsnap").option("config", config).option("table", table).load()
    writer = incsnap.merge_into(changes, name, format=kind)
    return writer.option("checkpointLocation", str(Path(config).parent / "spark")).start()


def differs(spark: SparkSession, name: str, connection: Any, table: str) -> str:
    """Return how the two tables differ; "" if they are equal."""
    try:
        spark.sql(f"REFRESH TABLE {name}")
        there = _sorted(row.asDict() for row in spark.table(name).collect())
    except AnalysisException as error:
        return str(error)
    with connection.cursor(DictCursor) as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        here = _sorted(cursor.fetchall())
    return "" if here == there else f"MySQL: {here}, lake: {there}"


def _sorted(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return rows as texts, in an order. Spark 4.1 has a `bytearray` for bytes."""
    plain = [{key: bytes(each) if isinstance(each, bytearray) else each for key, each in row.items()} for row in rows]
    return sorted(repr(sorted(row.items())) for row in plain)


def tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    lake_columns()
