"""Files with the keys that signals choose: `keys/<random name>.arrow`, in blocks of equal size.

The offset names the file of a list while its table is read. A list is written before an offset names it, and stays for
some batches after the last offset that does. A job that begins again asks for the table once more. The request then
names the list in place of the source that the signal had named.

Each search writes a file of its own, also if another list has the same keys. So an offset that names one list says
nothing about the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Sequence
from uuid import uuid4

import pyarrow as pa

from incsnap.checkpoint.files import Files, names_in, packed, unpack_all
from incsnap.checkpoint.gap_files import BESIDE
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.columns.arrow import TextArray
from incsnap.snapshot.context import SnapshotContext

#: Keys of a block. A chunk has at most 5,000 keys, so it reads one block or two.
_BLOCK = 10_000
#: Batches for which a file is kept after the last offset that names it: a power cut may take back some batches.
_KEPT = 16
_PLACE = re.compile(rf"{BESIDE}keys/([0-9a-f]{{32}})\.arrow\Z")
_SCHEMA = pa.schema([("key", pa.string())])


class KeyLists:
    """The lists of keys beside one checkpoint. `files` is incsnap's part of the checkpoint."""

    def __init__(self, files: Files) -> None:
        self._files = files
        #: The thread that searches writes lists, and the planner's thread forgets them. The lock is for both fields.
        self._lock = threading.Lock()
        #: Lists that an offset has named, or that an earlier process has left.
        self._named: set[str] | None = None
        #: List -> the batch after which it can be deleted.
        self._leaving: dict[str, int] = {}

    def write(self, keys: TextArray | Sequence[str]) -> str:
        """Write the keys, forced to the disk, and return the name of the new list."""
        array = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.large_string())
        blocks = {
            str(begin // _BLOCK): pa.record_batch([array.slice(begin, _BLOCK).cast(pa.string())], schema=_SCHEMA)
            for begin in range(0, len(array), _BLOCK)
        }
        name = uuid4().hex
        with self._lock:
            self._known()  # read before the file is there: an earlier process has not left this list
        self._files.write(_path(name), packed(blocks), durable=True)
        return name

    def read(self, name: str, begin: int, end: int) -> list[str]:
        """Return the keys from place `begin` on, without `end`. Raise CheckpointDamaged if the file is gone or torn."""
        first, last = begin // _BLOCK, max(begin, end - 1) // _BLOCK
        content = self._files.opened(_path(name))
        try:
            blocks = [] if content is None else unpack_all(content, [str(block) for block in range(first, last + 1)])
        except pa.ArrowInvalid:
            blocks = []
        if len(blocks) != last - first + 1:
            raise CheckpointDamaged(f"{self._files.path(_path(name))}, a list of chosen keys, is gone or torn")
        keys: list[str] = pa.Table.from_batches(blocks).column(0).slice(begin - first * _BLOCK, end - begin).to_pylist()
        return keys

    def count(self, name: str) -> int:
        """Return how many keys a list has. Raise CheckpointDamaged if the file is gone or torn."""
        content = self._files.opened(_path(name))
        try:
            blocks = None if content is None else sorted(names_in(content), key=int)
            if blocks is None or content is None:
                raise CheckpointDamaged(f"{self._files.path(_path(name))}, a list of chosen keys, is gone")
            return sum(len(block) for block in unpack_all(content, blocks[-1:])) + _BLOCK * max(0, len(blocks) - 1)
        except (pa.ArrowInvalid, ValueError):
            raise CheckpointDamaged(f"{self._files.path(_path(name))}, a list of chosen keys, is torn") from None

    def forget(self, named: Collection[str], done: int) -> None:
        """Delete lists that are not needed any more.

        Batch `done` is done, and the offset at its end names `named`. A list that no offset has named yet stays.
        """
        with self._lock:
            known = self._known()
            known.update(named)
            for name in known:
                if name in named:
                    self._leaving.pop(name, None)
                else:
                    self._leaving.setdefault(name, done + _KEPT)
            for name in [name for name, last in self._leaving.items() if last <= done]:
                self._files.delete(_path(name))
                known.discard(name)
                del self._leaving[name]

    def _known(self) -> set[str]:
        """Return `_named`. The caller holds the lock."""
        if self._named is None:
            self._named = {file.partition(".")[0] for file in self._files.names("keys")}
        return self._named


def place_of(name: str) -> str:
    """Return the place of a written list, for `ChosenRows.files`."""
    return f"{BESIDE}{_path(name)}"


def list_at(place: str) -> str:
    """Return the name of the list that `place_of` has given this place; "" for any other file."""
    match = _PLACE.match(place)
    return match[1] if match is not None else ""


def lists_of(snapshot: SnapshotContext) -> set[str]:
    """Return the written lists of the tables that are read or wait."""
    requests = (*(scan.request for scan in snapshot.scans), *snapshot.queue)
    asked = {list_at(chosen.files) for each in requests if (chosen := each.collection.chosen) is not None}
    return ({scan.keys for scan in snapshot.scans} | asked) - {""}


def _path(name: str) -> str:
    return f"keys/{name}.arrow"
