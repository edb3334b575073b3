"""Slices that travel in a file: the task gets an equal slice, and no file is left."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from incsnap.binlog.slices import IN_SLICE, Slice, SliceTransactions
from incsnap.checkpoint.files import Files
from incsnap.errors import IncsnapError, StoreFailed
from incsnap.tasks.slice_files import SliceFiles, slice_of
from tests.support.stream_in_memory import contents_of


def slice_of_bytes(count: int) -> Slice:
    transactions = SliceTransactions(np.zeros(1, IN_SLICE), (("uuid", ""),), ("f.1",))
    return Slice(b"x" * count, np.array([0, count]), np.array([1]), np.array([30], np.uint8), transactions)


def test_a_large_slice_travels_by_a_file_of_which_only_the_name_is_sent(tmp_path: Path) -> None:
    files, slice_ = SliceFiles(str(tmp_path)), slice_of_bytes(1 << 20)
    sent = files.put(slice_)
    assert len(pickle.dumps(sent)) < 200
    assert contents_of([slice_of(sent)]) == contents_of([slice_])
    assert contents_of([slice_of(sent)]) == contents_of([slice_])  # Spark may run a task twice


def test_a_small_slice_stays_in_its_part(tmp_path: Path) -> None:
    small, middling = slice_of_bytes(100), slice_of_bytes(1 << 19)
    assert SliceFiles(str(tmp_path)).put(small) is small
    assert SliceFiles(str(tmp_path), shared=True).put(middling) is middling
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError("full"), StoreFailed("the bucket does not answer")])
def test_a_slice_that_cannot_be_written_stays_in_its_part(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    files, slice_ = SliceFiles(str(tmp_path), shared=True), slice_of_bytes(1 << 20)
    monkeypatch.setattr(Files, "write", fail)
    monkeypatch.setattr(Files, "delete", fail)
    assert files.put(slice_) is slice_
    files.forget()


def test_in_a_shared_folder_only_the_planners_own_files_are_unpickled(
    tmp_path: Path,
) -> None:
    slice_ = slice_of_bytes(1 << 20)
    sent = SliceFiles(str(tmp_path), shared=True).put(slice_)
    assert contents_of([slice_of(sent)]) == contents_of([slice_])
    (file,) = (tmp_path / "slices").iterdir()
    file.write_bytes(pickle.dumps(slice_of_bytes(3)))
    with pytest.raises(IncsnapError, match="is not what the planner has written"):
        slice_of(sent)


def test_files_of_a_killed_planner_are_removed_at_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "slices"
    SliceFiles(str(tmp_path), shared=True).put(slice_of_bytes(1 << 20))
    assert len(list(folder.iterdir())) == 1
    SliceFiles(str(tmp_path), shared=True)
    assert not folder.exists() or list(folder.iterdir()) == []


def test_files_of_a_batch_that_is_done_are_deleted_and_their_loss_is_told(tmp_path: Path) -> None:
    files = SliceFiles(str(tmp_path))
    sent = files.put(slice_of_bytes(1 << 20))
    files.forget()
    files.forget()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IncsnapError, match="is gone"):
        slice_of(sent)


def test_where_nothing_can_be_written_the_slice_stays_in_its_part(tmp_path: Path) -> None:
    slice_ = slice_of_bytes(1 << 20)
    (tmp_path / "file").write_bytes(b"")
    assert SliceFiles(str(tmp_path / "file")).put(slice_) is slice_


def test_a_disk_that_is_full_in_the_middle_leaves_no_half_of_a_slice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(what: object, out: object, protocol: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pickle, "dump", full)
    slice_ = replace(slice_of_bytes(1 << 20))
    assert SliceFiles(str(tmp_path)).put(slice_) is slice_
    assert list(tmp_path.iterdir()) == []
