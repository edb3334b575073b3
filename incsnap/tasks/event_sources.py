"""What the ``source`` blocks of a slice's records are made of: columns of its transactions and statements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.binlog.slices import Slice
from incsnap.columns.variable import Ints
from incsnap.envelope.source_block import SourceColumns


class EventSources:
    """``queries``: with the texts of statements, which are kept in the slice then (include.query). ``first``: the
    number of the first event."""

    def __init__(self, slice_: Slice, *, queries: bool, first: int = 0) -> None:
        self._slice = slice_
        self._first = first
        transactions = slice_.transactions
        self._gtids = pa.array(transactions.gtids(), pa.string())
        threads = transactions.column("thread")
        self._files = pa.array(transactions.files, pa.string()).take(pa.array(transactions.records["file"]))
        self._threads = pa.array(threads, pa.int64(), mask=threads < 0)
        self._texts: Any = None
        self._sizes = np.zeros(0, np.int64)
        if queries:
            self._texts, self._sizes = _texts(slice_.texts())

    def of(self, events: Ints) -> SourceColumns:
        transactions, owner = self._slice.transactions, self._slice.transaction_of(events)
        place = pa.array(owner)
        return SourceColumns(
            gtid=self._gtids.take(place),
            ts_us=transactions.column("ts_us")[owner],
            server_id=transactions.column("server")[owner],
            thread=self._threads.take(place),
            file=self._files.take(place),
            pos=self._slice.positions[events],
            query=None if self._texts is None else self._texts.take(self._text_of(events)),
            number=self._first + events,
        )

    @property
    def has_texts(self) -> bool:
        return bool(len(self._sizes))

    def text_bytes(self, events: Ints) -> Ints:
        """How long the text is that each record of those events repeats."""
        if not len(self._sizes):
            return np.zeros(len(events), np.int64)
        nth = self._slice.text_of(events)
        sizes: Ints = np.where(nth < 0, 0, self._sizes[nth])
        return sizes

    def _text_of(self, events: Ints) -> Any:
        nth = self._slice.text_of(events)
        return pa.array(nth, mask=nth < 0)


def _texts(encoded: list[bytes]) -> tuple[Any, Ints]:
    """The log does not tell the character set of a statement; UTF-8 is what Debezium takes it for."""
    raw = pa.array(encoded, pa.binary())
    sizes = np.array([len(text) for text in encoded], np.int64)
    try:
        return raw.cast(pa.string()), sizes
    except pa.ArrowInvalid:
        return pa.array([text.decode("utf-8", "replace") for text in encoded], pa.string()), sizes
