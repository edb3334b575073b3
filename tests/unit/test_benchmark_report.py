"""The benchmark's figures: medians, percentiles and which side they favour."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.arrivals import Arrival
from benchmarks.beat import percentile
from benchmarks.report import Results, processes, table, write
from benchmarks.rows import FIGURES, ROWS, Figure, chosen, measured
from benchmarks.sides import DEBEZIUM, INCSNAP


def results(**figures: tuple[list[float], list[float]]) -> Results:
    """Of each key Debezium's runs and ours."""
    made = Results({"runs": 3})
    for key, sides in figures.items():
        for side, values in zip((DEBEZIUM, INCSNAP), sides, strict=True):
            for value in values:
                made.add(side, {key: value})
    return made


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(number) for number in range(1, 101)]

    assert tuple(percentile(values, percent) for percent in (50, 99, 100)) == (50.0, 99.0, 100.0)
    assert percentile([7.0], 99) == 7.0
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0


def test_the_rate_leaves_out_what_was_there_at_the_first_look() -> None:
    arrival = Arrival(records=1_100, first=10.0, last=12.0, at_first=100)

    assert arrival.rate == 500.0
    assert arrival.rate_since(9.0) == pytest.approx(1_100 / 3)


def test_more_rows_and_fewer_milliseconds_are_both_better() -> None:
    more = Figure("snapshot", "snapshot", "", "rows/s", more=True)
    less = Figure("signal", "signal", "", "s")
    found = results(snapshot=([10, 20, 90], [40, 60, 50]), signal=([0.2], [0.8]))

    assert found.times_better(more) == 2.5
    assert found.times_better(less) == 0.25


def test_a_side_that_was_not_measured_has_a_dash() -> None:
    said = table(results(start=([], [6.0])), ["start"])

    assert said.splitlines()[2:] == ["| start of a new job to its first record of a change | – | 6.00 s | – |"]


def test_a_rate_of_records_that_came_in_one_moment_is_left_out() -> None:
    nothing = Arrival(records=5, first=1.0, last=1.0, at_first=5).rate
    found = results(**{"snapshot.inside": ([1.0, nothing], [nothing])})

    assert found.median(DEBEZIUM, "snapshot.inside") == 1.0
    assert found.median(INCSNAP, "snapshot.inside") is None


def test_an_unknown_row_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"no row latencies; there are start, latency"):
        chosen("snapshot,latencies")


def test_memory_and_processor_are_read_off_a_snapshot_and_a_backlog() -> None:
    assert measured(chosen("memory")) == {"snapshot", "backlog"}
    assert measured(chosen("latency, signal")) == {"latency", "signal"}


def test_each_row_has_a_figure_and_each_figure_a_row() -> None:
    assert {figure.row for figure in FIGURES} == set(ROWS)


def test_processor_seconds_are_told_process_by_process() -> None:
    found = results(
        **{
            "processor.snapshot.job": ([30.0], []),
            "processor.snapshot.job: java": ([30.0], []),
            "processor.snapshot.Kafka": ([4.0], []),
        }
    )

    assert processes(found, "snapshot") == "- debezium: java 30.0, Kafka 4.0 s"
    assert processes(found, "backlog") == ""


def test_the_file_of_results_holds_every_run(tmp_path: Path) -> None:
    write(results(start=([9.0, 8.0], [7.0, 6.0])), ["start"], tmp_path)

    assert json.loads((tmp_path / "figures.json").read_text()) == {
        "about": {"runs": 3},
        "figures": {"debezium": {"start": [9.0, 8.0]}, "incsnap": {"start": [7.0, 6.0]}},
    }
    assert "| 8.50 s | 6.50 s | 1.31 |" in (tmp_path / "README.md").read_text()
