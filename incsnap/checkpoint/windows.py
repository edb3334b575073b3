"""Files with windows: rows that a chunk reader has read and that later batches send.

    windows/<window>/<token>.arrow    one record batch for each bucket and part
    windows/<window>/manifest.json    a `ChunkResult`, written last: names the rows' file, or says why there are none
    windows/<window>/begun            empty: a reader has begun with the window
    discards/<batch>/<bucket>.arrow   keys that the events of a batch have overtaken, one record batch for each table

Each attempt to read a chunk writes its own file. The manifest names one file, and the offset repeats the name when it
releases the window. So a task that was given up but still runs cannot replace rows that were already judged.

The rows of a window are forced to the disk before its manifest is written. So a manifest proves that the rows exist,
also after a power cut. Nobody waits for a reader. Discards are forced to the disk as well: a lost one would bring back
a stale row.
"""

from __future__ import annotations

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
from incsnap.snapshot.window import ChunkResult

_log = logging.getLogger(__name__)
_KEYS = pa.schema([("key", pa.binary())])


class CheckpointDamaged(SinkError):
    """An error: a file that was written before its batch ended is missing or torn."""

    hint = (
        "The checkpoint directory is damaged: files beneath checkpoint.location/incsnap were deleted or lost."
        " Start with a new checkpoint.location and signal execute-snapshot for the tables."
    )
    resumable = False


def required_batch(files: Files, file: str, name: str, description: str) -> pa.RecordBatch:
    """Return the record batch `name` of a packed file.

    Raise CheckpointDamaged if it is missing or torn. `description` says in the message what is missing.
    """
    content = files.opened(file)
    try:
        batch = None if content is None else unpack(content, name)
    except pa.ArrowInvalid:
        batch = None
    if batch is None:
        raise CheckpointDamaged(f"{files.path(file)} lacks {description}")
    return batch


class WindowBuffers:
    """The windows of one checkpoint. It can be pickled. Several tasks may call its methods at once."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._files = Files(root)
        #: Tables with keys in a discards file, by batch and bucket. A task reads the list once for all tables.
        self._changed: dict[tuple[int, int], frozenset[str]] = {}

    def __reduce__(self) -> tuple[type[WindowBuffers], tuple[str]]:
        return type(self), (self.root,)

    @property
    def files(self) -> Files:
        """The files that the windows are among."""
        return self._files

    @property
    def refused(self) -> RefusedRecords:
        """The files with records that batches leave out because of their size, in the same checkpoint."""
        return RefusedRecords(self._files)

    # -- windows -----------------------------------------------------------------------------------------------------

    def write_window(self, window_id: str, by_bucket: Mapping[int, pa.RecordBatch], parts: int = 1) -> str:
        """Write the rows (`RECORDS`) of each bucket and return the file's name.

        Each bucket's rows are cut into `parts` parts with about equal numbers of rows. Buckets without rows may be
        missing.
        """
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
        """Return the bucket's rows in these parts, or [] if it has none.

        Raise CheckpointDamaged if the file is missing or torn.
        """
        content = self._files.opened(f"windows/{file}")
        if content is None:
            raise CheckpointDamaged(f"The rows of a window are gone: {self._files.path('windows')}/{file}")
        try:
            return unpack_all(content, [_part_name(bucket, part) for part in parts])
        except pa.ArrowInvalid as problem:
            raise CheckpointDamaged(f"{self._files.path('windows')}/{file} is torn: {problem}") from problem

    def write_begun(self, window_id: str) -> None:
        """Record that a reader has begun with the window, for the next run of the job."""
        self._files.write(f"windows/{_window(window_id)}/begun", b"")

    def has_begun(self, window_id: str) -> bool:
        """Return True if a reader has begun with the window."""
        return self._files.exists(f"windows/{_window(window_id)}/begun")

    def write_manifest(self, window_id: str, result: ChunkResult) -> None:
        """Write the window's manifest."""
        self._files.write_json(f"windows/{_window(window_id)}/manifest.json", to_json(ChunkResult, result))

    def read_manifest(self, window_id: str) -> ChunkResult | None:
        """Return the window's manifest, or None if it is missing or torn.

        In both cases the chunk counts as not read.
        """
        try:
            content = self._files.read_json(f"windows/{_window(window_id)}/manifest.json")
            return None if content is None else from_json(ChunkResult, content)
        except ValueError:
            _log.warning("The manifest of window %s cannot be read; its chunk is read again", window_id)
            return None

    def delete(self, window_id: str) -> None:
        """Delete the files of a window."""
        self._files.delete_folder(f"windows/{_window(window_id)}")

    def delete_orphans(self, keep: Collection[str]) -> list[str]:
        """Delete windows that the offset does not know, and return their ids.

        Call it at a start, before any task runs.
        """
        known = {_window(window) for window in keep}
        orphans = [name for name in self._files.names("windows") if name not in known]
        for name in orphans:
            self._files.delete_folder(f"windows/{name}")
        return sorted(unquote(name) for name in orphans)

    # -- discards ----------------------------------------------------------------------------------------------------

    def write_discards(self, batch: int, bucket: int, keys: Mapping[str, pa.Array]) -> None:
        """Write the overtaken keys by table, forced to the disk. Call it before the batch's transaction commits.

        Tables without keys are left out: hundreds of tables may be held, and few of them have changed.
        """
        batches = {
            table: pa.record_batch([table_keys], schema=_KEYS) for table, table_keys in keys.items() if len(table_keys)
        }
        self._changed.pop((batch, bucket), None)
        self._files.write(_discards(batch, bucket), packed(batches), durable=True)

    def read_discards(self, batch: int, bucket: int, table: str) -> pa.Array:
        """Return the keys of the table that the batch has written for the bucket.

        Raise CheckpointDamaged if the file is missing or torn.
        """
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
        """Delete discards of batches below `batch`, which no remaining window needs."""
        for name in self._files.names("discards"):
            if name.isdigit() and int(name) < batch:
                self._files.delete_folder(f"discards/{name}")


def _part_name(bucket: int, part: int) -> str:
    """Return the name of a part's record batch."""
    return f"{bucket}.{part}" if part else str(bucket)


def _borders(rows: int, parts: int) -> list[int]:
    """Return the row numbers at which the rows are cut into parts."""
    return [rows * part // parts for part in range(parts + 1)]


def _window(window_id: str) -> str:
    return quote(window_id, safe="")


def _discards(batch: int, bucket: int) -> str:
    return f"discards/{batch}/{bucket}.arrow"
