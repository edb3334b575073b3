"""Tests of the pages that are made from the declarations: docs/sample.properties and docs/settings.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from incsnap.config.declarations import GROUPS, SETTINGS
from incsnap.config.documents import read_document
from incsnap.config.load import from_properties
from incsnap.config.reference import reference, sample, with_table
from incsnap.config.unsupported import CHANGE_RECORDS
from incsnap.config.without_effect import WITHOUT_EFFECT

DOCS = Path(__file__).parents[3] / "docs"
SAMPLE = DOCS / "sample.properties"
_ENVIRONMENT = {"INCSNAP_PAGE_TOKEN": "a-token-of-the-page", "MYSQL_PASSWORD": "secret", "KEY_PASSWORD": "secret"}
_DECIDED = {setting.name for setting in next(iter(GROUPS.values()))}


@pytest.mark.parametrize(("name", "made"), [("sample.properties", sample()), ("settings.md", reference())])
def test_the_pages_are_made_from_the_declarations(name: str, made: str) -> None:
    assert (DOCS / name).read_text() == made, "run `python -m incsnap.config.reference`"


def test_the_page_for_users_of_debezium_names_each_setting_that_is_not_obeyed() -> None:
    page = (DOCS / "migrate-from-debezium.md").read_text()
    assert page == with_table(page), "run `python -m incsnap.config.reference`"
    for name in (*WITHOUT_EFFECT, *CHANGE_RECORDS):
        assert f"\n| `{name}` |" in page
    assert not WITHOUT_EFFECT & set(SETTINGS)


def test_each_setting_is_declared_once() -> None:
    names = [setting.name for group in GROUPS.values() for setting in group]

    assert len(names) == len(set(names))


def test_the_sample_is_loaded_without_a_warning() -> None:
    assert from_properties(read_document(SAMPLE), _ENVIRONMENT).warnings == ()


def test_the_defaults_of_the_sample_change_nothing() -> None:
    properties = read_document(SAMPLE)
    decided = {name: value for name, value in properties.items() if name in _DECIDED}

    assert set(decided) == _DECIDED < set(properties)
    assert from_properties(properties, _ENVIRONMENT).settings == from_properties(decided, _ENVIRONMENT).settings


def test_each_default_is_the_value_of_a_setting_that_is_not_given() -> None:
    settings = from_properties({name: SETTINGS[name].example for name in _DECIDED}, _ENVIRONMENT).settings

    assert settings.retries.max_delay_ms == SETTINGS["errors.retry.delay.max.ms"].value == 10_000


@pytest.mark.parametrize(
    "rivals",
    [
        (".include.list=", "start.at=", "start.gtid.set=", "heartbeat.topic.name="),
        (".exclude.list=", "start.at=", "start.binlog.", "topic.heartbeat.name="),
    ],
    ids=lambda names: names[0],
)
def test_what_is_commented_out_would_be_obeyed(tmp_path: Path, rivals: tuple[str, ...]) -> None:
    """The test sets all examples at once. Of two settings that exclude each other it leaves one out."""
    examples = re.sub(r"^#(?=[a-z][\w.-]*=)", "", SAMPLE.read_text(), flags=re.MULTILINE)
    file = tmp_path / "all.properties"
    file.write_text("\n".join(line for line in examples.splitlines() if not any(rival in line for rival in rivals)))

    warnings = from_properties(read_document(file), _ENVIRONMENT).warnings

    # The sample's checkpoint is no bucket.
    assert warnings[0] == "incsnap.ignore: no need to ignore header.converter"
    idle = "poll.interval.ms (of Debezium or Kafka Connect)"
    assert [each.rpartition(": ")[2] for each in warnings[1:]] == [idle]
