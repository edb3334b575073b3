"""The `source` block of records as JSON.

Parts that do not change from row to row are one literal. The text is made once per event; the rows of the event share
it by `take`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from incsnap.columns.arrow import TextArray
from incsnap.columns.variable import Ints, take
from incsnap.connect.json_text import literal, strings
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.json_rows import join
from incsnap.envelope.sources import SourceColumns, SourceConstants
from incsnap.tables import TableId


def one_source(table: TableId, source: SourceConstants, envelope: EnvelopeSettings) -> str:
    """Return the whole `"source":{...}` of records that share one source."""
    thread = "null" if source.thread is None else str(source.thread)
    return (
        _begin(envelope)
        + f'{source.ts_us // 1000},"snapshot":"{source.snapshot}",{_middle(table)}'
        + f'"ts_us":{source.ts_us},"ts_ns":{source.ts_us * 1000},'
        + f'"table":{literal(table.table)},"server_id":{source.server_id},"gtid":{_or_null(source.gtid)},'
        + f'"file":{literal(source.file)},"pos":{source.pos},"row":0,"thread":{thread},'
        + f'"query":{_or_null(source.query)}}}'
    )


def event_sources(table: TableId, source: SourceColumns, envelope: EnvelopeSettings) -> tuple[TextArray, TextArray]:
    """Return the source blocks of the events as JSON, each in two parts: up to the row's number, and behind the number.

    Both parts have one text per event. The first part begins with `"source":{`.
    """
    return _event_sources(_middle(table), literal(table.table), source, envelope)


def sources_of_tables(
    tables: Sequence[TableId], of_event: Ints, source: SourceColumns, envelope: EnvelopeSettings
) -> tuple[TextArray, TextArray]:
    """Return the source blocks of events of many tables, in two parts as `event_sources` does.

    `of_event`: of each event the index of its table.
    """
    names = [(_middle(table), literal(table.table)) for table in tables]
    middles, quoted = (take(pa.array(texts, pa.string()), of_event) for texts in zip(*names, strict=True))
    return _event_sources(middles, quoted, source, envelope)


def _event_sources(
    middle: str | TextArray, table: str | TextArray, source: SourceColumns, envelope: EnvelopeSettings
) -> tuple[TextArray, TextArray]:
    """Return the source blocks in two parts. `middle`, `table`: a text that all events share, or one per event."""
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
    """Return the envelope's own members `ts_ms`, `ts_us` and `ts_ns` as JSON."""
    return f'"ts_ms":{now_us // 1000},"ts_us":{now_us},"ts_ns":{now_us * 1000}'


def _begin(envelope: EnvelopeSettings) -> str:
    return (
        f'"source":{{"version":{literal(envelope.version)},"connector":"mysql","name":{literal(envelope.name)},"ts_ms":'
    )


def _middle(table: TableId) -> str:
    return f'"db":{literal(table.database)},"sequence":null,'


def _or_null(text: str | None) -> str:
    return "null" if text is None else literal(text)


def _digits(values: npt.NDArray[np.int64]) -> TextArray:
    return pa.array(values, pa.int64()).cast(pa.string())


def _quoted(texts: TextArray) -> TextArray:
    return strings(texts).complete()
