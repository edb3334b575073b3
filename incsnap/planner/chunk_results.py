"""The results of planned chunks: each chunk is ordered once, and its manifest goes to the engine between two
batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from incsnap.checkpoint.key_lists import KeyLists
from incsnap.checkpoint.windows import CheckpointDamaged, WindowBuffers
from incsnap.errors import StoreFailed
from incsnap.planner.chunk_readers import Answer, Begun, ReaderPort, ReadOrders
from incsnap.snapshot.failures import LEFT, LOST, UNBEGUN
from incsnap.snapshot.offset import Offset, PlannedRead, TopicLayout
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.sizing import select_seconds
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId
from incsnap.tasks.partitions import ChunkOrder

_LEFT = f"{LEFT}: the job ended before the chunk was read"
_UNBEGUN = f"{UNBEGUN}: the job ended before a reader had begun the chunk"
#: Seconds without an answer after which a result counts as lost, in addition to the time that its SELECT may take.
#: They begin when a reader begins the chunk. A failed task says so at once, so this is for a task that is not heard of
#: again.
LEASE_SECONDS = 180.0


class ChunkResults:
    """The chunks that one planner has ordered.

    `most` is the most chunks that are read at the same time while nobody writes. `topics_of` returns the topics of a
    table. `query_seconds` is the most seconds that a SELECT may take.
    """

    def __init__(
        self,
        readers: ReaderPort,
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
        #: Window -> when a reader has begun it, by `clock`.
        self._begun: dict[str, float] = {}

    def order(self, end: Offset) -> None:
        """Order the chunks that the batch has planned.

        Call this only when the batch's end is on the disk: a batch that is planned again may have other chunks under
        the same names.
        """
        orders = tuple(ChunkOrder(self._layout(end.layout, read), end.stream, read) for read in end.reads())
        if orders:
            self._ordered.update(order.read.window.id for order in orders)
            self._readers.order(ReadOrders(orders, self._at_once))

    def make_way(self, full_speed: bool) -> None:
        """Tell the readers how many chunks they may read at the same time: `most` at full speed, else one.

        Rows that are read faster could not be sent beside the stream, and the readers would slow the stream down. Two
        readers gave a p95 of 1.1 s from commit to consumer, one reader 0.6 s, at the same rows/s.
        """
        at_once = self._most if full_speed else 1
        if at_once != self._at_once:
            self._at_once = at_once
            self._readers.order(ReadOrders((), at_once))

    def arrived(self, start: Offset) -> dict[str, ChunkResult]:
        """Return the manifests, by window, that the batches up to `start` have not seen.

        A lost chunk has a ChunkResult with an error.
        """
        in_flight = {window.id for window in start.snapshot.in_flight}
        unread = {window.id: window for window in start.snapshot.unread}
        results = {id_: self._left_before(window) for id_, window in unread.items() if id_ not in self._ordered}
        for answer in self._answers():
            window_id = answer.window_id
            if window_id not in in_flight:
                self._buffers.delete(window_id)  # dropped while it was being read
            elif window_id in unread:
                lost = answer.error or "the task left no manifest"
                results[window_id] = self._result(window_id, lost, answer.error)
        for window_id in self._begun.keys() & unread.keys() - results.keys():
            lease = LEASE_SECONDS + select_seconds(unread[window_id].doublings, self._query_seconds)
            if self._clock() - self._begun[window_id] > lease:
                results[window_id] = self._result(window_id, f"no answer of its reader for {lease:g} s")
        if dropped := self._ordered - in_flight:
            self._ordered &= in_flight
            self._readers.order(ReadOrders((), self._at_once, frozenset(dropped)))
        self._begun = {id_: begun for id_, begun in self._begun.items() if id_ in unread and id_ not in results}
        return results

    def _answers(self) -> list[Answer]:
        """Return the answers that have come. Note the windows that readers have begun or put back."""
        answers: list[Answer] = []
        for message in self._readers.messages():
            if isinstance(message, Answer):
                answers.append(message)
            elif isinstance(message, Begun):
                self._begun |= dict.fromkeys(message.window_ids, self._clock())
            else:
                for window_id in message.window_ids:
                    self._begun.pop(window_id, None)
        return answers

    def _result(self, window_id: str, lost: str, error: str = "") -> ChunkResult:
        """Return the window's manifest, or a ChunkResult that is lost because of `lost`.

        `error` is the error of the reader's job. If the job failed, a manifest that names an error is of an earlier
        process.
        """
        result = self._buffers.read_manifest(window_id)
        if result is None or (error and result.error):
            return ChunkResult(error=f"{LOST}: {lost}")
        return result

    def _left_before(self, window: Window) -> ChunkResult:
        """Return the result of a chunk that an earlier process has ordered.

        The chunk may have been read without its planner seeing that. Otherwise it counts as a failure: the earlier
        process may have died of this chunk, and every later process would die too if nobody counted. The reader of a
        chunk that was lost before writes a note when it begins. Such a chunk without a note has only waited.
        """
        result = self._buffers.read_manifest(window.id)
        if result is not None and not result.error:
            return result
        return ChunkResult(error=_LEFT if not window.lost or self._buffers.has_begun(window.id) else _UNBEGUN)

    def _layout(self, whole: TopicLayout, read: PlannedRead) -> TopicLayout:
        """Return the layout of the chunk's topics alone.

        The layout of thousands of tables is larger than a socket's buffer.
        """
        topics = self._topics_of(read.window.table)
        return replace(whole, partitions={topic: whole.partitions[topic] for topic in topics})

    def close(self) -> None:
        """Close the connection to the readers."""
        self._readers.close()


def refused_rows(buffers: WindowBuffers, start: Offset) -> tuple[RefusedRow, ...]:
    """Return the rows of windows that the batch of `start` has left out, because they are too large for Kafka."""
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
    """Delete the files that batch `end` was the last to need. The batch is done and is not repeated any more."""
    for release in end.snapshot.released:
        if release.is_last:
            buffers.delete(release.window.id)
    for window_id in end.snapshot.dropped:
        buffers.delete(window_id)
    if end.snapshot.released or end.snapshot.dropped:
        buffers.forget_before(end.oldest_discards())
        # The planning after this batch still asks which records the batch has left out.
        buffers.refused.forget_before(end.batch)


def failed_keys(buffers: WindowBuffers, start: Offset, results: Mapping[str, ChunkResult]) -> dict[str, str]:
    """Return the keys of lists that could not be read alone, by window. Leave out a list that cannot be read now."""
    keys: dict[str, str] = {}
    scans, lists = start.snapshot.scans_by_number(), KeyLists(buffers.files)
    for window in start.snapshot.unread:
        result, scan = results.get(window.id), scans.get(window.scan)
        if result is None or not result.error or scan is None or not scan.keys:
            continue
        begin, end = (0 if key is None else int(key[0] or 0) for key in (window.lower, window.upper))
        if end - begin == 1:
            with suppress(CheckpointDamaged, StoreFailed, OSError):
                keys[window.id] = lists.read(scan.keys, begin, end)[0]
    return keys
