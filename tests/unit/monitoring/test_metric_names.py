"""Tests that the job has all metrics that dashboards, alerts and pages name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from incsnap.monitoring.metrics import exposition
from incsnap.monitoring.status import SnapshotStatus
from tests.support.job_statuses import running

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "docker" / "grafana-dashboard.json"
PAGE = ROOT / "docs" / "monitoring.md"
_METRIC = re.compile(r"\b(?:incsnap|debezium_metrics)_\w+")
_BEANS = re.compile(r"`([A-Z]\w+)`")

METRICS = {
    sample.name
    for family in text_string_to_metric_families(exposition(running)().decode())
    for sample in family.samples
}


def alerts() -> list[dict[str, Any]]:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


#: The numbers of Debezium 3.6's beans of MySQL that have a value here. The text attributes are not exported by JMX's
#: exporter either.
_STREAMING = """
    BinlogPosition Connected CurrentQueueSizeInBytes IsGtidModeEnabled MaxQueueSizeInBytes MilliSecondsBehindSource
    MilliSecondsBehindSourceAverageValue MilliSecondsBehindSourceMaxValue MilliSecondsBehindSourceMinValue
    MilliSecondsBehindSourceP50 MilliSecondsBehindSourceP95 MilliSecondsBehindSourceP99
    MilliSecondsSinceLastEvent NumberOfCommittedTransactions NumberOfDisconnects NumberOfErroneousEvents
    NumberOfEventsFiltered NumberOfLargeTransactions NumberOfNotWellFormedTransactions NumberOfRolledBackTransactions
    NumberOfSkippedEvents QueueRemainingCapacity QueueTotalCapacity TotalNumberOfCreateEventsSeen
    TotalNumberOfDeleteEventsSeen TotalNumberOfEventsSeen TotalNumberOfUpdateEventsSeen
"""
_SNAPSHOT = """
    CurrentQueueSizeInBytes HoldingGlobalLock MaxQueueSizeInBytes MilliSecondsSinceLastEvent NumberOfErroneousEvents
    NumberOfEventsFiltered QueueRemainingCapacity QueueTotalCapacity RemainingTableCount RowsScanned SnapshotAborted
    SnapshotCompleted SnapshotDurationInSeconds SnapshotPaused SnapshotPausedDurationInSeconds SnapshotRunning
    SnapshotSkipped TotalNumberOfCreateEventsSeen TotalNumberOfDeleteEventsSeen TotalNumberOfEventsSeen
    TotalNumberOfUpdateEventsSeen TotalTableCount
"""
_HISTORY = """
    ChangesApplied ChangesRecovered MilliSecondsSinceLastAppliedChange MilliSecondsSinceLastRecoveredChange
    RecoveryStartTime
"""
_BEANS_OF_CONTEXTS = [("streaming", _STREAMING), ("snapshot", _SNAPSHOT), ("schema-history", _HISTORY)]


@pytest.mark.parametrize(("context", "names"), _BEANS_OF_CONTEXTS)
def test_debeziums_names_are_exported_with_its_labels(context: str, names: str) -> None:
    samples = [
        sample
        for family in text_string_to_metric_families(exposition(running)().decode())
        for sample in family.samples
        if sample.labels.get("context") == context
    ]

    assert {sample.name for sample in samples} == {f"debezium_metrics_{name}" for name in names.split()}
    assert all(sample.labels["plugin"] == "mysql" and sample.labels["name"] == "shop" for sample in samples)


def test_changes_are_counted_by_operation_in_the_stream_and_never_in_a_snapshot() -> None:
    samples = [
        sample
        for family in text_string_to_metric_families(exposition(running)().decode())
        for sample in family.samples
        if re.search("Number(Of|of)(Create|Update|Delete)", sample.name)
    ]
    values = {(each.labels["context"], each.name.removeprefix("debezium_metrics_")): each.value for each in samples}

    assert values == {
        ("streaming", "TotalNumberOfCreateEventsSeen"): 9_000_000,
        ("streaming", "TotalNumberOfUpdateEventsSeen"): 3_000_000,
        ("streaming", "TotalNumberOfDeleteEventsSeen"): 345_678,
        ("snapshot", "TotalNumberOfCreateEventsSeen"): 0,
        ("snapshot", "TotalNumberOfUpdateEventsSeen"): 0,
        ("snapshot", "TotalNumberOfDeleteEventsSeen"): 0,
    }


def test_before_the_first_batch_the_lag_has_no_statistics() -> None:
    before = running()
    assert before.stream is not None
    status = replace(before, stream=replace(before.stream, lags=None))

    assert b"MilliSecondsBehindSource{" in exposition(lambda: status)()
    assert b"MilliSecondsBehindSourceP50" not in exposition(lambda: status)()


def test_a_table_that_two_signals_read_has_one_value() -> None:
    first, other = running().snapshot.tables
    again = replace(first, number=3, signal="again", rows_done=10, seconds_left=99.0, quarantined=())
    uncounted = replace(first, number=4, table=other.table)
    status = running(snapshot=SnapshotStatus(tables=(first, other, again, uncounted)))
    samples = [
        sample
        for family in text_string_to_metric_families(exposition(lambda: status)().decode())
        for sample in family.samples
    ]
    labels = [(sample.name, frozenset(sample.labels.items())) for sample in samples]
    orders = {sample.name: sample.value for sample in samples if sample.labels.get("table") == first.table}

    assert len(labels) == len(set(labels))
    assert orders["debezium_metrics_RowsScanned"] == 1_240_010
    assert orders["incsnap_snapshot_rows_expected"] == 4_000_000
    assert orders["incsnap_snapshot_seconds_left"] == 99.0
    assert orders["incsnap_snapshot_keys_quarantined"] == 1
    # One of the other table's signals has no estimate, so the table has none.
    assert [each.value for each in samples if each.labels.get("table") == other.table] == [1_240_777, 1]


@pytest.mark.parametrize("panel", json.loads(DASHBOARD.read_text())["panels"], ids=lambda panel: panel["title"])
def test_a_panel_shows_metrics_that_there_are(panel: dict[str, Any]) -> None:
    shown = {name for target in panel["targets"] for name in _METRIC.findall(target["expr"])}

    assert shown
    assert shown <= METRICS


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_is_of_metrics_that_there_are(rule: dict[str, Any]) -> None:
    asked = set(_METRIC.findall(rule["expr"]))

    assert asked
    assert asked <= METRICS
    assert rule["annotations"]["summary"]


def test_the_page_names_metrics_that_there_are() -> None:
    names = PAGE.read_text().split("### Names")[1].split("### Alerts")[0]
    beans = {f"debezium_metrics_{bean}" for bean in _BEANS.findall(names)}

    assert len(beans) > 10
    assert beans == {name for name in METRICS if name.startswith("debezium_metrics_")}
    ours = {name for name in _METRIC.findall(names) if name != "debezium_metrics_"}
    assert len(ours) > 10
    assert ours <= METRICS


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
