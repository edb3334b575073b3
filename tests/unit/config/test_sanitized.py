"""Values whose names `custom.sanitize.pattern` matches are hidden wherever settings are shown."""

from __future__ import annotations

from pathlib import Path

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
