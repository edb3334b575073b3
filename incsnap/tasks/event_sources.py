"""The columns behind the `source` blocks of a slice's records, from the slice's transactions and statements."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from incsnap.binlog.slices import Slice
from incsnap.columns.variable import Ints
from incsnap.envelope.seam import Seam
from incsnap.envelope.sources import SourceColumns

#: Most bytes of a statement in `source.query`. Each record repeats the statement: with 6 MB, 400 rows had 2.4 GB.
TEXT_BYTES = 32 << 10
#: Most bytes of statements in all records of one rows event. An event is never divided, and has any number of rows.
MOST_OF_EVENT = 64 << 20

_log = logging.getLogger(__name__)


class EventSources:
    """The source columns of a slice's events.

    `queries`: add the statements' texts, which the slice contains if include.query is set. `first`: the number of the
    slice's first event. `seam`: the records that another engine has sent. `sent_rows`: number of rows of the first rows
    event that it has sent too.
    """

    def __init__(
        self, slice_: Slice, *, queries: bool, first: int = 0, seam: Seam | None = None, sent_rows: int = 0
    ) -> None:
        self._slice = slice_
        self._first = first
        self._seam = seam
        self._sent_rows = sent_rows
        transactions = slice_.transactions
        self._gtids = pa.array(transactions.gtids(), pa.string())
        threads = transactions.column("thread")
        self._files = pa.array(transactions.files, pa.string()).take(pa.array(transactions.records["file"]))
        self._threads = pa.array(threads, pa.int64(), mask=threads < 0)
        texts: tuple[Any, Ints] = _texts(slice_.texts()) if queries else (None, np.zeros(0, np.int64))
        self._texts, self._sizes = texts

    def of(self, events: Ints, records: Ints | None = None) -> SourceColumns:
        """Return the source columns of `events`, which are indexes into the slice.

        `records`: how many records each event has. If an event has very many, its statement is cut to fit
        MOST_OF_EVENT.
        """
        transactions, owner = self._slice.transactions, self._slice.transaction_of(events)
        place = pa.array(owner)
        return SourceColumns(
            gtid=self._gtids.take(place),
            ts_us=transactions.column("ts_us")[owner],
            server_id=transactions.column("server")[owner],
            thread=self._threads.take(place),
            file=self._files.take(place),
            pos=self._slice.positions[events],
            query=None if self._texts is None else self._statements(events, records),
            number=self._first + events,
            seam=self._seam,
            sent_rows=self._sent(events),
        )

    def _sent(self, events: Ints) -> Ints | None:
        """Return for each event how many of its first rows another engine has sent; None for none of them."""
        if not self._sent_rows:
            return None
        return np.where(events == np.flatnonzero(self._slice.is_rows)[0], self._sent_rows, 0)

    def text_bytes(self, events: Ints) -> Ints:
        """Return for each event the bytes of its statement; 0 for none. Each record of the event repeats the statement.

        Callers estimate with it how large a block gets.
        """
        if not len(self._sizes):
            return np.zeros(len(events), np.int64)
        nth = self._slice.text_of(events)
        sizes: Ints = np.where(nth < 0, 0, self._sizes[nth])
        return sizes

    def _statements(self, events: Ints, records: Ints | None) -> Any:
        """Return the statement of each event, null for none."""
        nth = self._slice.text_of(events)
        statements = self._texts.take(pa.array(nth, mask=nth < 0))
        if records is None or not (records * TEXT_BYTES > MOST_OF_EVENT).any():
            return statements
        texts = zip(statements.to_pylist(), (MOST_OF_EVENT // np.maximum(records, 1)).tolist(), strict=True)
        return pa.array([text and _cut(text.encode(), most).decode() for text, most in texts], pa.string())


def _cut(statement: bytes, most: int) -> bytes:
    """Return the first `most` bytes of a statement, less if they end within a character."""
    if len(statement) <= most:
        return statement
    while most and statement[most] & 0xC0 == 0x80:
        most -= 1
    return statement[:most]


@cache
def _warn_of_cut() -> None:
    """Log that a statement is cut.

    This is logged once per process, because a load may have thousands of such statements.
    """
    _log.warning("A statement has more than %d bytes; source.query holds its first ones (include.query)", TEXT_BYTES)


def _texts(encoded: list[bytes]) -> tuple[Any, Ints]:
    """Return the statements as texts of at most `TEXT_BYTES`, and their lengths in bytes.

    The binlog does not record a statement's character set. UTF-8 is assumed, as Debezium does.
    """
    if any(len(text) > TEXT_BYTES for text in encoded):
        _warn_of_cut()
        encoded = [_cut(text, TEXT_BYTES) for text in encoded]
    raw = pa.array(encoded, pa.binary())
    sizes = np.array([len(text) for text in encoded], np.int64)
    try:
        return raw.cast(pa.string()), sizes
    except pa.ArrowInvalid:
        return pa.array([text.decode("utf-8", "replace") for text in encoded], pa.string()), sizes
