"""The model of growth: it adds up costs, so more of anything is never cheaper, and the narrowest part is the limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scaling import costs as kept
from benchmarks.scaling.costs import Costs
from benchmarks.scaling.growth import Cluster, Stream, batch_seconds, flow, limits, needed, snapshot_rows_a_second
from benchmarks.scaling.tables import as_text

KINDS = st.sampled_from(["large", "single"])


@pytest.fixture(scope="module")
def costs() -> Costs:
    return kept.read()


def test_between_two_numbers_that_were_measured_a_cost_lies_on_the_line() -> None:
    costs = Costs({"tables.planner.1": 1.0, "tables.planner.101": 3.0, "tables.planner.201": 7.0})
    assert costs.at("tables.planner", 1) == 1.0
    assert costs.at("tables.planner", 51) == 2.0
    assert costs.at("tables.planner", 301) == 11.0  # on from the last two
    with pytest.raises(KeyError, match="two are needed"):
        costs.at("tables.sink", 5)


def test_costs_that_were_written_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    Costs({"chunk": 1.25e-06}, {"date": "today"}).write(file)
    again = kept.read(file)
    assert again["chunk"] == 1.25e-06
    assert again.about["date"] == "today"


@given(KINDS, st.floats(1, 1e5), st.integers(1, 10_000), st.integers(1, 1_000))
def test_more_changes_tables_or_partitions_never_take_less_time(
    kind: str, changes: float, tables: int, partitions: int
) -> None:
    costs, cluster = kept.read(), Cluster()
    one = batch_seconds(costs, cluster, Stream(0, 1, 1, kind), changes)
    for stream in (Stream(0, tables, 1, kind), Stream(0, 1, partitions, kind)):
        # What was measured at a few numbers is not quite a line.
        assert batch_seconds(costs, cluster, stream, changes) >= one * 0.9
    assert batch_seconds(costs, cluster, Stream(0, 1, 1, kind), 2 * changes) > one


@given(KINDS, st.integers(1, 64), st.integers(1, 64))
def test_no_stream_is_carried_that_is_more_than_its_narrowest_part(kind: str, slots: int, buckets: int) -> None:
    costs, cluster = kept.read(), Cluster(slots, buckets)
    narrowest = min(limits(costs, cluster, kind).values())
    assert flow(costs, cluster, Stream(2 * narrowest, kind=kind)).lag_seconds is None
    assert flow(costs, cluster, Stream(1, kind=kind)).lag_seconds is not None


def test_a_stream_that_no_single_job_can_read_is_said_to_need_several(costs: Costs) -> None:
    planner = 1 / costs["planner.single"]
    assert needed(costs, Stream(2 * planner, partitions=1_000)) is None
    small = needed(costs, Stream(100, partitions=4))
    assert small == Cluster(2, 1, 2)


def test_a_snapshot_is_as_quick_as_its_readers_or_its_senders(costs: Costs) -> None:
    few, many = Cluster(readers=1, buckets=64), Cluster(readers=1_000, buckets=1)
    assert snapshot_rows_a_second(costs, few) == pytest.approx(1 / costs["chunk.elapsed"])
    assert snapshot_rows_a_second(costs, many) == pytest.approx(1 / costs["release.elapsed"])


def test_the_report_has_all_tables(costs: Costs) -> None:
    text = as_text(costs)
    assert text.count("\n\n") == 5
    assert "None" not in text
    assert "nan" not in text
