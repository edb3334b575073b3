"""The workflows name tests that there are, and all that take examples by night."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = ROOT / ".github" / "workflows"


def jobs(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text())["jobs"]
    return loaded


def test_every_property_is_looked_at_by_night() -> None:
    matrix = jobs("nightly.yml")["property"]["strategy"]["matrix"]["tests"]

    assert sorted(matrix) == sorted(path.name for path in (ROOT / "tests" / "property").glob("test_*.py"))


@pytest.mark.parametrize("name", ["check.yml", "nightly.yml"])
def test_tests_that_a_workflow_names_are_there(name: str) -> None:
    named = re.findall(r"\btests/[\w./]+", (WORKFLOWS / name).read_text())

    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_each_python_that_is_promised_is_tried() -> None:
    promised = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text())

    assert jobs("check.yml")["check"]["strategy"]["matrix"]["python"] == promised
