"""Windows, manifests and discards beside the checkpoint."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import CheckpointDamaged, WindowBuffers
from incsnap.snapshot.window import ChunkResult
from tests.support.kafka import keyed


@pytest.fixture(params=["path", "uri"])
def buffers(request: pytest.FixtureRequest, tmp_path: Path) -> WindowBuffers:
    folder = tmp_path / "a b%20c"
    return WindowBuffers(str(folder) if request.param == "path" else folder.as_uri())


def keys(*values: str) -> pa.Array:
    return pa.array([value.encode() for value in values], pa.binary())


def test_a_window_gives_each_bucket_its_rows(buffers: WindowBuffers) -> None:
    rows = {0: keyed(("a", "1"), ("b", "2")), 7: keyed(("c", "3"))}
    file = buffers.write_window("w/1:2", rows)
    again = pickle.loads(pickle.dumps(buffers))
    for bucket, expected in rows.items():
        assert again.read_window(file, bucket) == [expected]
    assert again.read_window(file, 3) == []


def test_a_window_is_cut_into_parts_that_together_are_its_rows(buffers: WindowBuffers) -> None:
    rows = {0: keyed(*[(str(i), "x") for i in range(10)]), 1: keyed(("z", "1"))}
    file = buffers.write_window("w", rows, parts=4)
    assert [rows.num_rows for rows in buffers.read_window(file, 0, range(4))] == [2, 3, 2, 3]
    for bucket, expected in rows.items():
        all_rows = [rows for part in range(4) for rows in buffers.read_window(file, bucket, [part])]
        assert pa.Table.from_batches(all_rows).to_pylist() == expected.to_pylist()


def test_a_window_without_rows_is_a_window(buffers: WindowBuffers) -> None:
    assert buffers.read_window(buffers.write_window("w", {}), 0) == []


def test_a_second_attempt_leaves_the_rows_of_the_first_alone(buffers: WindowBuffers) -> None:
    first = buffers.write_window("w", {0: keyed(("a", "1"))})
    second = buffers.write_window("w", {0: keyed(("a", "2"))})
    assert first != second
    (rows,) = buffers.read_window(first, 0)
    assert rows.column("value").to_pylist() == [b"1"]


def test_a_lost_or_torn_window_is_damage_and_says_what_to_do(buffers: WindowBuffers) -> None:
    with pytest.raises(CheckpointDamaged, match="gone") as caught:
        buffers.read_window("w/lost.arrow", 0)
    assert "new checkpoint.location" in caught.value.hint
    assert not caught.value.resumable
    file = buffers.write_window("w", {0: keyed(*[(str(i), "x" * 50) for i in range(500)])})
    path = Path(Files(buffers.root).path(f"windows/{file}"))
    whole = path.read_bytes()
    for length in (0, 5, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointDamaged, match="torn"):
            buffers.read_window(file, 0)


def test_a_manifest_comes_back_and_a_torn_one_counts_as_absent(buffers: WindowBuffers) -> None:
    result = ChunkResult(3, high_file="binlog.000002", high_pos=2**33, seconds=0.5)
    assert buffers.read_manifest("w") is None
    buffers.write_manifest("w", result)
    assert buffers.read_manifest("w") == result
    (path,) = Path(Files(buffers.root).path("windows")).glob("w/*.json")
    for torn in (b"", path.read_bytes()[:-3], b"[]", b'{"window_id":"w","reading":{"rows":3}}'):
        path.write_bytes(torn)
        assert buffers.read_manifest("w") is None


def test_discards_are_read_by_batch_bucket_and_table(buffers: WindowBuffers) -> None:
    buffers.write_discards(4, 0, {"d.t": keys("a"), "d.u": keys("x")})
    buffers.write_discards(4, 1, {"d.t": keys("other bucket")})
    buffers.write_discards(5, 0, {"d.t": keys()})
    buffers.write_discards(6, 0, {})
    buffers.write_discards(7, 0, {"d.t": keys("b", "c")})
    discards = [buffers.read_discards(batch, 0, "d.t").to_pylist() for batch in (4, 5, 6, 7)]
    assert discards == [[b"a"], [], [], [b"b", b"c"]]
    assert buffers.read_discards(4, 0, "d.u").to_pylist() == [b"x"]


def test_discards_that_were_lost_are_never_taken_for_none(buffers: WindowBuffers) -> None:
    buffers.write_discards(4, 0, {"d.t": keys("a")})
    with pytest.raises(CheckpointDamaged, match=r"are gone: .*discards/5/0\.arrow"):
        buffers.read_discards(5, 0, "d.t")


def test_a_replay_writes_discards_over_the_first_ones(buffers: WindowBuffers) -> None:
    for _ in range(2):
        buffers.write_discards(4, 0, {"d.t": keys("a")})
    assert buffers.read_discards(4, 0, "d.t").to_pylist() == [b"a"]


def test_old_discards_and_unknown_windows_go(buffers: WindowBuffers) -> None:
    for batch in (3, 4, 11):
        buffers.write_discards(batch, 0, {"d.t": keys(str(batch))})
    buffers.forget_before(4)
    assert [buffers.read_discards(batch, 0, "d.t").to_pylist() for batch in (4, 11)] == [[b"4"], [b"11"]]
    with pytest.raises(CheckpointDamaged):
        buffers.read_discards(3, 0, "d.t")
    kept = buffers.write_window("kept", {0: keyed(("a", "1"))})
    gone = buffers.write_window("gone/1", {0: keyed(("a", "1"))})
    assert buffers.delete_orphans({"kept"}) == ["gone/1"]
    assert buffers.read_window(kept, 0)
    with pytest.raises(CheckpointDamaged):
        buffers.read_window(gone, 0)
    buffers.delete("kept")
    buffers.delete("never was")
    with pytest.raises(CheckpointDamaged):
        buffers.read_window(kept, 0)


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    files = Files(str(tmp_path))
    files.write("f", b"old")

    def fail(stream: object) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        files.write("f", fail)
    content = files.read("f")
    assert content is not None
    assert content.to_pybytes() == b"old"
    assert files.names("") == ["f"]


def test_hundreds_of_held_tables_of_which_one_has_changed_are_told_apart(tmp_path: Path) -> None:
    buffers = WindowBuffers(str(tmp_path))
    tables = [f"db.t{number}" for number in range(300)]
    nothing = pa.array([], pa.binary())
    buffers.write_discards(4, 0, dict.fromkeys(tables, nothing) | {"db.t7": pa.array([b"k"], pa.binary())})
    small = (tmp_path / "discards" / "4" / "0.arrow").stat().st_size
    task = WindowBuffers(str(tmp_path))
    discards = {table: task.read_discards(4, 0, table).to_pylist() for table in tables}

    assert {table: keys for table, keys in discards.items() if keys} == {"db.t7": [b"k"]}
    assert small < 2_000


def test_a_rewritten_window_is_read_as_rewritten(tmp_path: Path) -> None:
    buffers = WindowBuffers(str(tmp_path))
    for keys in ([], [b"k"]):
        buffers.write_discards(4, 0, {"db.t": pa.array(keys, pa.binary())})
        assert buffers.read_discards(4, 0, "db.t").to_pylist() == keys
