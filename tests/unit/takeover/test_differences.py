"""The lines about what differs for consumers behind a take-over."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.takeover.differences import differences
from lab.running_job import write_properties
from tests.support.properties import QUIET

_PAGE = Path(__file__).parents[3] / "docs" / "migrate-from-debezium.md"
_NULL, _NO_END = "A NULL in a column with a DEFAULT stays NULL", "A transaction without captured rows has no BEGIN"
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.mark.parametrize(
    ("of_file", "of_worker", "shown"),
    [
        ({}, {}, [_NULL]),
        ({"provide.transaction.metadata": "true"}, {}, [_NULL, _NO_END]),
        ({"value.converter": _JSON, "value.converter.replace.null.with.default": "false"}, {}, []),
        ({}, {"value.converter": _JSON, "value.converter.replace.null.with.default": "false"}, []),
    ],
    ids=["neither", "metadata", "nulls of the connector", "nulls of the worker"],
)
def test_the_lines_are_those_that_the_settings_make_true(
    tmp_path: Path, of_file: dict[str, str], of_worker: dict[str, str], shown: list[str]
) -> None:
    file = write_properties(tmp_path / "shop.properties", {**QUIET, **of_file})
    worker = write_properties(tmp_path / "worker.properties", {"bootstrap.servers": "k:9092", **of_worker})

    lines = differences(str(file), str(worker))

    assert [each for each in (_NULL, _NO_END) if any(each in line for line in lines)] == shown


def test_the_page_that_is_named_has_its_heading(tmp_path: Path) -> None:
    first, *_ = differences(str(write_properties(tmp_path / "shop.properties", QUIET)), None)

    assert "docs/migrate-from-debezium.md, `What consumers see`" in first
    assert "\n## What consumers see\n" in _PAGE.read_text()
