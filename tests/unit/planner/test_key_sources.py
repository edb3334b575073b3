"""Tests of lists of keys that come from files."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from incsnap.checkpoint.files import Files
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


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_local_file_has_a_path_or_a_uri_with_one_slash_or_three(form: str, tmp_path: Path) -> None:
    file = tmp_path / "two words.jsonl"
    file.write_text('{"id":5}\n')
    path = str(file) if form == "{}" else form.format(str(file).replace(" ", "%20"))
    assert list(keys_of(ChosenRows(files=path), ClientSettings("unused"))) == ['{"id":5}']


def test_keys_in_a_bucket_are_read_by_the_client_of_the_checkpoint(bucket_folder: str) -> None:
    files = Files(bucket_folder)
    content = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([{"id": number} for number in range(3)]), content)
    files.write("given/part-0.parquet", content.getvalue())
    files.write("given/inner/part-1.jsonl", b'{"id":7}\n{"id":8}')
    files.write("given/_SUCCESS", b"")

    def keys(name: str) -> set[str]:
        return set(keys_of(ChosenRows(files=f"{bucket_folder}/{name}"), ClientSettings("unused")))

    assert keys("given") == {f'{{"id":{number}}}' for number in (0, 1, 2, 7, 8)}
    assert keys("given/inner/part-1.jsonl") == {'{"id":7}', '{"id":8}'}
    with pytest.raises(KeyRefused, match=r"the keys in s3a://.*/none cannot be read: there is no such file"):
        keys("none")
