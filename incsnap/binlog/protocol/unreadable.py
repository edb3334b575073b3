"""The handling of rows events and values that cannot be read: the only place that applies the failure modes.

An event that is damaged or does not fit its table map is left out. A value that cannot be converted becomes null, and
its row stays. This code runs only if something is wrong.

If an event is left out, the topic lacks its rows until a later event or a snapshot brings them. A row that the event
deleted stays in the topic for ever.

A window of a snapshot normally drops each row whose key is in a later event. The keys of an event that is left out are
unknown, so the window drops no row for this event. That does little harm: a row of the window is never older than the
row of the same key in the topic. Only one change is lost: the deletion of a row that the snapshot read before the
event.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from incsnap.columns.packets import Spans
from incsnap.config.settings import FailureHandling
from incsnap.errors import BinlogError
from incsnap.tables import Column, TableId

_log = logging.getLogger(__name__)

#: The failure modes with which every unreadable event or value is an error.
STRICT: Final = FailureHandling(processing="fail", converting="fail", inconsistent_schema="fail")

#: A function that takes the index of an event among those being decoded and returns its place, for example
#: `binlog.000012:4711`.
Where = Callable[[int], str]

#: The errors that decoding a column raises for a damaged value. `pa.ArrowInvalid` and UnicodeDecodeError are
#: ValueErrors.
VALUE_ERRORS: Final = (ValueError, IndexError, OverflowError)

#: Most warnings of one kind in one call: a damaged file must not fill the log.
_MOST_WARNINGS = 10


def nth_of_slice(event: int) -> str:
    """Return the text that names an event in messages if the caller has no binlog position for it."""
    return f"rows event {event} of this slice"


@dataclass(slots=True)
class Failures:
    """The unreadable events and values that one call finds in one table."""

    table: TableId  #: table of the events
    handling: FailureHandling  #: failure modes
    where: Where  #: returns the place of an event
    dropped: list[int] = field(default_factory=list)  #: indexes of the events that were left out

    def drop(self, events: Iterable[int], mode: str, what: str, hint: str | None = None) -> None:
        """Note in `dropped` that the events are left out.

        `mode` is that of `event.processing` or `inconsistent.schema`. Log a warning if `mode` is `warn`. Raise
        BinlogError if `mode` is `fail`. The caller takes the events out.
        """
        listed = list(events)
        messages = (f"{self.where(event)}: {self.table}: the rows event {what}" for event in listed)
        more = len(listed) - _MOST_WARNINGS
        rest = f"{self.table}: {more} further events like that are left out" if more > 0 else ""
        _report(mode, messages, "it is left out", rest, hint)
        self.dropped += listed

    def null(self, column: Column, bad: list[tuple[int, Exception]]) -> None:
        """Report values of a column that become null. `bad`: (event, error) of each value that cannot be converted.

        Log a warning if the mode is `warn`. Raise BinlogError if the mode is `fail`, or if the column is NOT NULL. A
        consumer that reads the topic by its schema would fail at a null there, as Kafka Connect does with Debezium's
        records. The caller writes the nulls.
        """
        mode = self.handling.converting
        what = f"{self.table}: column {column.name} ({column.type}) holds a damaged value"
        messages = (f"{self.where(event)}: {what}: {error}" for event, error in bad)
        if mode != "fail" and not column.nullable:
            raise BinlogError(
                f"{next(messages)}; it is NOT NULL, so null cannot be sent in its place",
                "Leave the column out with column.exclude.list, or the event with a new checkpoint.location.",
            )
        more = len(bad) - _MOST_WARNINGS
        rest = f"{self.table}: column {column.name}: {more} further values are null" if more > 0 else ""
        _report(mode, messages, "null is sent in its place", rest)


def _report(mode: str, messages: Iterator[str], effect: str, rest: str, hint: str | None = None) -> None:
    """Raise BinlogError for the first message, with `hint`, if `mode` is `fail`.

    If `mode` is `warn`, log the first messages with their `effect`, and the line `rest` about the others, unless it is
    empty. Messages that nobody reads are not made: there may be a million.
    """
    if mode == "fail":
        for message in messages:
            raise BinlogError(message, hint)
    if mode == "warn":
        for message in islice(messages, _MOST_WARNINGS):
            _log.warning("%s; %s", message, effect)
        if rest:
            _log.warning("%s", rest)


def decode_values(
    decode: Callable[[Spans], Any], column: Column, spans: Spans, event: np.ndarray[Any, Any], failures: Failures
) -> Any:
    """Return the column that `decode` makes of the values at `spans`. A value that cannot be decoded becomes null.

    If the first call of `decode` fails, the values that fail by themselves are searched for. Raise BinlogError if there
    is none, or if null is not allowed (see `Failures.null`). `event` has the index of each value's event.
    """
    try:
        return decode(spans)
    except VALUE_ERRORS as error:
        whole = error
    bad = dict(_to_blame(decode, spans, np.arange(len(spans)), whole))
    if not bad:  # each value is good by itself: too many bytes for one column
        raise BinlogError(f"{failures.where(int(event[0]))}: {failures.table}: column {column.name}: {whole}") from None
    failures.null(column, [(int(event[image]), error) for image, error in sorted(bad.items())])
    return decode(_without(spans, np.fromiter(bad, np.int64)))


def _to_blame(
    decode: Callable[[Spans], Any], spans: Spans, images: np.ndarray[Any, Any], error: Exception
) -> Iterable[tuple[int, Exception]]:
    """Yield the values that fail by themselves. They are found by halving, with a few decodings for each."""
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
    """Return a copy of a string column with `texts` (index -> text) in place of the present values: the patched
    documents."""
    places = np.fromiter(sorted(texts), np.int64)
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, pa.array([texts[place] for place in places.tolist()], column.type)]).take(
        pa.array(order)
    )
