"""The Python interface: its names, the older names, and what a `Job` does with its query."""

from __future__ import annotations

import doctest
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

import incsnap
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.monitoring.status import JobStatus
from incsnap.spark import session_job
from incsnap.spark.session_job import Job, stop
from incsnap.spark.source import STOP
from lab.running_job import write_properties
from signals.resolve import resolve
from tests.support.properties import NEEDED


class Query:
    """A query of Spark that runs at the first look at it, and has ended at the next one."""

    lastProgress = {"batchId": 7}  # noqa: N815, RUF012 (Spark's name)

    def __init__(self) -> None:
        self.looks = self.stops = 0

    @property
    def isActive(self) -> bool:  # noqa: N802 (Spark's name)
        self.looks += 1
        return self.looks == 1

    def stop(self) -> None:
        self.stops += 1

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 (Spark's name)
        return timeout > 0


class Watching:
    def status(self) -> JobStatus:
        return JobStatus("0.1.0", "shop", "host", 1, 1, "running", 1, 1, 1000)


def job_in(folder: Path) -> Job:
    settings = Settings.from_file(
        write_properties(
            folder / "shop.properties",
            {**NEEDED, "signal.enabled.channels": "file", "checkpoint.location": str(folder)},
        )
    )
    query: Any = Query()
    watch: Any = Watching()
    return Job(query, settings, watch)


def test_completion_shows_the_public_names() -> None:
    assert dir(incsnap) == sorted(incsnap.__all__)
    assert {"Job", "Settings", "compare", "merge_into", "register", "start"} <= set(dir(incsnap))
    assert all(hasattr(incsnap, name) for name in dir(incsnap))


@pytest.mark.parametrize(("name", "instead"), [("load", "Settings.from_file"), ("stop", r"job\.stop")])
def test_an_older_name_is_answered_with_a_warning(name: str, instead: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"incsnap\.{name} goes with the next release. Use .*{instead}"):
        assert callable(getattr(incsnap, name))


def test_a_job_answers_as_its_query_for_a_release(tmp_path: Path) -> None:
    job: Any = job_in(tmp_path)

    assert (job.isActive, job.lastProgress["batchId"], job.awaitTermination(1)) == (True, 7, True)
    with pytest.raises(AttributeError):
        job.no_such_name  # noqa: B018


def test_a_job_and_its_query_stop_alike(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    query: Any = job.query

    for stop_it in (job.stop, lambda: stop(job, job.settings), lambda: stop(job.query, job.settings)):
        query.looks = 0
        stop_it()

    assert query.stops == 3


def test_a_stop_of_a_query_that_has_ended_leaves_the_checkpoint_to_the_next_one(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    query: Any = job.query
    query.looks = 1
    (tmp_path / STOP).write_bytes(b"")

    job.stop()

    assert query.stops == 0
    assert (tmp_path / STOP).exists()


def test_a_job_tells_its_status(tmp_path: Path) -> None:
    assert job_in(tmp_path).status().topic_prefix == "shop"


def test_a_signal_is_sent_by_the_jobs_channel_with_an_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr(session_job, "send_signal", lambda *signal: sent.append(signal))
    job = job_in(tmp_path)

    new, own = job.signal("pause-snapshot"), job.signal("log", {"message": "here"}, name="mine")

    assert sent == [(job.settings, new, "pause-snapshot", {}), (job.settings, "mine", "log", {"message": "here"})]
    assert own == "mine"


def test_a_signal_that_the_job_would_ignore_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="The signal would be ignored"):
        job_in(tmp_path).signal("execute-snapshot")


def test_keys_may_be_rows_of_a_dataframe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(session_job, "send_signal", lambda *signal: sent.append(signal))

    largest = Decimal(f"{2**64 - 1}.{0:040}")
    job_in(tmp_path).reread("shop.orders", [Row(id=5, part="a"), {"id": Decimal(7), "part": None}, {"id": largest}])

    assert json.loads(json.dumps(sent[0][3]["incsnap-keys"])) == [
        {"id": 5, "part": "a"},
        {"id": 7, "part": None},
        {"id": 2**64 - 1},
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("shop.aab", "shop.aab"),
        (" shop.a+b ", "shop.a+b"),
        ("`shop`.`a+b`", "shop.a+b"),
        ('shop."a+b"', "shop.a+b"),
        (r"shop\.aab", "shop.aab"),
        ("shop.my.orders", "shop.my.orders"),
        ("shop.orders$2024", "shop.orders$2024"),
    ],
)
def test_a_table_is_named_and_no_other_one_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, expected: str
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(session_job, "send_signal", lambda *signal: sent.append(signal[3]["data-collections"]))

    job_in(tmp_path).reread(table, [{"id": 5}])

    captured = ["shop.aab", "shop.a+b", "shop.my.orders", "shop.my_orders", "shop.orders$2024", "shop.orders"]
    assert resolve(sent[0], captured).tables == (expected,)


@pytest.mark.parametrize(
    ("key", "match"),
    [
        ({"day": date(2026, 11, 28)}, "day of the key .* is of type date, which JSON has not"),
        (Row(at=datetime(2026, 11, 28)), "at of the key .* is of type datetime"),
        ({"raw": b"x"}, "raw of the key .* is of type bytes"),
        ({"price": Decimal("1.5")}, "price of the key .* is of type Decimal"),
        ({"price": Decimal("Infinity")}, "price of the key .* is of type Decimal"),
        (5, "5 is no key: it is of type int"),
        ("id", "id is no key: it is of type str"),
    ],
)
def test_a_key_that_json_cannot_carry_is_refused_with_its_type(tmp_path: Path, key: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        job_in(tmp_path).reread("shop.orders", [key])


def test_the_example_of_settings_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_properties(tmp_path / "shop.properties", NEEDED)
    example = doctest.DocTestParser().get_doctest(
        str(Settings.from_file.__doc__), {"incsnap": incsnap}, "Settings.from_file", None, None
    )

    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
