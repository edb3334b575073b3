"""What is done about rows events and values that cannot be read: the one place that obeys the failure modes.

An event that is damaged or does not fit its table map is left out whole; a value that cannot be converted becomes null
and its row stays. Nothing here runs unless something was found to be wrong.

What leaving out costs: the topic lacks the event's rows until a later event of them comes, or a snapshot of the table
(of a row that the event deleted, for ever). Which keys the event had is not known, so it overtakes no row of a
snapshot's window. That is the better mistake: such a row, read before or after the event, is never older than what the
topic has of its key, for the event itself is not in the topic; only the deletion of a row read before it goes unseen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from incsnap.columns.packets import Spans
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError
from incsnap.tables import Column, TableId

_log = logging.getLogger(__name__)

STRICT: Final = FailureHandling(processing="fail", converting="fail", inconsistent_schema="fail")
"""Everything that cannot be read is an error."""

Where = Callable[[int], str]
"""The place of an event, by its index among those being decoded: ``binlog.000012:4711``."""

VALUE_ERRORS: Final = (ValueError, IndexError, OverflowError)
"""What decoding a column raises where a value is damaged; ArrowInvalid and Unicode's errors are ValueErrors."""

#: Warnings of one kind from one call: a damaged file must not fill the log.
_MOST_WARNINGS = 10


def nth_of_slice(event: int) -> str:
    """The place where nothing better is known."""
    return f"rows event {event} of this slice"


@dataclass(slots=True)
class Failures:
    """What one call finds, for one table. ``dropped``: indexes of the events that were left out."""

    table: TableId
    handling: FailureHandling
    where: Where
    dropped: list[int] = field(default_factory=list)

    def drop(self, events: Iterable[int], mode: str, what: str, hint: str | None = None) -> None:
        """``mode``: of event.processing or inconsistent.schema. Raises BinlogError under ``fail``."""
        listed = list(events)
        for nth, event in enumerate(listed):
            message = f"{self.where(event)}: {self.table}: the rows event {what}"
            if mode == "fail":
                raise BinlogError(message, hint)
            if mode == "warn" and nth < _MOST_WARNINGS:
                _log.warning("%s; it is left out", message)
        if mode == "warn" and len(listed) > _MOST_WARNINGS:
            _log.warning("%s: %d further events like that are left out", self.table, len(listed) - _MOST_WARNINGS)
        self.dropped += listed

    def null(self, column: Column, bad: list[tuple[int, Exception]]) -> None:
        """``bad``: (event, error) of each value that cannot be converted. Raises BinlogError where it must not be null.

        A column that is NOT NULL takes no null in any mode: what reads the topic by its schema would fail at it, as
        Kafka Connect does at Debezium's.
        """
        mode = self.handling.converting
        for nth, (event, error) in enumerate(bad):
            what = f"column {column.name} ({column.type}) holds a damaged value: {error}"
            message = f"{self.where(event)}: {self.table}: {what}"
            if mode == "fail":
                raise BinlogError(message)
            if not column.nullable:
                raise BinlogError(
                    f"{message}; it is NOT NULL, so null cannot be sent in its place",
                    "Leave the column out with column.exclude.list, or the event with a new checkpoint.location.",
                )
            if mode == "warn" and nth < _MOST_WARNINGS:
                _log.warning("%s; null is sent in its place", message)
        if mode == "warn" and len(bad) > _MOST_WARNINGS:
            _log.warning(
                "%s: column %s: %d further values are null", self.table, column.name, len(bad) - _MOST_WARNINGS
            )


def decode_values(
    decode: Callable[[Spans], Any], column: Column, spans: Spans, event: np.ndarray[Any, Any], failures: Failures
) -> Any:
    """``decode(spans)``, and where that fails, the same with each value that is to blame as a null."""
    try:
        return decode(spans)
    except VALUE_ERRORS as error:
        whole = error
    bad = dict(_to_blame(decode, spans, np.arange(len(spans)), whole))
    if not bad:  # each is good by itself: too many bytes for one column
        raise BinlogError(f"{failures.where(int(event[0]))}: {failures.table}: column {column.name}: {whole}") from None
    failures.null(column, [(int(event[image]), error) for image, error in sorted(bad.items())])
    return decode(_without(spans, np.fromiter(bad, np.int64)))


def _to_blame(
    decode: Callable[[Spans], Any], spans: Spans, images: np.ndarray[Any, Any], error: Exception
) -> Iterable[tuple[int, Exception]]:
    """The values that fail by themselves, found by halving: a few decodings for each."""
    if len(images) == 1:
        yield int(images[0]), error
        return
    for half in np.array_split(images, 2):
        try:
            decode(_only(spans, half))
        except VALUE_ERRORS as failed:
            yield from _to_blame(decode, spans, half, failed)


def _only(spans: Spans, images: np.ndarray[Any, Any]) -> Spans:
    length = spans.length if isinstance(spans.length, int) else spans.length[images]
    return Spans(spans.packets, spans.start[images], length, None if spans.valid is None else spans.valid[images])


def _without(spans: Spans, images: np.ndarray[Any, Any]) -> Spans:
    valid = np.ones(len(spans), np.bool_) if spans.valid is None else spans.valid.copy()
    valid[images] = False
    length = spans.length
    if not isinstance(length, int):
        length = length.copy()
        length[images] = 0
    return Spans(spans.packets, spans.start, length, valid)


def with_texts(column: Any, texts: dict[int, str | None]) -> Any:
    """A string column with other values at some places."""
    places = np.fromiter(sorted(texts), np.int64)
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, pa.array([texts[place] for place in places.tolist()], column.type)]).take(
        pa.array(order)
    )
