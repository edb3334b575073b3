"""Tests of lists of keys that come from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.envelope.listed_keys import KeyRefused
from incsnap.kafka.client_settings import ClientSettings
from incsnap.planner.key_sources import keys_of
from incsnap.snapshot.commands import ChosenRows


@pytest.mark.parametrize("value", ["[5]", '{"id":5}'])
def test_a_key_with_a_list_or_an_object_is_refused(value: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text(f'{{"id":5}}\n{{"id":{value}}}\n')
    with pytest.raises(KeyRefused, match=r"id of the key .* is a list or an object"):
        list(keys_of(ChosenRows(files=str(file)), ClientSettings("unused")))


def test_a_key_with_half_a_character_is_refused_and_named(tmp_path: Path) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text('{"name":"a"}\n{"name":"\\ud800"}\n')
    with pytest.raises(KeyRefused, match=r"the key .*ud800.* holds half a character") as refused:
        list(keys_of(ChosenRows(files=str(file)), ClientSettings("unused")))
    assert str(refused.value).isascii()
