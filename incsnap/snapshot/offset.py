"""The offset: the whole state of a job between two batches, as versioned JSON.

Spark writes it ahead of each batch and gives it back after a crash. Because it names every window planned, held and
released, ``partitions(start, end)`` is a pure function of two offsets, and a replayed batch does what the first
attempt did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from incsnap.errors import OffsetError, shorten
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.chunk import Chunk
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.json_form import from_json, to_json
from incsnap.snapshot.window import RULES, Rules, Window
from incsnap.tables import TableId

#: Written into every offset. A release that changes the form raises it and keeps a loader for the older one. 2: with
#: ``counted`` and ``control``, which an offset of version 1 has at their defaults.
VERSION = 2
_FORMAT = "incsnap"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where records go: a replay must write to the same places. ``partitions``: topic -> number of partitions."""

    buckets: int
    partitions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A chunk to read in this batch: wait for ``fence`` (low), select ``chunk``, note the high watermark."""

    window: Window
    chunk: Chunk
    fence: GtidSet


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """A window whose rows this batch sends, minus the keys of its own events and of those recorded in ``discards``."""

    window: Window
    discards: range


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """What was counted of the transaction in which a batch ends, in all batches so far: (table, records that have a
    value) pairs, by name. ``ts_us``: its commit."""

    ts_us: int
    tables: tuple[tuple[str, int], ...] = ()

    @property
    def total(self) -> int:
        return sum(count for _, count in self.tables)


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of batch ``batch``: what was sent up to here (``stream``) and what the snapshot is about.

    ``signal_positions``: how far each signal channel was read, in the channel's own form (JSON primitives).
    ``counted``: of the transaction that is open at the end, where transactions are counted. ``control``: topics that
    the batch sends records of schema changes and truncations to; these are in a file beside the checkpoint.
    """

    job_id: str
    batch: int
    stream: StreamPosition
    layout: Layout
    snapshot: SnapshotContext = field(default_factory=SnapshotContext)
    signal_positions: dict[str, Any] = field(default_factory=dict)
    counted: OpenCounts | None = None
    control: tuple[str, ...] = ()

    def reads(self, rules: Rules = RULES) -> tuple[PlannedRead, ...]:
        """The chunks that this batch reads, each with its low fence."""
        fence = rules.fence_set(self.stream)
        return tuple(PlannedRead(window, self.snapshot.chunk(window), fence) for window in self.snapshot.planned)

    def releases(self, rules: Rules = RULES) -> tuple[PlannedRelease, ...]:
        """The windows that this batch sends."""
        return tuple(
            PlannedRelease(window, rules.discard_batches(window, self.batch)) for window in self.snapshot.released
        )

    def held_tables(self) -> frozenset[TableId]:
        """Tables whose changed keys the sink writes down for this batch."""
        return self.snapshot.held_tables()

    def oldest_discards(self) -> int:
        """The first batch whose recorded keys this batch or a later one may still ask for; older ones can go."""
        windows = (*self.snapshot.released, *self.snapshot.in_flight)
        return min((window.batch + 1 for window in windows), default=self.batch + 1)

    def dump(self) -> dict[str, Any]:
        """A dict of JSON primitives."""
        return {
            "format": _FORMAT,
            "version": VERSION,
            "job_id": self.job_id,
            "batch": self.batch,
            "stream": self.stream.to_json(),
            "layout": {"buckets": self.layout.buckets, "partitions": dict(self.layout.partitions)},
            "snapshot": to_json(self.snapshot),
            "signal_positions": dict(self.signal_positions),
            **({"counted": to_json(self.counted)} if self.counted else {}),
            **({"control": list(self.control)} if self.control else {}),
        }

    @classmethod
    def load(cls, found: dict[str, Any]) -> Offset:
        """The offset that ``dump`` wrote; ``OffsetError`` for another program's, a newer version's, a damaged one."""
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise OffsetError(f"this is not an offset of incsnap: {shorten(found)}")
        version = found.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise OffsetError(
                f"the saved offset has version {shorten(version)}; this release reads up to {VERSION}",
                "Run the release of incsnap that wrote the checkpoint, or a newer one.",
            )
        try:
            return cls(
                job_id=from_json(str, found["job_id"]),
                batch=from_json(int, found["batch"]),
                stream=StreamPosition.from_json(found["stream"]),
                layout=Layout(
                    from_json(int, found["layout"]["buckets"]),
                    from_json(dict[str, int], found["layout"]["partitions"]),
                ),
                snapshot=from_json(SnapshotContext, found["snapshot"]),
                signal_positions=from_json(dict[str, Any], found["signal_positions"]),
                counted=from_json(OpenCounts, found["counted"]) if "counted" in found else None,
                control=from_json(tuple[str, ...], found.get("control", [])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OffsetError(f"the saved offset is damaged: {shorten(error)}") from error
