"""The statements in the source blocks of records."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from incsnap.binlog.slices import Slice
from incsnap.tasks import event_sources
from incsnap.tasks.event_sources import MOST_OF_EVENT, TEXT_BYTES, EventSources


class _Transactions:
    files = ("binlog.000001",)
    records = np.zeros(1, [("file", "i8")])

    def gtids(self) -> list[str]:
        return ["a:1"]

    def column(self, name: str) -> Any:
        return np.ones(1, np.int64)


class _Slice:
    """A slice of one transaction. Each event has a statement."""

    transactions = _Transactions()

    def __init__(self, texts: list[bytes]) -> None:
        self._texts = texts
        self.positions = np.arange(len(texts))

    def texts(self) -> list[bytes]:
        return self._texts

    def transaction_of(self, events: Any) -> Any:
        return np.zeros(len(events), np.int64)

    def text_of(self, events: Any) -> Any:
        return events


def _sources(*texts: bytes) -> EventSources:
    return EventSources(cast("Slice", _Slice(list(texts))), queries=True)


def test_a_statement_of_megabytes_is_cut_between_two_characters_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    event_sources._warn_of_cut.cache_clear()
    long = b"x" * (TEXT_BYTES - 1) + "é".encode() * 100
    for _ in range(2):
        sources = _sources(b"INSERT", long, b"\xff" + b"y" * TEXT_BYTES)
        whole, cut, bad = sources.of(np.arange(3)).query.to_pylist()
    assert (whole, cut) == ("INSERT", "x" * (TEXT_BYTES - 1))
    assert bad == "�" + "y" * (TEXT_BYTES - 1)
    assert sources.text_bytes(np.arange(2)).tolist() == [6, TEXT_BYTES - 1]
    assert len(caplog.messages) == 1


def test_an_event_of_very_many_rows_never_repeats_more_of_a_statement_than_fits() -> None:
    sources = _sources(b"z" * TEXT_BYTES, b"z" * TEXT_BYTES, b"short")
    records = np.array([3, 1_000_000, 1_000_000])
    lengths = [len(text) for text in sources.of(np.arange(3), records).query.to_pylist()]
    assert lengths == [TEXT_BYTES, MOST_OF_EVENT // 1_000_000, 5]
