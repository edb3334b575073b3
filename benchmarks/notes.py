"""The receiver of a measurement's results and failures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from benchmarks.rows import Figures


class Notes(Protocol):
    """A receiver of the results of one side. `rows.served` knows the names of measurements."""

    def measured(self, measurement: str, figures: Figures) -> None: ...

    def failed(self, measurements: Sequence[str], error: Exception) -> None:
        """Note that these measurements have no result in this run. Other measurements continue."""


@contextlib.contextmanager
def failing(measurement: str, *notes: Notes) -> Iterator[None]:
    """Catch any error of the block and report it to `notes`, so that other measurements continue."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of any kind
        for each in notes:
            each.failed([measurement], error)
