"""The places of a connector's offset: files of a worker, and what Connect's REST interface prints."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.java_objects import read_object
from incsnap.takeover.hand_back import HandBack
from incsnap.takeover.java_writing import write_map
from incsnap.takeover.offset_sources import find_offset
from incsnap.takeover.offset_targets import to_file
from tests.support.job_settings import loaded_with

_OFFSET = {"file": "binlog.000001", "pos": 4, "gtids": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"}


@pytest.fixture
def settings() -> Settings:
    return loaded_with(topic__prefix="shop").settings


def connector(folder: Path, **more: str) -> str:
    """Write a connector's file and return its path."""
    file = folder / "connector.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in {"name": "inventory", **more}.items()))
    return str(file)


def key(name: str, server: str) -> bytes:
    """Return the key of an offset, as Connect writes it."""
    return json.dumps([name, {"server": server}], separators=(",", ":")).encode()


def test_the_answer_of_rest_is_read(settings: Settings, tmp_path: Path) -> None:
    given = tmp_path / "offsets.json"
    given.write_text(json.dumps({"offsets": [{"partition": {"server": "shop"}, "offset": _OFFSET}]}))

    kept = find_offset(settings, connector(tmp_path), None, str(given))

    # The answer does not name the connector. The checks whether it runs need its name.
    assert (kept.connector, kept.content) == ("inventory", _OFFSET)


def test_references_in_the_files_are_resolved(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, worker = tmp_path / "offsets", tmp_path / "worker.properties"
    offsets.write_bytes(write_map({key("inventory", "shop"): json.dumps(_OFFSET).encode(), key("b", "shop"): b"{}"}))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    monkeypatch.setenv("NAME", "inventory")
    worker.write_text("offset.storage.file.filename=${env:FOLDER}/offsets\nsecret=${vault:a:b}\n")

    kept = find_offset(settings, connector(tmp_path, name="${env:NAME}"), str(worker), None)

    assert (kept.connector, kept.content) == ("inventory", _OFFSET)


def test_the_file_of_a_standalone_worker_is_found_by_the_workers_file(settings: Settings, tmp_path: Path) -> None:
    offsets, worker = tmp_path / "offsets", tmp_path / "worker.properties"
    other = json.dumps({"pos": 9}).encode()
    offsets.write_bytes(
        write_map({key("inventory", "shop"): json.dumps(_OFFSET).encode(), key("other", "shop"): other, b"x": b"y"})
    )
    worker.write_text(f"offset.storage.file.filename={offsets}\n")

    kept = find_offset(settings, connector(tmp_path), str(worker), None)

    assert (kept.connector, kept.content) == ("inventory", _OFFSET)


def test_an_offset_of_another_prefix_is_refused_and_named(settings: Settings, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.write_bytes(write_map({key("inventory", "stock"): b"{}", key("gone", "shop"): None}))

    with pytest.raises(ConfigError, match=r"no offset of the connector inventory .* shop.*inventory .*stock"):
        find_offset(settings, connector(tmp_path), None, str(offsets))


def test_no_place_is_refused_with_what_to_give(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither file says") as caught:
        find_offset(settings, connector(tmp_path), None, None)
    assert "--offsets" in caught.value.hint


@pytest.mark.parametrize("content", [b"{}", b"[1]", b"\xac\xed\x00\x05t\x00\x01x", b"\xac\xed\x00"])
def test_a_file_of_another_form_is_refused(settings: Settings, tmp_path: Path, content: bytes) -> None:
    offsets = tmp_path / "offsets"
    offsets.write_bytes(content)

    with pytest.raises(ConfigError, match="has no offsets of Kafka Connect"):
        find_offset(settings, connector(tmp_path), None, str(offsets))


def test_an_offset_is_written_beside_those_of_other_connectors(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.write_bytes(write_map({b'["inventory", {"server": "shop"}]': b"old", key("other", "shop"): b"other"}))

    to_file(offsets, "inventory", HandBack("shop", _OFFSET, ()))

    written = read_object(offsets.read_bytes())
    assert written.keys() == {key("inventory", "shop"), key("other", "shop")}
    assert json.loads(written[key("inventory", "shop")]) == _OFFSET


def test_a_file_keeps_its_mode_and_its_owner_and_a_link_stays_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets, link, owners = tmp_path / "offsets", tmp_path / "link", list[tuple[int, int]]()
    offsets.write_bytes(write_map({key("other", "shop"): b"other"}))
    offsets.chmod(0o660)
    link.symlink_to(offsets)
    monkeypatch.setattr(os, "chown", lambda _, *owner: owners.append(owner))

    to_file(link, "inventory", HandBack("shop", _OFFSET, ()))

    assert link.is_symlink()
    assert len(read_object(offsets.read_bytes())) == 2
    assert stat.S_IMODE(offsets.stat().st_mode) == 0o660
    assert owners == [(os.getuid(), offsets.stat().st_gid)]


def test_a_file_whose_owner_cannot_be_kept_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = tmp_path / "offsets"
    offsets.write_bytes(before := write_map({key("other", "shop"): b"other"}))
    monkeypatch.setattr(os, "chown", Mock(side_effect=PermissionError(1, "Operation not permitted")))

    with pytest.raises(ConfigError, match="cannot be written with its owner") as refused:
        to_file(offsets, "inventory", HandBack("shop", _OFFSET, ()))

    assert "as the user of the worker" in refused.value.hint
    assert offsets.read_bytes() == before
    assert list(tmp_path.iterdir()) == [offsets]


def test_a_key_is_written_in_the_bytes_of_connects_converter(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"

    to_file(offsets, "größe-表", HandBack("größe", _OFFSET, ()))

    # Connect looks a key up by its bytes.
    assert list(read_object(offsets.read_bytes())) == ['["größe-表",{"server":"größe"}]'.encode()]


def test_the_only_connector_of_a_given_file_may_have_another_name(settings: Settings, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.write_bytes(write_map({key("stock", "shop"): json.dumps(_OFFSET).encode()}))

    assert find_offset(settings, connector(tmp_path), None, str(offsets)).connector == "stock"


def test_the_offset_of_debezium_server_is_read_and_written_under_its_name(settings: Settings, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"  # Debezium Server calls its connector by its sink
    other = {key("other", "stock"): b"{}"}
    offsets.write_bytes(write_map({key("kafka", "shop"): json.dumps(_OFFSET).encode(), **other}))
    file = connector(tmp_path, **{"offset.storage.file.filename": str(offsets)})
    assert find_offset(settings, file, None, None).connector == "kafka"

    to_file(offsets, "inventory", HandBack("shop", {**_OFFSET, "pos": 9}, ()))

    written = read_object(offsets.read_bytes())
    assert written.keys() == {key("kafka", "shop"), *other}
    assert find_offset(settings, file, None, None).content["pos"] == 9


def test_a_connector_keeps_its_name_beside_another_one_that_is_called_kafka(settings: Settings, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    kept = {key("kafka", "shop"): b'{"pos": 1}', key("inventory", "shop"): b'{"pos": 2}'}
    offsets.write_bytes(write_map(kept))
    assert find_offset(settings, connector(tmp_path), None, str(offsets)).content == {"pos": 2}

    to_file(offsets, "inventory", HandBack("shop", _OFFSET, ()))

    assert read_object(offsets.read_bytes())[key("kafka", "shop")] == b'{"pos": 1}'


def test_an_empty_file_is_new_and_has_no_offsets(settings: Settings, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.touch()
    with pytest.raises(ConfigError, match="has no offset of the connector inventory") as refused:
        find_offset(settings, connector(tmp_path), None, str(offsets))
    assert "It has those of: no connector" in refused.value.message

    to_file(offsets, "inventory", HandBack("shop", _OFFSET, ()))

    assert find_offset(settings, connector(tmp_path), None, str(offsets)).content == _OFFSET
