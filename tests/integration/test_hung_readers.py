"""Readers of chunks that hang, in real Spark jobs: nothing is heard of them until the planner drops their windows."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from incsnap.planner.chunk_readers import Answer, ChunkReaders, ReadOrders
from incsnap.spark import reader_jobs
from incsnap.spark.reader_jobs import ReaderJobs, ReaderPool
from incsnap.tasks.partitions import ChunkOrder
from lab.addresses import MySqlAddress
from tests.support.chunk_orders import order
from tests.support.planned_job import settings_of
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def is_alive(process: int) -> bool:
    """Whether the process is there and is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_a_frozen_reader_is_killed_and_others_read_in_its_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = tmp_path / "frozen"

    def read(_json: str, _root: str, _level: int, _many: bool, orders: tuple[ChunkOrder, ...], _: object):  # type: ignore[no-untyped-def]
        if orders[0].read.window.id == "hung":
            frozen.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)
        return iter([Answer(order.read.window.id) for order in orders])

    monkeypatch.setattr(reader_jobs, "_read_on_executor", read)
    settings = settings_of(MySqlAddress("h", 1), "k:1", "p", "d")
    jobs = ReaderJobs(spark, settings, str(tmp_path / "root"), ReaderPool(1, 1), 20)
    woken = threading.Event()
    planner = ChunkReaders(jobs.address, woken.set)
    try:
        planner.order(ReadOrders((order("hung", 50_000),), 1))
        wait_until(lambda: frozen.exists() and frozen.read_text() != "")
        planner.order(ReadOrders((order("next", 50_000),), 1))
        planner.order(ReadOrders((), 1, frozenset({"hung"})))

        answers: list[Answer] = []
        while len(answers) < 2:
            assert woken.wait(PATIENCE_SECONDS), answers
            woken.clear()
            answers += [message for message in planner.messages() if isinstance(message, Answer)]
        assert answers[0].window_id == "hung"
        assert answers[0].error
        assert answers[1] == Answer("next")
        # Its task slot is free again, too.
        wait_until(lambda: not is_alive(int(frozen.read_text())))
    finally:
        planner.close()
        jobs.close()
