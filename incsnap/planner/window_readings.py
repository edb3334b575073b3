"""What has become of the chunks that were planned: each is ordered once, and its manifest goes to the engine between
two batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.planner.chunk_readers import Answer, Ask, Begun, ChunkReading
from incsnap.snapshot.failures import LEFT, LOST, UNBEGUN
from incsnap.snapshot.offset import Offset, PlannedRead, TopicLayout
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.sizing import select_seconds
from incsnap.snapshot.window import Reading, Window
from incsnap.tables import TableId
from incsnap.tasks.partitions import ChunkOrder

_LEFT = f"{LEFT}: the job ended before the chunk was read"
_UNBEGUN = f"{UNBEGUN}: the job ended before a reader had begun the chunk"
#: Seconds without an answer after which a reading counts as lost, besides what its SELECT may take. They begin when a
#: reader begins with the chunk. A task that fails says so at once; so this is for one that nothing is heard of.
LEASE_SECONDS = 180.0


class WindowReadings:
    """What the planner knows of chunks that were ordered. ``most``: chunks that may be read at once while nobody
    writes. ``query_seconds``: what a SELECT may take at most."""

    def __init__(
        self,
        readers: ChunkReading,
        buffers: WindowBuffers,
        most: int,
        topics_of: Callable[[TableId], tuple[str, ...]],
        query_seconds: float = 600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topics_of = topics_of
        self._readers = readers
        self._buffers = buffers
        self._most = most
        self._query_seconds = query_seconds
        self._clock = clock
        self._at_once = 0
        self._ordered: set[str] = set()
        #: When a reader has begun with a window.
        self._begun: dict[str, float] = {}

    def ask(self, end: Offset) -> None:
        """Orders the chunks that the batch has planned. To be called only when its end is on the disk: a batch planned
        anew may have other chunks under the same names."""
        orders = tuple(ChunkOrder(self._layout(end.layout, read), end.stream, read) for read in end.reads())
        if orders:
            self._ordered.update(order.read.window.id for order in orders)
            self._readers.ask(Ask(orders, self._at_once))

    def make_way(self, full_speed: bool) -> None:
        """Says how many chunks may be read at a time. Not at full speed, it is one: what readers read faster could not
        be sent beside the stream, and they would be in its way (two: p95 of commit to consumer 1.1 s, one: 0.6 s, at
        the same rows/s)."""
        at_once = self._most if full_speed else 1
        if at_once != self._at_once:
            self._at_once = at_once
            self._readers.ask(Ask((), at_once))

    def arrived(self, start: Offset) -> dict[str, Reading]:
        """Return the manifests, by window, that the batches up to ``start`` have not seen."""
        in_flight = {window.id for window in start.snapshot.in_flight}
        unread = {window.id: window for window in start.snapshot.unread}
        readings = {id_: self._left_before(window) for id_, window in unread.items() if id_ not in self._ordered}
        for answer in self._answers():
            window_id = answer.window_id
            if window_id not in in_flight:
                self._buffers.delete(window_id)  # dropped while it was being read
            elif window_id in unread:
                lost = answer.error or "the task left no manifest"
                readings[window_id] = self._reading(window_id, lost, answer.error)
        for window_id in self._begun.keys() & unread.keys() - readings.keys():
            lease = LEASE_SECONDS + select_seconds(unread[window_id].doublings, self._query_seconds)
            if self._clock() - self._begun[window_id] > lease:
                readings[window_id] = self._reading(window_id, f"no answer of its reader for {lease:g} s")
        if dropped := self._ordered - in_flight:
            self._ordered &= in_flight
            self._readers.ask(Ask((), self._at_once, frozenset(dropped)))
        self._begun = {id_: begun for id_, begun in self._begun.items() if id_ in unread and id_ not in readings}
        return readings

    def _answers(self) -> list[Answer]:
        """Return the answers that have come, and note what readers have begun with."""
        answers: list[Answer] = []
        for news in self._readers.news():
            if isinstance(news, Answer):
                answers.append(news)
            elif isinstance(news, Begun):
                self._begun |= dict.fromkeys(news.window_ids, self._clock())
            else:
                for window_id in news.window_ids:
                    self._begun.pop(window_id, None)
        return answers

    def _reading(self, window_id: str, lost: str, error: str = "") -> Reading:
        """Return the window's manifest, or that its reading is lost. ``error``: of the job; where it failed, a manifest
        that names an error is of an earlier life."""
        reading = self._buffers.read_manifest(window_id)
        if reading is None or (error and reading.error):
            return Reading(error=f"{LOST}: {lost}")
        return reading

    def _left_before(self, window: Window) -> Reading:
        """Return what counts for a chunk that an earlier life has ordered.

        It may have been read without its planner seeing it. Else it is not asked for again: it may be what the last
        life died of, and would be for ever if nobody counted. A chunk that was left before is noted by its reader: one
        without a note has only waited.
        """
        reading = self._buffers.read_manifest(window.id)
        if reading is not None and not reading.error:
            return reading
        return Reading(error=_LEFT if not window.lost or self._buffers.has_begun(window.id) else _UNBEGUN)

    def _layout(self, whole: TopicLayout, read: PlannedRead) -> TopicLayout:
        """The layout of the chunk's topics alone: that of thousands of tables is larger than a socket's buffer."""
        topics = self._topics_of(read.window.table)
        return replace(whole, partitions={topic: whole.partitions[topic] for topic in topics})

    def close(self) -> None:
        self._readers.close()


def refused_rows(buffers: WindowBuffers, start: Offset) -> tuple[RefusedRow, ...]:
    """Return the rows of windows that batch ``start`` has left out, because Kafka refused them for their size."""
    if not start.snapshot.released:
        return ()
    return tuple(
        RefusedRow(
            record.window,
            record.name,
            f"too large for Kafka ({record.bytes} bytes): {record.reason}",
        )
        for record in buffers.refused.of_batch(start.batch)
        if record.window
    )


def delete_spent(buffers: WindowBuffers, end: Offset) -> None:
    """Batch ``end`` is done, and asked for no more: what it was the last to need beside the checkpoint goes."""
    for release in end.snapshot.released:
        if release.is_last:
            buffers.delete(release.window.id)
    for window_id in end.snapshot.dropped:
        buffers.delete(window_id)
    if end.snapshot.released or end.snapshot.dropped:
        buffers.forget_before(end.oldest_discards())
        # The planning behind this batch still asks for what the batch has left out.
        buffers.refused.forget_before(end.batch)
