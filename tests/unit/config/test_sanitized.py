"""Values whose names `custom.sanitize.pattern` matches are hidden wherever settings are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from incsnap.cli.main import commands
from incsnap.config.load import explain

_FILE = """
database.hostname=127.0.0.1
database.user=cdc
database.password=hunter2SECRET
database.server.id=5400
topic.prefix=shop
database.include.list=inventory
bootstrap.servers=127.0.0.1:9092
checkpoint.location=/tmp/c
producer.client.id=hidden-value
decimal.handling.mode=hidden-value
custom.sanitize.pattern={pattern}
"""


def _file(folder: Path, pattern: str) -> Path:
    path = folder / "shop.properties"
    path.write_text(_FILE.format(pattern=pattern))
    return path


def test_matching_names_are_hidden_in_any_letter_case(tmp_path: Path) -> None:
    path = _file(tmp_path, r".*CLIENT\.id|decimal.*")
    values = {each.name: each.value for each in explain(path).settings}

    assert values["producer.client.id"] == "**********"
    assert values["database.user"] == "cdc"
    shown = CliRunner().invoke(commands, ["config", str(path), "--defaults"])
    assert "hidden-value" not in shown.output
    assert "hunter2SECRET" not in shown.output
    # A wrong value is refused without being shown.
    assert "decimal.handling.mode: the value is not" in " ".join(shown.output.split())


def test_a_part_of_a_name_is_no_match(tmp_path: Path) -> None:
    values = {each.name: each.value for each in explain(_file(tmp_path, "client")).settings}
    assert values["producer.client.id"] == "hidden-value"


def test_a_pattern_that_cannot_be_read_hides_all_values(tmp_path: Path) -> None:
    values = {each.name: each.value for each in explain(_file(tmp_path, "(")).settings}
    assert values["database.user"] == "**********"


@pytest.mark.parametrize(
    "setting",
    ["table.include.list", "column.include.list", "snapshot.select.statement.overrides", "gtid.source.includes"],
)
def test_no_problem_and_no_note_shows_a_hidden_value(setting: str, tmp_path: Path) -> None:
    path = _file(tmp_path, re.escape(setting))
    path.write_text(f"{path.read_text()}{setting}=db.t, hunter2(\n".replace("hidden-value", "string"))

    shown = CliRunner().invoke(commands, ["config", str(path)])

    assert shown.exit_code == 2
    assert f"{setting}: " in " ".join(shown.output.split())
    assert "hunter2" not in shown.output


@pytest.mark.parametrize(
    "content",
    [
        {"database.pasword": "hunter2"},
        {"database.passwrd": "hunter2"},
        {"name": "database.password", "value": "hunter2"},
        {"op": "add", "path": "/config/database.password", "value": "hunter2"},
    ],
    ids=["misspelt", "misspelt twice", "a name beside its value", "a patch"],
)
def test_the_value_of_an_unknown_name_is_hidden(content: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(content))
    assert "hunter2" not in CliRunner().invoke(commands, ["config", str(path)]).output
