"""Tests of the lists of keys beside a checkpoint: how long their files stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.key_lists import KeyLists, list_at, lists_of, place_of
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request, Scan, SnapshotContext
from incsnap.tables import TableId

_KEYS = ['{"id":1}', '{"id":2}', '{"id":3}']
_TABLE = TableId("shop", "t")


@pytest.fixture
def lists(tmp_path: Path) -> KeyLists:
    return KeyLists(Files(str(tmp_path)))


def test_keys_are_read_by_their_places(lists: KeyLists) -> None:
    name = lists.write(_KEYS)

    assert lists.count(name) == 3
    assert lists.read(name, 1, 3) == _KEYS[1:]


def test_a_list_goes_16_batches_after_the_last_offset_that_names_it(lists: KeyLists) -> None:
    name = lists.write(_KEYS)
    lists.forget({name}, 1)
    for done in range(2, 18):
        lists.forget(set(), done)
    assert lists.read(name, 0, 1) == _KEYS[:1]

    lists.forget(set(), 18)

    with pytest.raises(CheckpointDamaged, match="is gone"):
        lists.count(name)


@pytest.mark.parametrize("first_is_named", [2, 17])
def test_a_list_with_the_keys_of_another_stays_until_an_offset_names_it(lists: KeyLists, first_is_named: int) -> None:
    first = lists.write(_KEYS)
    lists.forget({first}, 1)
    second = lists.write(_KEYS)
    for done in range(2, 60):
        lists.forget({first} if done <= first_is_named else set(), done)

    assert lists.read(second, 0, 3) == _KEYS
    with pytest.raises(CheckpointDamaged, match="is gone"):
        lists.count(first)


def test_a_list_that_is_written_as_one_with_its_keys_is_about_to_go_stays(lists: KeyLists) -> None:
    first = lists.write(_KEYS)
    lists.forget({first}, 1)
    for done in range(2, 18):
        lists.forget(set(), done)

    second = lists.write(_KEYS)
    for done in range(18, 60):
        lists.forget(set(), done)

    assert lists.read(second, 0, 3) == _KEYS


def test_a_list_that_no_offset_has_named_goes_behind_the_next_start(tmp_path: Path) -> None:
    name = KeyLists(Files(str(tmp_path))).write(_KEYS)
    lists = KeyLists(Files(str(tmp_path)))
    for done in range(1, 17):
        lists.forget(set(), done)
    assert lists.count(name) == 3

    lists.forget(set(), 17)

    with pytest.raises(CheckpointDamaged, match="is gone"):
        lists.count(name)


def test_lists_of_waiting_requests_are_needed_too() -> None:
    listed, waits = "a" * 32, "b" * 32
    beside = DataCollection(_TABLE, chosen=ChosenRows(files=place_of(waits)))
    named = DataCollection(_TABLE, chosen=ChosenRows(files="/keys/c.arrow"))
    scan = Scan(1, Request("one", DataCollection(_TABLE, chosen=ChosenRows())), 1, keys=listed)
    snapshot = SnapshotContext(
        scans=(scan,), queue=(Request("two", beside), Request("three", named), Request("four", DataCollection(_TABLE)))
    )

    assert lists_of(snapshot) == {listed, waits}
    assert [list_at(place) for place in (place_of(waits), f"checkpoint:keys/../{waits}.arrow")] == [waits, ""]
