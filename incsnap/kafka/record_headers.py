"""The headers of records. Few records have some, unless a transform adds headers to all.

librdkafka takes headers only with single messages. So a record with headers of its own needs a call that is made in
Python (16 µs instead of 0.5). Records that share all headers need one call each too, but only a few bytes of its
arguments differ, and NumPy writes these for thousands of records at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import MapArray

#: Debezium's headers on the two records of a row whose key was changed.
NEW_KEY, OLD_KEY = b"__debezium.newkey", b"__debezium.oldkey"


class RecordHeaders:
    """The headers of records with the columns of `envelope.records.RECORDS`.

    If a transform adds headers, they are in the column `headers`. `shared` are the headers that all records have.
    `alone` tells which records have further headers.
    """

    def __init__(self, records: pa.RecordBatch) -> None:
        self._old_keys, self._new_keys = records.column("old_key"), records.column("new_key")
        self._added = records.column("headers") if "headers" in records.schema.names else None
        shared = [] if self._added is None else _shared(self._added)
        self._differs = shared is None
        self.shared: list[tuple[bytes, bytes | None]] = shared or []
        columns = [self._old_keys, self._new_keys, *([self._added] if self._differs else [])]
        valid = [each.is_valid().to_numpy(zero_copy_only=False) for each in columns if each is not None]
        self.alone: npt.NDArray[np.bool_] = np.logical_or.reduce(valid)

    def of(self, row: int) -> list[tuple[bytes, bytes | None]]:
        """Return names and values of the headers of the record `row`."""
        own = ((OLD_KEY, self._old_keys[row].as_py()), (NEW_KEY, self._new_keys[row].as_py()))
        headers: list[tuple[bytes, bytes | None]] = [(name, value) for name, value in own if value is not None]
        headers += self.shared
        if self._differs and self._added is not None:
            headers += [(name.encode(), value) for name, value in self._added[row].as_py() or ()]
        return headers


def _shared(added: MapArray) -> list[tuple[bytes, bytes | None]] | None:
    """Return the added headers if all records have equal ones, else None.

    Extended headers are equal in all records. Making Python objects of them for each record would take as long as
    sending it.
    """
    n = len(added)
    ends = added.offsets.to_numpy()
    each = (int(ends[-1]) - int(ends[0])) // n if n else 0
    if added.null_count or not each or not (np.diff(ends) == each).all():
        return None
    for column in (added.keys, added.items):
        numbers = column.slice(int(ends[0]), n * each).dictionary_encode().indices.fill_null(-1)
        of_records = numbers.to_numpy(zero_copy_only=False).reshape(n, each)
        if not (of_records == of_records[0]).all():
            return None
    return [(name.encode(), value) for name, value in added[0].as_py()]
