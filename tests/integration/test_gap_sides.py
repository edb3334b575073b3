"""A test that Spark chooses the same keys as the rule of `gap_rules` that the model proves."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pyspark.sql import SparkSession

from incsnap.config.load import from_properties
from incsnap.errors import ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.planner.key_ranges import RangePart
from incsnap.tables import TableId, TableShape
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap_rules import needs_repair
from incsnap.verify.gap_sides import GapComparison, code_of, keys_to_repair
from incsnap.verify.proof import LastRecord, TopicKey
from incsnap.verify.record_reading import DELETION, ROW, TOMBSTONE, UNREADABLE, RecordForm
from incsnap.verify.table_side import VerifiedTable
from lab.free_port import free_ports
from tests.support.properties import NEEDED

_COLUMNS = "number int, key binary, partition int, offset long, is_new boolean, state byte, row binary"
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


def test_spark_chooses_the_keys_that_the_rule_chooses(spark: SparkSession) -> None:
    random_ = random.Random(5)
    lines: list[tuple[Any, ...]] = []
    expected: set[tuple[int, bytes, bool]] = set()
    for number, table in enumerate(tables()):
        seam = {(table.topic, 0): _SEAM, (table.topic, 1): _SEAM}
        for key in range(600):
            name = b"%d" % key
            row = random_.choice([None, b"x", b"y"])
            if row is not None:
                lines.append((number, name, -1, 0, False, ROW, row))
            last: dict[int, LastRecord] = {}
            offset = 0
            for _ in range(random_.randint(0, 4)):
                offset += random_.randint(1, 2)
                partition = int(random_.random() < 0.2)
                state = random_.choice([ROW, ROW, DELETION, TOMBSTONE, UNREADABLE])
                shown = random_.choice([b"x", b"y"]) if state == ROW else None
                lines.append((number, name, partition, offset, offset >= _SEAM, state, shown))
                is_gone = state == TOMBSTONE or (state == DELETION and not table.form.tombstones)
                seen = b"?" if state == UNREADABLE else shown
                last[partition] = LastRecord(seen, partition, offset, is_gone)
            topic_key: TopicKey = (table.topic, name)
            if needs_repair(topic_key, row, list(last.values()), seam):
                expected.add((number, name, row is None))
    random_.shuffle(lines)

    sides = spark.createDataFrame(lines, _COLUMNS).withColumn("code", code_of(tables()))
    chosen = {(line["number"], bytes(line["key"]), line["is_extra"]) for line in keys_to_repair(sides).collect()}

    assert chosen == expected
    assert 200 < len(chosen) < len({line[:2] for line in lines})


def test_a_task_that_does_not_reach_mysql_says_so_to_the_driver(spark: SparkSession) -> None:
    nobody = {"database.hostname": "127.0.0.1", "database.port": str(free_ports(1)[0])}
    settings = from_properties({**NEEDED, **nobody}).settings
    compared = GapComparison(spark, settings, tables(), GtidSet(), Allowance())

    with closing(compared), pytest.raises(ServerUnreachable, match="MySQL"):
        compared.run(ClientSettings("unused:1"), {}, [[RangePart(None, None, None)] for _ in tables()])
