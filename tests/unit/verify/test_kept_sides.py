"""Tests of the folder that keeps both sides of a comparison, and of the slices that are compared."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from incsnap.columns.hashing import hash64
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.snapshot.questions import KeyOrder
from incsnap.verify.kept_sides import RECORDS, ROWS, BlockPlaces, KeptRange, KeptSides, held
from incsnap.verify.proof import Low, RowPlace
from incsnap.verify.record_reading import RecordForm, read
from incsnap.verify.side_blocks import table_block, table_columns, topic_block, topic_columns
from incsnap.verify.side_slices import SideSlices, hash_ranges, offsets_of, spread
from incsnap.verify.topic_side import PartitionPart, bytes_column

LOW = Low(GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"), RowPlace(3, 456, 0))
FORM = RecordForm(envelope=True, key_schemas=False, schemas=False)


def keys(numbers: range) -> list[bytes]:
    return [b'{"id":%d}' % number for number in numbers]


def rows_block(numbers: range, seed: int = 1) -> bytes:
    column = pa.array(keys(numbers), pa.binary())
    return table_block([table_columns(column, column, seed)])


def records_block(values: list[tuple[bytes | None, bytes | None]], first: int = 0, seed: int = 1) -> bytes:
    given, texts = (bytes_column([pair[place] for pair in values]) for place in (0, 1))
    offsets = np.arange(first, first + len(values))
    return topic_block([topic_columns(given, offsets, offsets * 10, read(texts, FORM), seed)])


def change(op: str, pos: int, row: str = "{}") -> bytes:
    source = f'"source":{{"snapshot":"false","file":"log.000004","pos":{pos},"row":2}}'
    return f'{{"before":null,"after":{row},{source},"op":"{op}"}}'.encode()


def test_what_was_kept_is_there_for_another_process(tmp_path: Path) -> None:
    ranges = [KeptRange(0), KeptRange(1, KeyOrder(("id",), "print"), None, ("5",)), KeptRange(1, None, ("5",), None)]
    sides = KeptSides.new(tmp_path / "kept", "these tables")
    sides.note_low(LOW)
    sides.note_ranges(ranges)
    sides.note_topics({("orders", 1): 7}, {("orders", 1): 9})
    sides.places.write(ROWS, 1, rows_block(range(5)))
    again = KeptSides.resumed(tmp_path / "kept", "these tables")

    assert (again.seed, again.low, again.ranges, again.topics) == (
        sides.seed,
        LOW,
        tuple(ranges),
        (("orders", 1, 7, 9),),
    )
    assert (again.left(ROWS, 3), again.left(RECORDS, 1)) == ([0, 2], [0])
    with again.block(ROWS, 1) as (batch, facts):
        assert sorted(batch.column("key").to_pylist()) == keys(range(5))
        assert facts.count == 5


def test_a_file_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    sides = KeptSides.new(tmp_path, "these tables")
    sides.places.path(ROWS, 0).with_suffix(".1.part").write_bytes(b"half")

    assert sides.left(ROWS, 1) == [0]


def test_a_task_that_outlives_its_comparison_spoils_no_later_one(tmp_path: Path) -> None:
    earlier = KeptSides.new(tmp_path, "these tables").places
    sides = KeptSides.new(tmp_path, "these tables")
    earlier.write(ROWS, 0, rows_block(range(2)))

    assert sides.left(ROWS, 1) == [0]


def test_nothing_is_resumed_that_is_not_there_or_is_another_comparison(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no comparison that was interrupted"):
        KeptSides.resumed(tmp_path, "these tables")
    KeptSides.new(tmp_path, "these tables")
    with pytest.raises(ConfigError, match="not those of the comparison"):
        KeptSides.resumed(tmp_path, "other tables")


def test_a_new_comparison_removes_the_files_of_the_last_one(tmp_path: Path) -> None:
    KeptSides.new(tmp_path, "these tables").places.write(ROWS, 0, rows_block(range(2)))
    sides = KeptSides.new(tmp_path, "these tables")

    assert (sides.left(ROWS, 1), sides.low, sides.ranges, sides.topics) == ([0], None, None, None)
    sides.remove()
    assert not list(tmp_path.glob("*"))


def test_only_the_user_may_read_what_is_kept(tmp_path: Path) -> None:
    sides = KeptSides.new(tmp_path / "kept", "these tables")
    sides.places.write(ROWS, 0, rows_block(range(2)))

    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "kept").iterdir()}
    assert ((tmp_path / "kept").stat().st_mode & 0o777, modes) == (0o700, {0o600})


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(ConfigError, match="Another process"), held(tmp_path):
        pass
    with held(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with (
        pytest.raises(ConfigError, match="file/kept cannot be written: Not a directory"),
        held(tmp_path / "file" / "kept"),
    ):
        pass
    with pytest.raises(ConfigError, match="file cannot be written: Not a directory"):
        BlockPlaces(str(tmp_path / "file"), 1).write(ROWS, 0, b"")


def test_the_facts_of_a_topic_are_those_of_its_last_event_and_of_all_records(tmp_path: Path) -> None:
    read_row = change("r", 900)
    block = records_block(
        [(b"a", change("c", 70)), (b"b", change("u", 50)), (None, read_row), (b"a", None), (b"b", b"x")]
    )
    sides = KeptSides.new(tmp_path, "")
    sides.places.write(RECORDS, 0, block)

    with sides.block(RECORDS, 0) as (_, facts):
        assert (facts.count, facts.unreadable) == (4, 1)
        assert (facts.last, facts.snapshot) == (RowPlace(4, 50, 2), RowPlace(4, 900, 2))


def test_slices_have_each_key_once_and_its_records_in_their_order(tmp_path: Path) -> None:
    sides = KeptSides.new(tmp_path, "")
    listed = keys(range(50))
    for number in range(3):
        values: list[tuple[bytes | None, bytes | None]] = [(key, change("c", 100 + number)) for key in listed]
        sides.places.write(RECORDS, number, records_block([*values, *values], first=200 * number))
    seen: dict[bytes, list[int]] = {}
    for bounds in hash_ranges(7):
        slices = SideSlices(sides, RECORDS, [0, 1, 2], bounds)
        hashes, offsets = slices.column("key_hash"), slices.column("offset")
        assert slices.counts.sum() == len(hashes)
        assert all(bounds[0] <= each <= bounds[1] for each in hashes.tolist())
        key_bytes = slices.keys(np.arange(len(hashes)))
        assert hash64(pa.array(key_bytes, pa.binary()), 1).tolist() == hashes.tolist()
        for key, offset in zip(key_bytes, offsets.tolist(), strict=True):
            seen.setdefault(key, []).append(offset)

    expected = {
        key: [200 * part + 50 * half + at for part in range(3) for half in (0, 1)] for at, key in enumerate(listed)
    }
    assert seen == expected


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_ranges_of_hashes_are_all_hashes(count: int) -> None:
    ranges = hash_ranges(count)

    assert (ranges[0][0], ranges[-1][1], len(ranges)) == (0, (1 << 64) - 1, count)
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(ranges))


def test_the_offsets_of_chosen_keys_are_found(tmp_path: Path) -> None:
    sides = KeptSides.new(tmp_path, "")
    listed = keys(range(30))
    values: list[tuple[bytes | None, bytes | None]] = [(key, None) for key in [*listed, *listed[:10]]]
    sides.places.write(RECORDS, 0, records_block(values))
    chosen = np.sort(hash64(pa.array([listed[3], listed[20], b"none"], pa.binary()), 1))

    with sides.block(RECORDS, 0) as (batch, _):
        assert offsets_of(batch, chosen).tolist() == [3, 20, 33]
        assert offsets_of(batch, chosen[:0]).tolist() == []


def test_offsets_that_lie_near_each_other_are_read_together() -> None:
    part = PartitionPart("orders", 2, 0, 1_000)
    parts = spread(part, np.array([5, 8, 500, 520, 999]), 20)

    assert [(each.begin, each.end, offsets.tolist()) for each, offsets in parts] == [
        (5, 9, [5, 8]), (500, 521, [500, 520]), (999, 1_000, [999])
    ]  # fmt: skip
    assert spread(part, np.array([], np.int64), 20) == []
