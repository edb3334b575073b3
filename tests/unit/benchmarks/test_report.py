"""The benchmark's figures: results, percentiles and which side they favour."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.arrivals import Arrival
from benchmarks.estimate import seconds
from benchmarks.measured_jobs import DEBEZIUM, DEBEZIUM_BEST, INCSNAP, SIDES
from benchmarks.notes import failing
from benchmarks.outcome import Outcome, read
from benchmarks.report import processes, sections, table, write
from benchmarks.rows import FIGURES, ROWS, Figure, Figures, Scale, chosen, measured, served
from benchmarks.update_latency import percentile
from incsnap.errors import ServerUnreachable

NOW, BEFORE = "2026-11-22 20:00 UTC", "2026-11-21 20:00 UTC"


def outcome(when: str = NOW, /, **figures: tuple[list[float], list[float]]) -> Outcome:
    """Return the outcome of a measurement. `figures`: for each key the runs of Debezium's best and of incsnap."""
    made = Outcome({when: {"runs": 3}})
    for key, sides in figures.items():
        for side, values in zip((DEBEZIUM_BEST, INCSNAP), sides, strict=True):
            for value in values:
                made.add(when, side, {key: value}, ROWS)
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
    results = outcome(snapshot=([10, 20, 90], [40, 60, 50]), signal=([0.2], [0.8]))

    assert results.times_better(more, DEBEZIUM_BEST) == 2.5
    assert results.times_better(less, DEBEZIUM_BEST) == 0.25


def test_a_side_that_was_not_measured_has_a_dash() -> None:
    text = table(outcome(start=([], [6.0])))

    assert text.splitlines()[2:] == ["| start of a new job to its first record of a change | – | – | 6.00 s | – |"]


def test_a_rate_of_records_that_came_in_one_moment_is_left_out() -> None:
    nothing = Arrival(records=5, first=1.0, last=1.0, at_first=5).rate
    results = outcome(**{"snapshot.inside": ([1.0, nothing], [nothing])})

    assert results.median(DEBEZIUM_BEST, "snapshot.inside") == 1.0
    assert results.median(INCSNAP, "snapshot.inside") is None


def test_an_unknown_row_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"no row latencies; there are start, latency"):
        chosen("snapshot,latencies")


def test_memory_and_processor_are_read_off_a_snapshot_and_a_backlog() -> None:
    assert measured(chosen("memory")) == {"snapshot", "backlog"}
    assert measured(chosen("latency, signal")) == {"latency", "snapshot"}


def test_each_row_has_a_figure_and_each_figure_a_row() -> None:
    assert {figure.row for figure in FIGURES} == set(ROWS)


def test_processor_seconds_are_told_process_by_process() -> None:
    results = outcome(
        **{
            "processor.snapshot.job": ([30.0], []),
            "processor.snapshot.job: java": ([30.0], []),
            "processor.snapshot.Kafka": ([4.0], []),
        }
    )

    assert processes(results, "snapshot") == "- debezium-best: java 30.0, Kafka 4.0 s"
    assert processes(results, "backlog") == ""


def test_the_file_of_results_holds_every_run(tmp_path: Path) -> None:
    results = outcome(start=([9.0, 8.0], [7.0, 6.0]))

    results.write(tmp_path)
    write(results, tmp_path)

    assert read(tmp_path) == results
    assert json.loads((tmp_path / "figures.json").read_text())["rows"]["start"]["debezium-best"]["figures"] == {
        "start": [9.0, 8.0]
    }
    assert "| 8.50 s | 6.50 s | 1.31 |" in (tmp_path / "README.md").read_text()


def test_a_row_that_is_measured_again_leaves_the_others_with_their_own_time() -> None:
    before = outcome(BEFORE, start=([9.0], [6.0]), signal=([0.2], [0.4]))

    merged = outcome(NOW, signal=([0.3], [0.3])).over(before)

    assert (merged.runs(INCSNAP, "start"), merged.runs(INCSNAP, "signal")) == ([6.0], [0.3])
    assert list(merged.abouts) == [BEFORE, NOW]
    text = table(merged)
    assert f"| 9.00 s | 6.00 s | 1.50 | {BEFORE} |" in text
    assert f"| 0.30 s | 0.30 s | 1.00 | {NOW} |" in text


def test_figures_without_a_row_are_dropped() -> None:
    merged = outcome(NOW, start=([8.0], [5.0])).over(outcome(BEFORE, start=([9.0], [6.0])))

    assert list(merged.abouts) == [NOW]


def test_sides_that_were_not_measured_together_are_not_compared() -> None:
    merged = outcome(NOW, start=([], [5.0])).over(outcome(BEFORE, start=([9.0], [6.0])))

    assert f"| – | 9.00 s | 5.00 s | – | Debezium's best: {BEFORE}, incsnap: {NOW} |" in table(merged)


def test_the_defaults_stand_beside_the_best_and_the_ratio_is_to_the_best() -> None:
    results = outcome(start=([8.0], [4.0]))
    results.add(NOW, DEBEZIUM, {"start": 12.0}, ROWS)
    (figure,) = results.lines()

    assert "| 12.0 s | 8.00 s | 4.00 s | 2.00 |" in table(results)
    assert results.times_better(figure, DEBEZIUM) == 3.0


def test_a_side_that_was_measured_later_does_not_hide_the_ratio_of_the_others() -> None:
    merged = outcome(NOW, start=([8.0], [4.0]))
    before = Outcome({BEFORE: {}})
    before.add(BEFORE, DEBEZIUM, {"start": 12.0}, ROWS)
    merged = merged.over(before)

    assert "| 12.0 s | 8.00 s | 4.00 s | 2.00 |" in table(merged)
    assert merged.times_better(merged.lines()[0], DEBEZIUM) is None


def test_figures_of_rows_that_nobody_asked_for_are_not_kept() -> None:
    results = Outcome()
    results.add(NOW, INCSNAP, {"snapshot": 1.0, "signal": 2.0, "memory.snapshot": 3.0}, ["signal"])

    assert set(results.rows) == {"signal"}


def test_a_side_that_failed_in_all_runs_is_said_to_have() -> None:
    results = outcome(mix=([], [50.0]))
    results.of("mix", DEBEZIUM_BEST, NOW).failures.append("NotArrived: 3 of 4 records in 9 s\nthe end of its log")

    assert "| – | failed | 50.0 changes/s | – |" in table(results)
    assert "- debezium-best, mix: NotArrived: 3 of 4 records in 9 s" in "\n".join(sections(results))


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "figures.json").write_text('{"figures": {}}')

    with pytest.raises(ValueError, match=r"figures\.json is not of version 2"):
        read(tmp_path)


def test_a_measurement_serves_the_rows_that_are_read_off_it() -> None:
    assert served("snapshot") == ("snapshot", "signal", "memory", "processor")
    assert served("mix") == ("mix",)


def test_the_whole_is_estimated_at_about_an_hour_and_each_row_below_the_whole() -> None:
    whole = seconds(measured(ROWS), Scale(), SIDES, 3)

    assert 1_200 < whole < 3_900
    for row in ROWS:
        assert 0 < seconds(measured([row]), Scale(), SIDES, 3) < whole / 2
        assert seconds(measured([row]), Scale(rows=1_000), [INCSNAP], 1) < 60


class _Notes:
    def __init__(self) -> None:
        self.failures: list[tuple[list[str], str]] = []

    def measured(self, measurement: str, figures: Figures) -> None:
        raise AssertionError((measurement, figures))

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        self.failures.append((list(measurements), str(error)))


def test_a_failed_row_is_noted_and_an_interruption_is_raised() -> None:
    notes = _Notes()

    def end(error: BaseException) -> None:
        raise error

    with failing("mix", notes):
        end(ServerUnreachable("Kafka Connect ended"))
    with pytest.raises(KeyboardInterrupt), failing("mix", notes):
        end(KeyboardInterrupt())

    assert [rows for rows, _ in notes.failures] == [["mix"]]
    assert "Kafka Connect ended" in notes.failures[0][1]
