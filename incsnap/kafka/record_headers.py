"""The headers of records: of few, unless a transform adds some to all.

librdkafka takes headers with single messages alone, so what has any costs a call for itself (16 µs, not 0.5).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Names that a Debezium consumer looks for on the two records of a row whose key was changed.
NEW_KEY, OLD_KEY = b"__debezium.newkey", b"__debezium.oldkey"


class RecordHeaders:
    """The headers of records with the columns of ``envelope.records.RECORDS``, and ``headers`` where a transform adds
    any.

    ``present``: which records have one.
    """

    def __init__(self, records: pa.RecordBatch) -> None:
        self._old_keys, self._new_keys = records.column("old_key"), records.column("new_key")
        self._added = records.column("headers") if "headers" in records.schema.names else None
        columns = [each for each in (self._old_keys, self._new_keys, self._added) if each is not None]
        valid = [each.is_valid().to_numpy(zero_copy_only=False) for each in columns]
        self.present: npt.NDArray[np.bool_] = np.logical_or.reduce(valid)

    def of(self, row: int) -> list[tuple[bytes, bytes | None]]:
        own = ((OLD_KEY, self._old_keys[row].as_py()), (NEW_KEY, self._new_keys[row].as_py()))
        headers: list[tuple[bytes, bytes | None]] = [(name, value) for name, value in own if value is not None]
        if self._added is not None:
            headers += [(name.encode(), value) for name, value in self._added[row].as_py() or ()]
        return headers
