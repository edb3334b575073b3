"""Tests of lists of keys that come from files."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import StoreAccess, store_access
from incsnap.envelope.listed_keys import KeyRefused
from incsnap.errors import ServerUnreachable, StoreFailed, StoreRefused
from incsnap.kafka.client_settings import ClientSettings
from incsnap.planner import key_sources
from incsnap.planner.key_sources import is_in_bucket, keys_of
from incsnap.snapshot.commands import ChosenRows
from lab.object_store import ObjectStore


@pytest.mark.parametrize("value", ["[5]", '{"id":5}'])
def test_a_key_with_a_list_or_an_object_is_refused(value: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text(f'{{"id":5}}\n{{"id":{value}}}\n')
    with pytest.raises(KeyRefused, match=r"id of the key .* is a list or an object"):
        list(keys_of(ChosenRows(files=str(file)), ClientSettings("unused")))


@pytest.mark.parametrize("number", ["1e999999999", "1e99999999999999999999"])
def test_a_key_with_a_number_of_any_other_size_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text(f'{{"id":{number}}}\n')
    with pytest.raises(KeyRefused):
        list(keys_of(ChosenRows(files=str(file)), ClientSettings("unused")))


@pytest.mark.parametrize("form", ["{}", "file:{}"])
def test_a_file_that_is_missing_is_named(form: str, tmp_path: Path) -> None:
    path = form.format(tmp_path / "none.jsonl")
    with pytest.raises(
        KeyRefused, match=r"the keys in .*none\.jsonl cannot be read: there is no such file or folder"
    ) as refused:
        list(keys_of(ChosenRows(files=path), ClientSettings("unused")))
    assert path in str(refused.value)


def test_a_list_of_too_many_keys_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sources, "MAX_KEYS", 3)
    file = tmp_path / "keys.jsonl"
    file.write_text('{"id":5}\n' * 3)
    chosen = ChosenRows(files=str(file))
    assert list(keys_of(chosen, ClientSettings("unused"))) == ['{"id":5}'] * 3

    file.write_text('{"id":5}\n' * 4)
    with pytest.raises(KeyRefused, match="the list has more than 3 keys: send several signals"):
        list(keys_of(chosen, ClientSettings("unused")))


def test_a_key_with_half_a_character_is_refused_and_named(tmp_path: Path) -> None:
    file = tmp_path / "keys.jsonl"
    file.write_text('{"name":"a"}\n{"name":"\\ud800"}\n')
    with pytest.raises(KeyRefused, match=r"the key .*ud800.* holds half a character") as refused:
        list(keys_of(ChosenRows(files=str(file)), ClientSettings("unused")))
    assert str(refused.value).isascii()


@pytest.mark.parametrize("form", ["{}", "file:{}", "{}/"])
def test_hidden_files_and_folders_have_no_keys(form: str, tmp_path: Path) -> None:
    """Spark writes into _temporary first, and .crc files beside the data. The folder itself may have any name."""
    folder = tmp_path / "_keys"
    for number, name in enumerate(("part-0", "in/part-1", "_temporary/0/part-0", ".x/part-2", "in/_y", "in/.part.crc")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'{{"id":{number}}}')
    path = form.format(folder)
    assert set(keys_of(ChosenRows(files=path), ClientSettings("unused"))) == {'{"id":0}', '{"id":1}'}


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
def test_a_local_file_has_a_path_or_a_uri_with_one_slash_or_three(form: str, tmp_path: Path) -> None:
    file = tmp_path / "two words.jsonl"
    file.write_text('{"id":5}\n')
    path = str(file) if form == "{}" else form.format(str(file).replace(" ", "%20"))
    assert list(keys_of(ChosenRows(files=path), ClientSettings("unused"))) == ['{"id":5}']


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
@pytest.mark.parametrize("name", ["keys#2.jsonl", "keys?.jsonl", "a;b=c#d?e.jsonl"])
def test_a_local_name_may_have_characters_that_end_a_path_on_the_web(form: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text('{"id":5}\n')
    assert list(keys_of(ChosenRows(files=form.format(file)), ClientSettings("unused"))) == ['{"id":5}']


def test_a_uri_with_an_access_of_its_own_is_read_by_pyarrow(bucket_folder: str, object_store: ObjectStore) -> None:
    Files(bucket_folder).write("given.jsonl", b'{"id":7}')
    set_access(bucket_folder, StoreAccess())  # no access by the settings
    folder, own = bucket_folder.removeprefix("s3a://"), f"{object_store.access_key}:{object_store.secret_key}"
    query = f"scheme=http&region=us-east-1&endpoint_override={object_store.endpoint.removeprefix('http://')}"

    def keys(name: str) -> list[str]:
        return list(keys_of(ChosenRows(files=f"s3://{own}@{folder}/{name}?{query}"), ClientSettings("unused")))

    assert keys("given.jsonl") == ['{"id":7}']
    with pytest.raises(KeyRefused, match="cannot be read") as refused:
        keys("none.jsonl")
    assert object_store.secret_key not in str(refused.value)
    assert [is_in_bucket(f"{each}://b/k?region=x") for each in ("s3", "s3a")] == [False, True]
    assert is_in_bucket("s3://b/k")


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
    with pytest.raises(KeyRefused, match=r"the keys in s3a://.*/none cannot be read: there is no such file or folder"):
        keys("none")


@pytest.mark.parametrize(
    "uri",
    [
        "s3a://AKIA:secret@bucket/keys.jsonl",
        "s3n://AKIA:secret@bucket/keys.jsonl",
        "s3://bucket/keys.jsonl?access_key=AKIA&secret_key=secret&unknown=1",
        "unknown://AKIA:secret@host/keys.jsonl?a=secret",
    ],
)
def test_no_message_shows_the_login_of_a_uri(uri: str) -> None:
    with pytest.raises(KeyRefused, match=r"keys\.jsonl") as refused:
        list(keys_of(ChosenRows(files=uri), ClientSettings("unused")))
    assert "secret" not in str(refused.value).replace("secret_key", "")


def test_a_store_that_does_not_answer_is_told_from_keys_that_cannot_be_read(
    bucket_folder: str, object_store: ObjectStore, tmp_path: Path
) -> None:
    """A list is asked for again if its store is away, and refused if its keys are broken."""
    broken = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([{"id": number} for number in range(3)]), broken)
    torn = b"PAR1" + broken.getvalue()[40:]
    files = Files(bucket_folder)
    files.write("torn.parquet", torn)
    (tmp_path / "torn.parquet").write_bytes(torn)
    own = f"{object_store.access_key}:{object_store.secret_key}"

    def keys(place: str) -> list[str]:
        return list(keys_of(ChosenRows(files=place), ClientSettings("unused")))

    for place in (f"{bucket_folder}/torn.parquet", str(tmp_path / "torn.parquet"), str(tmp_path / ("x" * 300))):
        with pytest.raises(KeyRefused, match="cannot be read"):
            keys(place)
    with pytest.raises(ServerUnreachable, match=r"cannot be read now: .*NETWORK_CONNECTION"):
        keys(f"s3://{own}@bucket/keys.jsonl?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:1")
    object_store.fail({"method": "*", "key": "torn", "times": 1000, "status": 503})
    with pytest.raises(StoreFailed, match="SlowDown"):
        keys(f"{bucket_folder}/torn.parquet")
    object_store.fail()
    wrong = {**object_store.properties(""), "spark.hadoop.fs.s3a.secret.key": "wrong"}
    set_access(bucket_folder, store_access(bucket_folder, wrong, {}))
    with pytest.raises(StoreRefused, match="refused"):
        keys(f"{bucket_folder}/torn.parquet")


@pytest.mark.parametrize(
    ("text", "kind"), [("Unable to load libjvm", KeyRefused), ("HDFS connection failed", ServerUnreachable)]
)
def test_a_library_that_is_missing_is_no_server_that_is_away(
    text: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: str) -> None:
        raise OSError(text)

    monkeypatch.setattr(key_sources, "_in_folder", fails)  # pyarrow's classes take no other methods
    with pytest.raises(kind, match=text):
        list(keys_of(ChosenRows(files="hdfs://names:1/keys"), ClientSettings("unused")))
