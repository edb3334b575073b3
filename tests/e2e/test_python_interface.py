"""The examples in the docstrings of the Python interface, with a job and a DataFrame on real servers."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import incsnap
from incsnap.mysql.watermarks import executed
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from tests.support.spark_session import session
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def spark(play: CapturedDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """Yield a session in a folder with `shop.properties`, whose job captures one table."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "MALLOC_ARENA_MAX", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    play.create(ORDERS, 100)
    file = write_properties(tmp_path / "shop.properties", play.properties())
    # Only after the JVM has started: the workers of later tests import `tests` from the JVM's folder.
    made = session(incsnap.Settings.from_file(file))
    monkeypatch.chdir(tmp_path)
    yield made
    made.stop()


def run_example(of: object, play: CapturedDatabase, **names: object) -> None:
    """Run the examples in the docstring of `of`, with the topic prefix and the table of `play` for their `shop`.

    The settings file gets its whole path. A relative path holds only in the folder in which the JVM was started, and
    an earlier test may have started the JVM of this process elsewhere.
    """
    text = str(of.__doc__).replace("shop.orders", str(play.tables[0][1]))
    text = text.replace("shop.properties", str(Path("shop.properties").resolve()))
    text = re.sub(r"'shop'", repr(play.prefix), text)
    example = doctest.DocTestParser().get_doctest(text, {"incsnap": incsnap, **names}, str(of), None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def test_examples_of_the_interface_run(spark: SparkSession, play: CapturedDatabase) -> None:
    run_example(incsnap.start, play, spark=spark)
    run_example(incsnap.Job, play, spark=spark)
    with play.notices() as notices:
        job = incsnap.start(spark, incsnap.Settings.from_file("shop.properties"))
        wait_until(lambda: job.status().state == "running")
        run_example(incsnap.Job.status, play, job=job)
        run_example(incsnap.Job.signal, play, job=job)
        wait_until(lambda: notices.completed("orders-again"))
        run_example(incsnap.Job.reread, play, job=job)
        wait_until(lambda: notices.completed("orders-5-7"))
        frame = spark.range(0, 400, 4)  # of the keys 2, 4, ... 200 every second one, and as many that have no row
        job.reread(str(play.tables[0][1]), frame, name="of-a-frame")
        wait_until(lambda: notices.completed("of-a-frame"))
        end = notices.of("TABLE_SCAN_COMPLETED", "of-a-frame")[0]["additional_data"]
        assert (end["total_rows_scanned"], end["absent_keys"]) == ("50", "50")
        run_example(incsnap.Job.stop, play, job=job)
    wait_until(lambda: job.status().state == "stopped")
    run_example(incsnap.register, play, spark=spark)
    run_example(incsnap.merge_into, play, spark=spark)
    reader = spark.read.format("incsnap").option("config", str(Path("shop.properties").resolve()))
    orders = reader.option("table", str(play.tables[0][1])).load().localCheckpoint()
    with play.connect() as connection:
        run_example(incsnap.compare, play, spark=spark, orders=orders, gtid_set=str(executed(connection)))
