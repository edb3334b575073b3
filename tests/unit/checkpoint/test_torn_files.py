"""Tests of torn files of windows and overtaken keys: a reader gets the whole content or the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incsnap.checkpoint.windows import CheckpointDamaged, WindowBuffers
from tests.support.kafka import keyed

ROWS = keyed(*((f"k{number}", "v" * 40) for number in range(50)))
KEYS = pa.array([f"k{number}".encode() for number in range(50)], pa.binary())


def cut(content: bytes, at: int) -> bytes:
    return content[:at]


def zeroed(content: bytes, at: int) -> bytes:
    """Return the content with zeros from `at` on: the file's size was on the disk already, but its end was not."""
    return content[:at] + bytes(len(content) - at)


@pytest.mark.parametrize("damage", [cut, zeroed])
@pytest.mark.parametrize("kind", ["window", "discards"])
def test_a_torn_file_is_named_wherever_it_is_torn(
    tmp_path: Path, damage: Callable[[bytes, int], bytes], kind: str
) -> None:
    buffers = WindowBuffers(str(tmp_path))
    if kind == "window":
        path = tmp_path / "windows" / buffers.write_window("w", {0: ROWS})
    else:
        buffers.write_discards(3, 0, {"d.t": KEYS})
        path = tmp_path / "discards" / "3" / "0.arrow"
    whole = path.read_bytes()
    assert read(buffers, path, kind).equals(ROWS if kind == "window" else KEYS)
    for at in [0, 1, 7, 8, *range(16, len(whole) - 10, len(whole) // 40), len(whole) - 10, len(whole) - 1]:
        replacement = path.with_suffix(".new")
        replacement.write_bytes(damage(whole, at))
        replacement.rename(path)
        with pytest.raises(CheckpointDamaged, match=str(path)) as caught:
            read(buffers, path, kind)
        assert "new checkpoint.location" in caught.value.hint


def read(buffers: WindowBuffers, path: Path, kind: str) -> Any:
    if kind == "window":
        (rows,) = buffers.read_window(f"w/{path.name}", 0)
        return rows
    return buffers.read_discards(3, 0, "d.t")
