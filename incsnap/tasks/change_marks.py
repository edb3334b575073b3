"""The marks of each change of a DataFrame: `_op`, `_ts`, `_gtid`, `_position` and `_snapshot`.

`_position` is a text that sorts changes in the order of the binlog. It has the number of the batch, of the event in the
batch, and of the row in the event. It depends on the batch alone, so a repeated batch gives the same positions.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.records import MARKED_OPERATIONS

#: The marks of a change, before the columns of its table.
CHANGE_FIELDS = pa.schema(
    [
        ("_op", pa.string()),
        ("_ts", pa.timestamp("us", "UTC")),
        ("_gtid", pa.string()),
        ("_position", pa.string()),
        ("_snapshot", pa.bool_()),
    ]
)

_OPS = pa.array([*MARKED_OPERATIONS, "t"])
_READ, _TRUNCATED = MARKED_OPERATIONS.index("r"), len(MARKED_OPERATIONS)
#: Numbers of events in `_position`. Events of a batch have 1 and up. Rows of windows come before all events, which have
#: not overtaken them. Records that planning has written down (truncations, schema changes) come after all events.
_BEFORE, _BEHIND = 0, 9_999_999_999
_DIGITS = (12, 10, 8)


def first_position_of(batch: int) -> str:
    """Return a `_position` that sorts before all changes of the batch. `spark.read` gives it to the rows of a table."""
    return ".".join(f"{number:0{width}d}" for number, width in zip((batch, _BEFORE, 0), _DIGITS, strict=True))


class Marks:
    """The marks of the records of one batch. `of_one_table`: records that are no rows are truncations."""

    def __init__(self, batch: int, *, of_one_table: bool) -> None:
        self._batch, self._of_one_table = batch, of_one_table
        self._had_events = False
        #: Records so far that are no events, so they have no number of their own.
        self._others = 0

    def of(self, records: Any) -> list[Any]:
        """Return the marks of records, as the columns of CHANGE_FIELDS."""
        n = len(records)
        if "marks" not in records.schema.names:
            return self._of_others(records)
        marks = records.column("marks")
        op, ts_us, gtid, event, row = marks.flatten()
        read = pc.fill_null(pc.equal(op, _READ), False)
        if pc.any(read).as_py():
            event, row = np.full(n, _BEFORE), self._numbers(n)
        else:
            self._had_events = True
            event, row = event.to_numpy() + 1, row.to_numpy()
        return [_OPS.take(op), ts_us.cast(CHANGE_FIELDS.field("_ts").type), gtid, self._position(event, row), read]

    def _of_others(self, records: Any) -> list[Any]:
        """Return the marks of records that are not of a row.

        In a DataFrame of one table such a record is a truncation, and its value has the time and the GTID.
        """
        n = len(records)
        place = self._position(np.full(n, _BEHIND if self._had_events else _BEFORE), self._numbers(n))
        if not self._of_one_table:
            empty = [pa.nulls(n, CHANGE_FIELDS.field(name).type) for name in ("_op", "_ts", "_gtid")]
            return [*empty, place, pa.repeat(pa.scalar(False), n)]
        values = [json.loads(text) for text in records.column("value").to_pylist()]
        return [
            _OPS.take(pa.array([_TRUNCATED] * n)),
            pa.array([each["ts_us"] for each in values], CHANGE_FIELDS.field("_ts").type),
            pa.array([each["gtid"] for each in values], pa.string()),
            self._position(np.full(n, _BEHIND), self._numbers(n)),
            pa.repeat(pa.scalar(False), n),
        ]

    def _numbers(self, n: int) -> Any:
        """Return the next `n` numbers for records that have no number of their own."""
        self._others += n
        return np.arange(self._others - n, self._others)

    def _position(self, event: Any, row: Any) -> Any:
        """Return `_position` of each record, from its numbers of event and row."""
        batch, *digits = _DIGITS
        parts = [
            pc.utf8_lpad(pa.array(number, pa.int64()).cast(pa.string()), width=width, padding="0")
            for number, width in zip((event, row), digits, strict=True)
        ]
        return pc.binary_join_element_wise(f"{self._batch:0{batch}d}", *parts, ".")
