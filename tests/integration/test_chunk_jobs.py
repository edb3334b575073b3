"""Chunks of several tables that one job reads: what is done once for all of them, and what is each one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.config.topics import topic_of
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.session import connect, query
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.snapshot.offset import PlannedRead, TopicLayout
from incsnap.snapshot.window import Chunk, ChunkResult, Window
from incsnap.tables import TableId
from incsnap.tasks import chunk
from incsnap.tasks.chunk import read_chunks
from incsnap.tasks.partitions import ChunkOrder
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers
NAMES = ("a", "b", "c")


@pytest.fixture
def settings(mysql_address: MySqlAddress, database: str) -> Settings:
    return settings_of(mysql_address, "unused:1", "p", database)


@pytest.fixture
def connection(settings: Settings, database: str) -> Iterator[Any]:
    with closing(connect(settings.mysql)) as opened:
        for name in NAMES:
            query(opened, f"CREATE TABLE {database}.{name} (k INT PRIMARY KEY)")
            query(opened, f"INSERT INTO {database}.{name} VALUES (1), (2)")
        yield opened


def orders(settings: Settings, database: str, low_watermark: GtidSet) -> list[ChunkOrder]:
    chunk_orders = []
    for number, name in enumerate(NAMES):
        table = TableId(database, name)
        window = Window(f"1-{number}", number, table, "s", None, ("2",), 1_000, 1)
        layout = TopicLayout(1, {topic_of(settings, table): 1})
        read = PlannedRead(window, Chunk(table, ("k",), None, ("2",)), low_watermark)
        chunk_orders.append(ChunkOrder(layout, StreamPosition(low_watermark, "", 0), read))
    return chunk_orders


def results(asked: list[ChunkOrder], settings: Settings, root: Path) -> dict[str, ChunkResult]:
    """Return the result of each table's chunk. A job whose time is over leaves chunks to the next one."""
    buffers = WindowBuffers(str(root))
    left = {order.read.window.id: order for order in asked}
    while left:
        for id_ in read_chunks([*left.values()], settings, buffers):
            del left[id_]
    read = {order.read.window.table.table: buffers.read_manifest(order.read.window.id) for order in asked}
    return {name: result for name, result in read.items() if result is not None}


def test_all_chunks_of_a_job_have_a_high_watermark_behind_their_rows(
    connection: Any, settings: Settings, database: str, tmp_path: Path
) -> None:
    before = high_watermark(connection)
    read = results(orders(settings, database, executed(connection)), settings, tmp_path)

    assert [(result.rows, result.error) for result in read.values()] == [(2, "")] * 3
    assert all((result.high_file, result.high_pos) >= before for result in read.values())


def test_a_locked_table_does_not_block_other_tables_of_its_job(
    connection: Any, settings: Settings, database: str, tmp_path: Path
) -> None:
    asked = orders(settings, database, executed(connection))
    with closing(connect(settings.mysql)) as other:
        query(other, f"LOCK TABLES {database}.a WRITE")
        read = results(asked, settings, tmp_path)

    assert read["a"].error.startswith("stalled:")
    assert [read[name].rows for name in ("b", "c")] == [2, 2]


def test_a_job_out_of_time_begins_no_chunk_and_reports_delayed_chunks(
    connection: Any, settings: Settings, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk, "JOB_SECONDS", 0.0)
    buffers = WindowBuffers(str(tmp_path))
    asked = orders(settings, database, executed(connection))
    assert read_chunks(asked, settings, buffers) == ["1-0"]

    missing = GtidSet.parse(f"{uuid4()}:1")
    monkeypatch.setattr(chunk, "EXECUTED_SECONDS", 0.1)
    assert read_chunks(orders(settings, database, missing), settings, buffers) == ["1-0", "1-1", "1-2"]


def test_a_table_that_is_gone_fails_alone(connection: Any, settings: Settings, database: str, tmp_path: Path) -> None:
    asked = orders(settings, database, executed(connection))
    query(connection, f"DROP TABLE {database}.b")
    read = results(asked, settings, tmp_path)

    assert read["b"].error.startswith("shape:")
    assert [read[name].rows for name in ("a", "c")] == [2, 2]


def test_a_low_watermark_that_is_not_reached_leaves_all_of_a_job_for_later(
    connection: Any, settings: Settings, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk, "EXECUTED_SECONDS", 0.1)
    read = results(orders(settings, database, GtidSet.parse(f"{uuid4()}:1")), settings, tmp_path)

    assert [result.error.partition(":")[0] for result in read.values()] == ["stalled"] * 3
