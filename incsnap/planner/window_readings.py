"""What has become of the chunks that were planned: each is ordered once, and its manifest goes to the engine between
two batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.envelope.record_key import key_text
from incsnap.planner.chunk_readers import Ask, ChunkReading
from incsnap.snapshot.failures import LEFT, LOST
from incsnap.snapshot.offset import Offset, PlannedRead, TopicLayout
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.window import Reading
from incsnap.tables import TableId
from incsnap.tasks.partitions import ChunkOrder

_LEFT = f"{LEFT}: the job ended before the chunk was read"


class WindowReadings:
    """``most``: chunks that may be read at once while nobody writes."""

    def __init__(
        self, readers: ChunkReading, buffers: WindowBuffers, most: int, topics_of: Callable[[TableId], tuple[str, ...]]
    ) -> None:
        self._topics_of = topics_of
        self._readers = readers
        self._buffers = buffers
        self._most = most
        self._at_once = 0
        self._ordered: set[str] = set()

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
        """Manifests, by window, that the batches up to ``start`` have not seen."""
        in_flight = {window.id for window in start.snapshot.in_flight}
        unread = {window.id for window in start.snapshot.unread}
        readings = {window_id: self._left_before(window_id) for window_id in unread - self._ordered}
        for window_id, error in self._readers.answers():
            if window_id not in in_flight:
                self._buffers.delete(window_id)  # dropped while it was being read
            elif window_id in unread:
                # Where the job failed, a manifest that names an error is of an earlier life.
                reading = self._buffers.read_manifest(window_id)
                if reading is None or (error and reading.error):
                    reading = Reading(error=f"{LOST}: {error or 'the task left no manifest'}")
                readings[window_id] = reading
        if dropped := self._ordered - in_flight:
            self._ordered &= in_flight
            self._readers.ask(Ask((), self._at_once, frozenset(dropped)))
        return readings

    def _left_before(self, window_id: str) -> Reading:
        """What counts for a chunk that an earlier life has ordered. It may have been read without its planner seeing
        it. Else it is not asked for again: it may be what the last life died of, and would be for ever if nobody
        counted."""
        reading = self._buffers.read_manifest(window_id)
        return reading if reading is not None and not reading.error else Reading(error=_LEFT)

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
            key_text(bytes.fromhex(record.key)),
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
