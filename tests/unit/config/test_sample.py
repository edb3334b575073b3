"""docs/sample.properties: every setting that is obeyed, each with what holds without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from incsnap.config.documents import read_document
from incsnap.config.load import from_properties
from incsnap.config.names import OBEYED, OBEYED_PREFIXES

SAMPLE = Path(__file__).parents[3] / "docs" / "sample.properties"
_ENVIRONMENT = {"INCSNAP_PAGE_TOKEN": "a-token-of-the-page", "MYSQL_PASSWORD": "secret", "KEY_PASSWORD": "secret"}
_NAMES = re.compile(r"^#?([a-z][\w.-]*)=", re.MULTILINE)
#: Settings of the converter that the sample names.
_CONVERTER = "flags."
_SECOND_PART = "# ---- What holds without it"

DECIDED = SAMPLE.read_text().partition(_SECOND_PART)[0]


def test_every_obeyed_setting_is_there_once_and_no_other() -> None:
    named = _NAMES.findall(SAMPLE.read_text())

    assert len(named) == len(set(named))
    assert {
        name for name in named if name not in OBEYED and not name.startswith((*OBEYED_PREFIXES, _CONVERTER))
    } == set()
    assert set(named) >= OBEYED


@pytest.mark.parametrize("prefix", OBEYED_PREFIXES)
def test_each_prefix_has_an_example(prefix: str) -> None:
    assert any(name.startswith(prefix) for name in set(_NAMES.findall(SAMPLE.read_text())) - OBEYED)


def test_the_file_is_loaded_without_a_warning() -> None:
    assert from_properties(read_document(SAMPLE), _ENVIRONMENT).warnings == ()


def test_the_second_part_says_what_holds_without_it() -> None:
    properties, decided = read_document(SAMPLE), _NAMES.findall(DECIDED)
    needed = from_properties({name: properties[name] for name in decided}, _ENVIRONMENT).settings

    assert len(properties) > len(decided)
    assert from_properties(properties, _ENVIRONMENT).settings == needed


@pytest.mark.parametrize(
    "rivals", [(".include.list=", "start.gtid.set="), (".exclude.list=", "start.binlog.")], ids=lambda names: names[0]
)
def test_what_is_commented_out_would_be_obeyed(tmp_path: Path, rivals: tuple[str, ...]) -> None:
    """All of it together, but for one side of the settings that exclude each other."""
    examples = re.sub(r"^#(?=[a-z][\w.-]*=)", "", SAMPLE.read_text(), flags=re.MULTILINE)
    file = tmp_path / "all.properties"
    file.write_text("\n".join(line for line in examples.splitlines() if not any(rival in line for rival in rivals)))

    warnings = from_properties(read_document(file), _ENVIRONMENT).warnings

    # The sample's checkpoint is no bucket.
    assert warnings[0] == "incsnap.ignore: nothing is to be ignored of header.converter"
    assert [each.rpartition(": ")[2] for each in warnings[1:]] == ["poll.interval.ms"]
