"""Errors of the tasks that compare tables with their topics behind a gap."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyspark.sql import SparkSession

from incsnap.config.load import from_properties
from incsnap.errors import ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.planner.key_ranges import RangePart
from incsnap.tables import TableId, TableShape
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap_sides import GapComparison
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable
from lab.free_port import free_ports
from tests.support.properties import NEEDED

_COLUMNS = "number int, key binary, partition int, offset long, is_new boolean, code long"
_SEAM = 6


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # An earlier test of this process may have named a program that is gone.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def tables() -> list[VerifiedTable]:
    """Return a table whose deletions have tombstones, and one whose deletions have none."""
    forms = [RecordForm(True, False, False, tombstones=tombstones) for tombstones in (True, False)]
    return [
        VerifiedTable(TableShape(TableId("shop", topic), ()), topic, 2, form)
        for topic, form in zip("ab", forms, strict=True)
    ]


def test_a_task_that_does_not_reach_mysql_says_so_to_the_driver(spark: SparkSession) -> None:
    nobody = {"database.hostname": "127.0.0.1", "database.port": str(free_ports(1)[0])}
    settings = from_properties({**NEEDED, **nobody}).settings
    compared = GapComparison(spark, settings, tables(), GtidSet(), Allowance(), "job")

    with closing(compared), pytest.raises(ServerUnreachable, match="MySQL"):
        compared.run(ClientSettings("unused:1"), {}, [[RangePart(None, None, None)] for _ in tables()], [1, 1])
