"""The versions of a table's rows since a GTID set, from the binlog: before and after each change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pymysql.connections import Connection

from incsnap.binlog.protocol.dump_connection import connect_beside
from incsnap.binlog.slices import Slice
from incsnap.binlog.tail import Tail
from incsnap.columns.arrow import StructArray
from incsnap.config.settings import Settings
from incsnap.errors import BinlogError, ConfigError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql.catalog import charsets
from incsnap.mysql.session import dial
from incsnap.snapshot.offset import TopicLayout
from incsnap.tables import TableShape
from incsnap.tasks.slice_records import change_blocks
from incsnap.verify.changed_keys import TableChanged

#: Bytes of binlog that are decoded at once.
_BATCH_BYTES = 16 << 20
#: Most bytes of versions, which the driver holds.
_MOST_BYTES = 512 << 20
#: Seconds without progress after which the server counts as lost.
_SILENCE_SECONDS = 60.0


def row_versions(
    connection: Connection[Any], settings: Settings, shape: TableShape, since: GtidSet, high: tuple[str, int]
) -> pa.Table:
    """Return the versions of the rows that changed behind `since` and before `high`.

    `settings` are those of a DataFrame of the table with both images. The columns: `number`, which grows with the
    binlog; `key`, a row with the key's columns; `row`, the version, null where the table has no such row. Each change
    has two versions, one before and one after it.

    Raise TableChanged if a statement changed the table. Raise ConfigError if too much changed. Raise BinlogError if the
    server sends nothing.
    """
    parts: list[pa.Table] = []
    count = size = 0
    for images in _images(connection, settings, shape, since, high):
        before, after = images.flatten()
        numbers = np.arange(count, count + 2 * len(images))
        count += 2 * len(images)
        # A row that changed its key is a deletion and an insertion. So both images of an update have one key.
        keys = pc.if_else(after.is_valid(), after, before)
        both = [pa.concat_arrays([keys, keys]), pa.concat_arrays([before, after])]
        part = pa.table(
            [pa.array(np.concatenate([numbers[::2], numbers[1::2]])), *both], names=["number", "key", "row"]
        )
        parts.append(part)
        size += part.nbytes
        if size > _MOST_BYTES:
            raise ConfigError(
                f"{shape.id} has changed by more than {_MOST_BYTES >> 20} MiB since gtid_set",
                "Compare a newer DataFrame with its newer gtid_set.",
            )
    return pa.concat_tables(parts) if parts else pa.table({"number": [], "key": [], "row": []})


def _images(
    connection: Connection[Any], settings: Settings, shape: TableShape, since: GtidSet, high: tuple[str, int]
) -> Iterator[StructArray]:
    """Yield structs of `before` and `after`, in the order of the binlog."""
    of_server = tuple(sorted(charsets(connection).items()))
    layout = TopicLayout(1, {})
    for slice_ in _slices(settings, shape, since, high):
        known = slice_.with_definitions((shape,))
        for _, _, table, records in change_blocks(known, of_server, layout, settings, 0):
            value = records.column("value")
            if table == shape.id and pa.types.is_struct(value.type):
                yield value


def _slices(settings: Settings, shape: TableShape, since: GtidSet, high: tuple[str, int]) -> Iterator[Slice]:
    """Yield the binlog from `since` to `high` in slices. Raise TableChanged if a statement changed the table."""
    start = StreamPosition(since, "", 0)
    beside, mysql = partial(connect_beside, partial(dial, settings.mysql)), settings.mysql
    with closing(Tail(beside, mysql.server_id, start, shape.id.__eq__, None, 4 * _BATCH_BYTES)) as tail:
        deadline = time.monotonic() + _SILENCE_SECONDS
        while not start.reached(*high):
            step = tail.advance(start, _BATCH_BYTES, until=high, wait_seconds=1.0)
            if step.end != start:
                deadline = time.monotonic() + _SILENCE_SECONDS
            elif time.monotonic() > deadline:
                raise BinlogError(f"the server does not send the binlog up to {high[0]}:{high[1]}", "Try again.")
            if changed := next((each for each in step.changes if each.touches(shape.id)), None):
                raise TableChanged(
                    f"a statement changed {shape.id} after gtid_set: {changed.sql[:200]}",
                    "Compare a newer DataFrame with its newer gtid_set.",
                )
            yield from tail.slices(start, step.end, 1)
            tail.forget(step.end)
            start = step.end
