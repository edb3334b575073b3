"""Windows beside the checkpoint: rows that a reader has left wait here until the sink tasks of later batches emit them.

    windows/<window>/<token>.arrow    one record batch a bucket and part
    windows/<window>/manifest.json    its ``Reading``, written last: names the rows' file, or says why there are none
    discards/<batch>/<bucket>.arrow   keys that the events of a batch have overtaken, a record batch a table

Each attempt to read a chunk writes a file of its own: the manifest names one, the offset repeats that name when it
releases the window, so a task that was given up but still runs cannot exchange the rows that were judged.

A window's rows are forced to the disk before its manifest is written, so that a manifest says that the rows are there,
also after a power cut; nobody waits for a reader. Discards are forced because a lost one would bring back a stale row.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from urllib.parse import quote, unquote
from uuid import uuid4

import pyarrow as pa

from incsnap.checkpoint.files import Files, names_in, packed, unpack, unpack_all
from incsnap.checkpoint.refused import RefusedRecords
from incsnap.errors import SinkError
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.window import Reading

_log = logging.getLogger(__name__)
_KEYS = pa.schema([("key", pa.binary())])


class CheckpointDamaged(SinkError):
    """A file that was written before its batch ended is gone or torn."""

    hint = (
        "The checkpoint directory is damaged: files beneath checkpoint.location/incsnap were deleted or lost."
        " Start with a new checkpoint.location and signal execute-snapshot for the tables."
    )
    resumable = False


def required_batch(files: Files, file: str, name: str, description: str) -> pa.RecordBatch:
    """The record batch ``name`` of a packed file that was forced to the disk. Raises ``CheckpointDamaged``, which says
    by ``description`` what is missing."""
    content = files.opened(file)
    try:
        batch = None if content is None else unpack(content, name)
    except pa.ArrowInvalid:
        batch = None
    if batch is None:
        raise CheckpointDamaged(f"{files.path(file)} lacks {description}")
    return batch


class WindowBuffers:
    """All windows of one checkpoint. Pickles. Every method may be called by several tasks at once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._files = Files(root)
        #: Tables that a file of discards has keys of, by batch and bucket: looked at once by a task, for all tables.
        self._changed: dict[tuple[int, int], frozenset[str]] = {}

    def __reduce__(self) -> tuple[type[WindowBuffers], tuple[str]]:
        return type(self), (self.root,)

    @property
    def refused(self) -> RefusedRecords:
        """The records that batches leave out."""
        return RefusedRecords(self._files)

    # -- windows -----------------------------------------------------------------------------------------------------

    def write_window(self, window_id: str, by_bucket: Mapping[int, pa.RecordBatch], parts: int = 1) -> str:
        """Writes the rows (``RECORDS``) by bucket, each cut into so many parts of about the same number of rows;
        buckets without rows may be left out. Returns the file's name."""
        file = f"{_window(window_id)}/{uuid4().hex}.arrow"
        named_parts = {
            _part_name(bucket, part): records.slice(begin, end - begin)
            for bucket, records in by_bucket.items()
            for part, (begin, end) in enumerate(pairwise(_borders(records.num_rows, parts)))
            if end > begin
        }
        self._files.write(f"windows/{file}", packed(named_parts), durable=True)
        return file

    def read_window(self, file: str, bucket: int, parts: Iterable[int] = (0,)) -> list[pa.RecordBatch]:
        """The bucket's rows of these parts; [] when it has none."""
        content = self._files.opened(f"windows/{file}")
        if content is None:
            raise CheckpointDamaged(f"The rows of a window are gone: {self._files.path('windows')}/{file}")
        try:
            return unpack_all(content, [_part_name(bucket, part) for part in parts])
        except pa.ArrowInvalid as problem:
            raise CheckpointDamaged(f"{self._files.path('windows')}/{file} is torn: {problem}") from problem

    def write_begun(self, window_id: str) -> None:
        """Note that a reader has begun with the window, for the next life of the job."""
        self._files.write(f"windows/{_window(window_id)}/begun", b"")

    def has_begun(self, window_id: str) -> bool:
        """Whether a reader has noted that it begins with the window."""
        return self._files.exists(f"windows/{_window(window_id)}/begun")

    def write_manifest(self, window_id: str, reading: Reading) -> None:
        self._files.write(f"windows/{_window(window_id)}/manifest.json", json.dumps(to_json(Reading, reading)).encode())

    def read_manifest(self, window_id: str) -> Reading | None:
        """The window's manifest; ``None`` when there is none yet, or a torn one: either way the chunk counts as not
        read."""
        content = self._files.read(f"windows/{_window(window_id)}/manifest.json")
        if content is None:
            return None
        try:
            return from_json(Reading, json.loads(content.to_pybytes()))
        except ValueError:
            _log.warning("The manifest of window %s cannot be read; its chunk is read again", window_id)
            return None

    def delete(self, window_id: str) -> None:
        self._files.delete_folder(f"windows/{_window(window_id)}")

    def delete_orphans(self, keep: Collection[str]) -> list[str]:
        """Deletes windows that the offset does not know, and returns their ids; to be called at a start, before any
        task."""
        known = {_window(window) for window in keep}
        orphans = [name for name in self._files.names("windows") if name not in known]
        for name in orphans:
            self._files.delete_folder(f"windows/{name}")
        return sorted(unquote(name) for name in orphans)

    # -- discards ----------------------------------------------------------------------------------------------------

    def write_discards(self, batch: int, bucket: int, keys: Mapping[str, pa.Array]) -> None:
        """Keys by table, for good: to be called before the batch's transaction commits. Hundreds of tables may be held
        of which few have changed: tables without keys are left out."""
        batches = {
            table: pa.record_batch([table_keys], schema=_KEYS) for table, table_keys in keys.items() if len(table_keys)
        }
        self._changed.pop((batch, bucket), None)
        self._files.write(_discards(batch, bucket), packed(batches), durable=True)

    def read_discards(self, batch: int, bucket: int, table: str) -> pa.Array:
        """The keys of the table that the batch wrote down for the bucket."""
        if table not in self._changed.get((batch, bucket), {table}):
            return pa.array([], pa.binary())
        name = _discards(batch, bucket)
        content = self._files.read(name)
        if content is None:
            raise CheckpointDamaged(f"The overtaken keys are gone: {self._files.path(name)}")
        try:
            self._changed[batch, bucket] = names_in(content)
            keys = unpack(content, table)
        except pa.ArrowInvalid as problem:
            raise CheckpointDamaged(f"{self._files.path(name)} is torn: {problem}") from problem
        return pa.array([], pa.binary()) if keys is None else keys.column("key")

    def forget_before(self, batch: int) -> None:
        """Drops discards of batches below ``batch``: no window that is left asks for them."""
        for name in self._files.names("discards"):
            if name.isdigit() and int(name) < batch:
                self._files.delete_folder(f"discards/{name}")


def _part_name(bucket: int, part: int) -> str:
    return f"{bucket}.{part}" if part else str(bucket)


def _borders(rows: int, parts: int) -> list[int]:
    return [rows * part // parts for part in range(parts + 1)]


def _window(window_id: str) -> str:
    return quote(window_id, safe="")


def _discards(batch: int, bucket: int) -> str:
    return f"discards/{batch}/{bucket}.arrow"
