"""The planner's port to the chunk readers: orders go out, and results come back between two batches."""

from __future__ import annotations

from collections.abc import Callable

from incsnap.planner.chunk_results import ChunkResults
from incsnap.planner.topic_layout import Layouts
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.window import ChunkResult


class ChunkPort:
    """The chunks of one planner.

    `open_results` opens the chunk readers; they call its argument whenever a chunk has been read. `form` is the digest
    of the settings that shape records (`config.record_form`).
    """

    def __init__(self, open_results: Callable[[Callable[[], None]], ChunkResults], layouts: Layouts, form: str) -> None:
        self._open_results = open_results
        self._layouts = layouts
        self._form = form
        self._results: ChunkResults | None = None

    def arrived(
        self, start: Offset, wake: Callable[[], None], *, full_speed: bool
    ) -> tuple[bool, dict[str, ChunkResult]]:
        """Return whether the windows in flight are outdated, and the results that have come, by window.

        Outdated windows are read again under other names. So no reader is asked for an outdated window, and no answer
        about it counts. The first call opens the readers, which call `wake` for each answer. `full_speed`: whether all
        readers may be busy.
        """
        if self._results is None:
            self._results = self._open_results(wake)
        self._results.make_way(full_speed)
        relaid = self._layouts.outdated(start.layout, {window.table for window in start.snapshot.in_flight})
        outdated = relaid or start.form != self._form
        return outdated, {} if outdated else self._results.arrived(start)

    def arrived_late(self, start: Offset) -> dict[str, ChunkResult]:
        """Return the results that have come since `arrived`, during the wait for changes."""
        return self._results.arrived(start) if self._results is not None else {}

    def order(self, end: Offset) -> None:
        """Order the chunks of the batch that ends at `end`. The end is on the disk."""
        assert self._results is not None
        self._results.order(end)

    def close(self) -> None:
        """Close the connection to the readers."""
        if self._results is not None:
            self._results.close()
