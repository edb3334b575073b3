"""Tests that the job has all metrics that dashboards, alerts and pages name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from incsnap.monitoring.metrics import exposition
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
