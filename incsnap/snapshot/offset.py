"""The offset: the whole state of a job between two batches, as versioned JSON.

Spark writes it ahead of each batch and gives it back after a crash. Because it names every window planned, held and
released, ``partitions(start, end)`` is a pure function of two offsets, and a replayed batch does what the first
attempt did.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from incsnap.errors import OffsetError, shorten
from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.dataclass_json import from_json, to_json
from incsnap.snapshot.throttle import ROWS, Bound, Throttle
from incsnap.snapshot.window import Chunk, Window, discard_batches, low_watermark_of
from incsnap.tables import TableId

#: Written into every offset. A release that changes the form raises it and keeps a loader for the older one. 2: with
#: ``counted`` and ``control``, which an offset of version 1 has at their defaults. 3: windows are released in parts (an
#: older one released whole windows); conditions stand in a list, and their places where older ones have the texts; with
#: ``prepared``: what an older release has passed by as prepared was sent then, and comes again with its XA COMMIT. 4:
#: with ``paused_by`` and ``throttle``, which an offset of version 3 has at their defaults. 5: a throttle has the limits
#: that signals have set, where an older one has rows a second alone. 6: with ``descending``, of
#: keys that run as their index does, where in an older one all columns ascend. 7: with ``sought``, with how often a
#: table was begun again and with the times of its chunks, which an offset of version 6 has at their defaults; a table
#: with a surrogate key is ordered by its identity too.
VERSION = 7
_FORMAT = "incsnap"


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """Where records go: a replay must write to the same places. ``partitions``: topic -> number of partitions, of those
    topics that the batch writes rows to or has windows in flight for."""

    buckets: int
    partitions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A chunk to read beside the stream: wait for the low watermark, select ``chunk``, note the high watermark."""

    window: Window
    chunk: Chunk
    low_watermark: GtidSet


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """Parts ``parts`` of a window, which this batch sends, minus the keys of its own events and of those recorded in
    ``discards``."""

    window: Window
    parts: range
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


class KeptQueues(Protocol):
    """Long queues of tables, which are kept elsewhere by name: an offset then has the name alone."""

    def place_of(self, queue: tuple[Request, ...]) -> tuple[str, int] | None:
        """The name of a queue that is kept, and how many of its first requests are no longer in it."""

    def requests(self, name: str) -> tuple[Request, ...]: ...


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of batch ``batch``: what was sent up to here (``stream``) and what the snapshot is about.

    ``signal_positions``: how far each signal channel was read, in the channel's own form (JSON primitives).
    ``counted``: of the transaction that is open at the end, where transactions are counted. ``control``: topics that
    the batch sends records of schema changes and truncations to; these are in a file beside the checkpoint.
    ``prepared``: XA transactions whose XA PREPARE is before the end and whose XA COMMIT or XA ROLLBACK is not; their
    events are in files beside the checkpoint. ``sought``: names of XA transactions that were prepared before the job
    began, and whose XA PREPARE is looked for in the binlog. ``form``: of the records of its windows, as the settings
    have it (``config.record_form``); "" in an offset that was written before there was one. ``defaults``: the file
    beside the checkpoint that has the DEFAULTs of columns for the schemas of its records; "" where none are shown.
    ``definitions``: the one that has tables whose rows in the binlog do not name their columns; "" where all rows do.
    """

    job_id: str
    batch: int
    stream: StreamPosition
    layout: TopicLayout
    snapshot: SnapshotContext = field(default_factory=SnapshotContext)
    signal_positions: dict[str, Any] = field(default_factory=dict)
    counted: OpenCounts | None = None
    control: tuple[str, ...] = ()
    prepared: tuple[PreparedXa, ...] = ()
    form: str = ""
    defaults: str = ""
    definitions: str = ""
    sought: tuple[str, ...] = ()

    def reads(self) -> tuple[PlannedRead, ...]:
        """The chunks that this batch has planned, each with its low watermark."""
        low_watermark, scans = low_watermark_of(self.stream), self.snapshot.scans_by_number()
        planned = self.snapshot.planned
        return tuple(PlannedRead(window, scans[window.scan].chunk(window), low_watermark) for window in planned)

    def releases(self) -> tuple[PlannedRelease, ...]:
        """What this batch sends of windows."""
        return tuple(
            PlannedRelease(each.window, range(each.window.sent, each.upto), discard_batches(each.window, self.batch))
            for each in self.snapshot.released
        )

    @property
    def has_no_snapshot_left(self) -> bool:
        """Is all done that was asked for? Not before the first batch, which is the first to ask."""
        return self.batch > 0 and not self.snapshot.active

    def held_tables(self) -> frozenset[TableId]:
        """Tables whose changed keys the sink writes down for this batch."""
        return self.snapshot.held_tables()

    def oldest_discards(self) -> int:
        """The first batch whose recorded keys this batch or a later one may still ask for; older ones can go."""
        windows = (*(each.window for each in self.snapshot.released), *self.snapshot.in_flight)
        return min((window.batch + 1 for window in windows), default=self.batch + 1)

    def dump(self, queues: KeptQueues | None = None) -> dict[str, Any]:
        """A dict of JSON primitives; with the queue, unless that is kept in ``queues``."""
        place = queues.place_of(self.snapshot.queue) if queues is not None else None
        snapshot = to_json(SnapshotContext, self.snapshot if place is None else replace(self.snapshot, queue=()))
        return {
            "format": _FORMAT,
            "version": VERSION,
            "job_id": self.job_id,
            "batch": self.batch,
            "stream": self.stream.to_json(),
            "layout": {"buckets": self.layout.buckets, "partitions": dict(self.layout.partitions)},
            "snapshot": {**_with_shared_conditions(snapshot), **({"queued": list(place)} if place else {})},
            "signal_positions": dict(self.signal_positions),
            **({"counted": to_json(OpenCounts, self.counted)} if self.counted else {}),
            **({"control": list(self.control)} if self.control else {}),
            **({"prepared": to_json(tuple[PreparedXa, ...], self.prepared)} if self.prepared else {}),
            **({"form": self.form} if self.form else {}),
            **({"defaults": self.defaults} if self.defaults else {}),
            **({"definitions": self.definitions} if self.definitions else {}),
            **({"sought": list(self.sought)} if self.sought else {}),
        }

    @classmethod
    def load(cls, content: dict[str, Any], queues: KeptQueues | None = None) -> Offset:
        """The offset that ``dump`` wrote with ``queues``; ``OffsetError`` for another program's, a newer version's, a
        damaged one."""
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise OffsetError(f"this is not an offset of incsnap: {shorten(content)}")
        version = content.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            raise OffsetError(
                f"the saved offset has version {shorten(version)}; this release reads up to {VERSION}",
                "Run the release of incsnap that wrote the checkpoint, or a newer one.",
            )
        try:
            return cls(
                job_id=from_json(str, content["job_id"]),
                batch=from_json(int, content["batch"]),
                stream=StreamPosition.from_json(content["stream"]),
                layout=TopicLayout(
                    from_json(int, content["layout"]["buckets"]),
                    from_json(dict[str, int], content["layout"]["partitions"]),
                ),
                snapshot=_snapshot_of(version, content["snapshot"], queues),
                signal_positions=from_json(dict[str, Any], content["signal_positions"]),
                counted=from_json(OpenCounts, content["counted"]) if "counted" in content else None,
                control=from_json(tuple[str, ...], content.get("control", [])),
                prepared=from_json(tuple[PreparedXa, ...], content.get("prepared", [])),
                form=from_json(str, content.get("form", "")),
                defaults=from_json(str, content.get("defaults", "")),
                definitions=from_json(str, content.get("definitions", "")),
                sought=from_json(tuple[str, ...], content.get("sought", [])),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise OffsetError(f"the saved offset is damaged: {shorten(error)}") from error


def _snapshot_of(version: int, content: dict[str, Any], queues: KeptQueues | None) -> SnapshotContext:
    if version < 7:
        content = _described_again(version, content)
    if version < 3:
        return _in_parts(content)
    if version < 5 and "throttle" in content:
        content = {**content, "throttle": _of_rows_alone(**content["throttle"])}
    return _snapshot(content, queues)


def _described_again(version: int, snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an offset of version 6 or older, with tables whose order may be another now to be asked
    about again. Those whose order is another begin anew; the others go on.

    Up to version 6 a table with a surrogate key was ordered by that column alone. Up to version 5 all columns of a key
    ascended: where the index has several, of which one descends, each border could be a sort of the rest of the table.
    A single column goes on in the old order, for which the server reads its index backward.
    """

    def is_certain(scan: dict[str, Any]) -> bool:
        has_surrogate = "surrogate" in scan["request"]["collection"]
        return not has_surrogate and (version == 6 or len(scan.get("columns", ())) < 2)

    scans = [
        scan if is_certain(scan) else {name: value for name, value in scan.items() if name != "described"}
        for scan in snapshot.get("scans", ())
    ]
    return {**snapshot, "scans": scans}


def _of_rows_alone(rows_per_second: int, signal: str, next_ms: int = 0) -> Any:
    """The throttle of an offset of version 4."""
    return to_json(Throttle, Throttle((Bound(ROWS, rows_per_second, signal),), next_ms))


def _snapshot(content: dict[str, Any], queues: KeptQueues | None) -> SnapshotContext:
    own = {name: value for name, value in content.items() if name != "queued"}
    snapshot = from_json(SnapshotContext, _with_own_conditions(own))
    if "queued" not in content:
        return snapshot
    if queues is None:
        raise ValueError("the tables that wait are in a file")
    name, begun_count = from_json(tuple[str, int], content["queued"])
    return replace(snapshot, queue=queues.requests(name)[begun_count:])


def dump_requests(queue: tuple[Request, ...]) -> dict[str, Any]:
    """JSON primitives."""
    return _with_shared_conditions({"queue": to_json(tuple[Request, ...], queue)})


def load_requests(content: dict[str, Any]) -> tuple[Request, ...]:
    return from_json(tuple[Request, ...], _with_own_conditions(content)["queue"])


def _in_parts(snapshot: dict[str, Any]) -> SnapshotContext:
    """The context of an offset of version 2 or older, where a released window was one part, and all of it."""
    released = [{"window": window, "upto": 1} for window in snapshot.get("released", ())]
    return from_json(SnapshotContext, {**snapshot, "released": released})


def digest(dumped: dict[str, Any]) -> str:
    """Tells an offset from any other, as ``version:hash`` of what ``dump`` wrote: a replay has the offset as it was
    written, and those of two versions cannot be compared."""
    text = json.dumps(dumped, sort_keys=True, separators=(",", ":"))
    return f"{dumped.get('version')}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _with_shared_conditions(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Each text once: a signal may give one condition to thousands of tables, and the offset must stay small."""
    places: dict[str, int] = {}
    for collection in _collections(snapshot):
        if "condition" in collection:
            collection["condition"] = places.setdefault(collection["condition"], len(places))
    return {**snapshot, "conditions": list(places)} if places else snapshot


def _with_own_conditions(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What was given to ``_with_shared_conditions``; that of an older version as it is. Leaves its argument alone."""
    if "conditions" not in snapshot:
        return snapshot
    texts = from_json(tuple[str, ...], snapshot["conditions"])

    def own(request: dict[str, Any]) -> dict[str, Any]:
        collection = request["collection"]
        if "condition" not in collection:
            return request
        return {**request, "collection": {**collection, "condition": texts[collection["condition"]]}}

    return {
        **{name: value for name, value in snapshot.items() if name != "conditions"},
        "queue": [own(request) for request in snapshot.get("queue", ())],
        "scans": [{**scan, "request": own(scan["request"])} for scan in snapshot.get("scans", ())],
    }


def _collections(snapshot: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for request in (*snapshot.get("queue", ()), *(scan["request"] for scan in snapshot.get("scans", ()))):
        yield request["collection"]
