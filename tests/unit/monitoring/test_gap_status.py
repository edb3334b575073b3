"""Tests of what is shown of a comparison behind a gap: the line, the metrics, and the status as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.monitoring.gap_status import GapStatus, gap_line
from incsnap.monitoring.metrics import exposition
from incsnap.monitoring.status import dump, load
from tests.support.job_statuses import running

OPEN = GapStatus("2bd36f56-0000-4000-8000-000000000001:1-77", 1, left=3, compared=9, keys=1_234)


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (OPEN, "tables are compared with their topics: 9 done, 3 left; 1,234 keys that differ are sent again"),
        (replace(OPEN, whole=2), "1,234 keys that differ are sent again, and 2 tables are read whole"),
        (replace(OPEN, ended_ms=1), "9 tables were compared until "),
        (replace(OPEN, failure="MySQL is away"), "; the last attempt failed: MySQL is away"),
    ],
)
def test_a_line_says_how_far_the_comparison_is(status: GapStatus, shown: str) -> None:
    assert shown in gap_line(status)


def test_metrics_count_what_is_left_and_what_is_sent_again() -> None:
    job = running(gap=OPEN)
    text = exposition(lambda: job)().decode()
    assert f'incsnap_gap_tables_left{{name="{job.topic_prefix}"}} 3.0' in text
    assert f'incsnap_gap_keys_sent{{name="{job.topic_prefix}"}} 1234.0' in text
    assert "incsnap_gap" not in exposition(lambda: running(gap=None))().decode()


def test_a_status_is_written_and_read_with_its_gap() -> None:
    job = running(gap=OPEN)
    assert load(dump(job)) == job
