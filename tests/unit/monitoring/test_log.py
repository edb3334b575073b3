"""Tests of a job's log: its content and its formats."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace

import pytest

from incsnap.monitoring.amounts import count, duration, size
from incsnap.monitoring.log_format import about, formatter
from incsnap.monitoring.log_line import line
from incsnap.monitoring.status import Rates, SnapshotStatus
from incsnap.snapshot.notifications import Notification
from tests.support.job_statuses import running


def record(message: str, *arguments: object, **more: str) -> logging.LogRecord:
    made = logging.LogRecord("incsnap.planner", logging.WARNING, "here.py", 1, message, arguments, None)
    made.created = 1_795_340_744.1586
    vars(made).update(more)
    return made


def test_a_record_is_an_object_on_one_line() -> None:
    text = formatter("json").format(record("chunk %s failed\nbadly", "ä", **about("nightly")))

    assert "\n" not in text
    fields = json.loads(text)
    assert fields.pop("process") > 0
    assert fields == {
        "time": "2026-11-22T09:45:44.158Z",
        "level": "WARNING",
        "logger": "incsnap.planner",
        "message": "chunk ä failed\nbadly",
        "snapshot": "nightly",
    }


def test_an_exception_is_told_in_its_record() -> None:
    made = record("it failed")
    try:
        raise ValueError("because")
    except ValueError:
        made.exc_info = sys.exc_info()

    fields = json.loads(formatter("json").format(made))

    assert "ValueError: because" in fields["exception"]
    assert "snapshot" not in fields


def test_text_names_the_snapshot_at_the_end_of_the_line() -> None:
    text = formatter("text")

    assert text.format(record("a chunk failed", **about("nightly"))).endswith(
        "WARNING incsnap.planner: a chunk failed [snapshot nightly]"
    )
    assert text.format(record("no word", **about(""))).endswith("incsnap.planner: no word")


def test_a_notification_is_logged_as_debezium_does() -> None:
    notification = Notification("nightly", "STARTED", 17, (("data_collections", "shop.orders"),))

    assert notification.line("shop") == (
        "[Notification Service]  {id='nightly', aggregateType='Incremental Snapshot', type='STARTED',"
        " additionalData={connector_name=shop, data_collections=shop.orders}, timestamp=17}"
    )


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("STARTED", {"data_collections": "shop.a,shop.b"}, "The snapshot begins, of shop.a, shop.b"),
        (
            "TABLE_SCAN_COMPLETED",
            {"scanned_collection": "shop.a", "total_rows_scanned": "12345", "status": "SUCCEEDED"},
            "shop.a: 12,345 rows were read; SUCCEEDED",
        ),
        ("COMPLETED", {}, "The snapshot is complete"),
        (
            "ONLINE_DDL_TABLE",
            {"data_collections": "shop._t_gho", "tool": "gh-ost", "altered": "shop.t", "trace": "made LIKE shop.t"},
            "shop._t_gho belongs to gh-ost, which alters shop.t (made LIKE shop.t), and is not captured",
        ),
        (
            "ONLINE_DDL_TABLE",
            {"data_collections": "shop._t_ghc", "tool": "gh-ost", "trace": "'gh-ost changelog' in its definition"},
            "shop._t_ghc belongs to gh-ost ('gh-ost changelog' in its definition), and is not captured",
        ),
        (
            "ONLINE_DDL_SWAP",
            {"data_collections": "shop.t", "tool": "gh-ost", "former": "shop._t_del"},
            "gh-ost has altered shop.t: its copy has taken the table's place; the former table is shop._t_del and is"
            " not captured",
        ),
        (
            "ONLINE_DDL_SWAP",
            {"data_collections": "shop.t", "tool": "pt-online-schema-change"},
            "pt-online-schema-change has altered shop.t: its copy has taken the table's place",
        ),
        ("IN_PROGRESS", {"data_collections": "shop.a"}, ""),
    ],
)
def test_a_notification_is_a_line_of_the_log(kind: str, fields: dict[str, str], text: str) -> None:
    assert Notification("nightly", kind, 17, tuple(fields.items())).summary() == text


def test_an_idle_job_logs_nothing() -> None:
    stream = running().stream
    assert stream is not None
    idle = {"stream": replace(stream, lag_bytes=0), "snapshot": SnapshotStatus(), "rates": Rates()}

    assert line(running(**idle)) == ""
    assert line(running(**{**idle, "stream": replace(stream, lag_bytes=0, lag_ms=6_000)})).startswith("Lag 6 s;")
    assert line(running(**{**idle, "rates": Rates(events=1.0)})).startswith("Lag")


def test_a_healthy_job_says_all_in_one_line() -> None:
    assert line(running()) == (
        "Lag 0.063 s, 400 kB behind; 1,234 events/s, 64,200 snapshot rows/s, 51 MB/s; at binlog.000042:1000000,"
        " batch 123456; shop.orders (snapshot nightly) 1,240,000 rows of about 2,000,000, 12 s left;"
        " shop.people_with_a_rather_long_name (snapshot nightly) 777 rows; 3 more tables wait;"
        " throttled: 28 threads run on the server, more than the 25 threads of signal spare"
    )


def test_a_job_without_a_snapshot_says_less_and_one_without_a_binlog_says_so_first() -> None:
    stream = running().stream
    assert stream is not None

    assert "snapshot " not in line(running(snapshot=SnapshotStatus())).replace("snapshot rows", "")
    assert line(running(stream=replace(stream, connected=False))).startswith("Not connected to the binlog; Lag")
    assert line(running(stream=None)) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (9_999_999, "9,999,999"), (12_345_678, "12.3 M"), (1.5e9, "1.5 G"), (999.9e6, "1 G")],
)
def test_counts_are_short(number: float, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (51_000_000, "51 MB"), (999_600, "1 MB"), (2.5e15, "2500 TB")],
)
def test_sizes_are_short(number: float, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.063, "0.063 s"), (59.4, "59 s"), (60, "1 min"), (200, "3 min 20 s"), (18_720, "5 h 12 min")],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(seconds) == text
