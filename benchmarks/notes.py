"""Whom a measurement tells what it found, as it finds it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from benchmarks.rows import Figures


class Notes(Protocol):
    """Takes the notes of one side. A measurement is one that ``rows.served`` knows."""

    def measured(self, measurement: str, figures: Figures) -> None: ...

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        """What they were to find in this run is not there; the others go on."""


@contextlib.contextmanager
def failing(measurement: str, *notes: Notes) -> Iterator[None]:
    """What the block raises is noted, and no more: whatever one row dies of, the others are measured."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of any kind
        for each in notes:
            each.failed([measurement], error)
