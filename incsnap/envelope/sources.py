"""The sources of records as values: the places in the binlog, or in a snapshot, that records come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import IntArray, TextArray
from incsnap.envelope.seam import Seam


@dataclass(frozen=True, slots=True, eq=False)
class SourceColumns:
    """The sources of changes: one element per rows event, in binlog order."""

    snapshot: ClassVar[str] = "false"  #: changes of the stream belong to no snapshot

    gtid: TextArray  #: `pa.string()`, null for a transaction without a GTID
    ts_us: npt.NDArray[np.int64]  #: original commit, microseconds since 1970
    server_id: npt.NDArray[np.int64]  #: `server_id` of the server that first ran the transaction
    thread: IntArray  #: `pa.int64()`, null if the server does not tell the thread
    file: TextArray  #: `pa.string()`
    pos: npt.NDArray[np.int64]  #: first byte of the rows event in the binlog file
    query: TextArray = None  #: `pa.string()`, the statement; None without include.query
    number: npt.NDArray[np.int64] | None = None  #: number of the event in its batch; None without marks
    seam: Seam | None = None  #: records that another engine has sent before; None for none
    sent_rows: npt.NDArray[np.int64] | None = None  #: number of first rows that it has sent besides; None for none

    def place(self, event: int, row: int) -> str:
        """Return the binlog position of a row for messages: file, byte, row, GTID."""
        gtid = self.gtid[event].as_py()
        return f"{self.file[event]}:{self.pos[event]}, row {row}" + (f", GTID {gtid}" if gtid else "")


@dataclass(frozen=True, slots=True)
class SourceConstants:
    """A source that several records share: those of a chunk's rows, or the record of a TRUNCATE."""

    file: str  #: binlog file
    pos: int  #: byte in the file
    ts_us: int  #: microseconds since 1970
    server_id: int = 0  #: 0 in the schema change record of a table that existed before the job
    gtid: str | None = None  #: None without a transaction, or for one without a GTID
    thread: int | None = None  #: None if the server does not tell the thread
    query: str | None = None  #: the statement; None without include.query
    snapshot: str = "incremental"  #: `incremental`, `true`, `last` or `false`


def source_values(
    source: SourceColumns | SourceConstants,
    version: str,
    name: str,
    database: str | TextArray,
    table: str | TextArray | None,
) -> dict[str, Any]:
    """Return the fields of the `source` block by name, as values that no format has encoded yet, in the order of the
    schema.

    `source` says where the records come from. For a snapshot each field has one value. For changes a field has one
    value for all events, or an array with one element per event. The field `row` is 0, and the caller sets it.
    `version` is incsnap's version, `name` is `topic.prefix`. `database` and `table` are names, one for all events or
    one per event.
    """
    values = {
        "version": version,
        "connector": "mysql",
        "name": name,
        "ts_ms": source.ts_us // 1000,
        "snapshot": source.snapshot,
        "db": database,
        "sequence": None,
        "ts_us": source.ts_us,
        "ts_ns": source.ts_us * 1000,
        "table": table,
        "server_id": source.server_id,
        "gtid": source.gtid,
        "file": source.file,
        "pos": source.pos,
        "row": 0,
        "thread": source.thread,
        "query": source.query,
    }
    return {field: pa.array(value) if isinstance(value, np.ndarray) else value for field, value in values.items()}
