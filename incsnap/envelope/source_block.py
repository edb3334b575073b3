"""The ``source`` block of a record: where it comes from. What does not change from row to row is one literal.

Per event, not per row, its text is made; rows of one event then share it by ``take``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.variable import Ints, take
from incsnap.connect.json_text import literal, strings
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.json_rows import join
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True, eq=False)
class SourceColumns:
    """One element per rows event, in binlog order.

    ``gtid``: pa.string(), null without one. ``ts_us``: microseconds since the epoch of the original commit.
    ``thread``: pa.int64(), null where the server does not tell. ``file``: pa.string(). ``pos``: the first byte of the
    rows event in the binlog file.
    """

    gtid: Any
    ts_us: npt.NDArray[np.int64]
    server_id: npt.NDArray[np.int64]
    thread: Any
    file: Any
    pos: npt.NDArray[np.int64]
    #: pa.string(), the statement (include.query); None when nobody asked for it.
    query: Any = None
    #: The number of each event in its batch.
    number: npt.NDArray[np.int64] | None = None

    def place(self, event: int, row: int) -> str:
        """Return where a row of an event stands in the binlog, for people."""
        gtid = self.gtid[event].as_py()
        return f"{self.file[event]}:{self.pos[event]}, row {row}" + (f", GTID {gtid}" if gtid else "")


@dataclass(frozen=True, slots=True)
class SourceConstants:
    """The source of records that share one: of a chunk's rows, of a TRUNCATE. ``snapshot``: incremental or false."""

    file: str
    pos: int
    ts_us: int
    server_id: int = 0
    gtid: str | None = None
    thread: int | None = None
    query: str | None = None
    snapshot: str = "incremental"


def source_values(source: SourceConstants, version: str, name: str, database: str, table: str | None) -> dict[str, Any]:
    """The block as plain values, in the order of its schema. ``version`` is incsnap's, ``name`` topic.prefix."""
    return {
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


def one_source(table: TableId, source: SourceConstants, envelope: EnvelopeSettings) -> str:
    """The whole ``"source":{...}`` of records that share it."""
    thread = "null" if source.thread is None else str(source.thread)
    return (
        _begin(envelope)
        + f'{source.ts_us // 1000},"snapshot":"{source.snapshot}",{_middle(table)}'
        + f'"ts_us":{source.ts_us},"ts_ns":{source.ts_us * 1000},'
        + f'"table":{literal(table.table)},"server_id":{source.server_id},"gtid":{_or_null(source.gtid)},'
        + f'"file":{literal(source.file)},"pos":{source.pos},"row":0,"thread":{thread},'
        + f'"query":{_or_null(source.query)}}}'
    )


def event_sources(table: TableId, source: SourceColumns, envelope: EnvelopeSettings) -> tuple[Any, Any]:
    """``("source":{... up to the number of the row, what follows that number up to the block's end)``: texts, one
    element per event."""
    return _event_sources(_middle(table), literal(table.table), source, envelope)


def sources_of_tables(
    tables: Sequence[TableId], of_event: Ints, source: SourceColumns, envelope: EnvelopeSettings
) -> tuple[Any, Any]:
    """As ``event_sources``; ``of_event``: the table of each event."""
    names = [(_middle(table), literal(table.table)) for table in tables]
    middles, quoted = (take(pa.array(texts, pa.string()), of_event) for texts in zip(*names, strict=True))
    return _event_sources(middles, quoted, source, envelope)


def _event_sources(middle: Any, table: Any, source: SourceColumns, envelope: EnvelopeSettings) -> tuple[Any, Any]:
    """``middle``, ``table``: a text, or a text for each event."""
    gtid = _quoted(source.gtid)
    begin = join(
        [
            _begin(envelope),
            _digits(source.ts_us // 1000),
            ',"snapshot":"false",',
            middle,
            '"ts_us":',
            _digits(source.ts_us),
            ',"ts_ns":',
            _digits(source.ts_us * 1000),
            ',"table":',
            table,
            ',"server_id":',
            _digits(source.server_id),
            ',"gtid":',
            gtid,
            ',"file":',
            _quoted(source.file),
            ',"pos":',
            _digits(source.pos),
            ',"row":',
        ]
    )
    query = pa.scalar("null") if source.query is None else _quoted(source.query)
    end = join([',"thread":', source.thread.cast(pa.string()), ',"query":', query, "}"])
    return begin.cast(pa.string()), end.cast(pa.string())


def moments(now_us: int) -> str:
    """The envelope's own ``ts_ms``, ``ts_us`` and ``ts_ns``."""
    return f'"ts_ms":{now_us // 1000},"ts_us":{now_us},"ts_ns":{now_us * 1000}'


def _begin(envelope: EnvelopeSettings) -> str:
    return (
        f'"source":{{"version":{literal(envelope.version)},"connector":"mysql","name":{literal(envelope.name)},"ts_ms":'
    )


def _middle(table: TableId) -> str:
    return f'"db":{literal(table.database)},"sequence":null,'


def _or_null(text: str | None) -> str:
    return "null" if text is None else literal(text)


def _digits(values: npt.NDArray[np.int64]) -> Any:
    return pa.array(values, pa.int64()).cast(pa.string())


def _quoted(texts: Any) -> Any:
    return strings(texts).complete()
