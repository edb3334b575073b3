"""The offset: the whole state of a job between two batches, as versioned JSON.

Spark writes the offset ahead of each batch and gives it back after a crash. The offset names every window that is
planned, held or released. So `partitions(start, end)` is a pure function of two offsets, and a replayed batch does what
its first attempt did.
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

#: Version of the JSON, written into every offset. A release that changes the JSON raises the version and keeps a loader
#: for older versions. New names that an older offset lacks have their defaults.
#:
#: - 2: `counted` and `control` are new.
#: - 3: windows are released in parts; an older release sent whole windows. The texts of conditions are in one list, to
#:   which the requests refer. `prepared` is new: an older release sent the rows of an XA transaction at XA PREPARE.
#:   They are sent again at XA COMMIT.
#: - 4: `paused_by` and `throttle` are new.
#: - 5: a throttle has all limits that signals have set, not only rows per second.
#: - 6: `descending` is new; in an older offset all columns ascend.
#: - 7: `sought`, `begun_again` and the times of chunks are new. A table with a surrogate key is also ordered by the
#:   columns that tell its rows apart.
#: - 8: rows that a signal chooses are new (`chosen`, `keys`, `first`, `last`, `absent`).
#: - 9: `seam` is new.
VERSION = 9
_FORMAT = "incsnap"


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """The buckets and partitions that records go to. A replay must write to the same ones."""

    buckets: int  #: number of buckets
    #: number of partitions, by topic: those that the batch writes rows to or has windows in flight for
    partitions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A chunk to read beside the stream: wait for the low watermark, run the SELECT, note the high watermark."""

    window: Window  #: window that gets the result
    chunk: Chunk  #: rows to select
    low_watermark: GtidSet  #: GTIDs that must be executed before the SELECT


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """Parts of a window that a batch sends, without rows whose keys have events in this batch or in `discards`."""

    window: Window  #: window to send
    parts: range  #: numbers of the parts
    discards: range  #: numbers of the batches whose recorded keys discard rows


@dataclass(frozen=True, slots=True)
class OpenCounts:
    """The counts of the transaction that a batch's end cuts in two, over all batches so far, for transaction
    metadata."""

    ts_us: int  #: commit time of the transaction, in µs since 1970
    tables: tuple[tuple[str, int], ...] = ()  #: pairs of table name and number of its records with a value, by name

    @property
    def total(self) -> int:
        """The number of records of all tables."""
        return sum(count for _, count in self.tables)


class KeptQueues(Protocol):
    """A store for long queues of tables. The offset then has only the queue's name."""

    def place_of(self, queue: tuple[Request, ...]) -> tuple[str, int] | None:
        """Return where the queue is stored: a stored queue's name, and the number of its first requests to skip.

        The stored queue may be an older one that ends with `queue`: tables have begun since. Return None if there is
        none.
        """

    def requests(self, name: str) -> tuple[Request, ...]:
        """Return the stored queue with this name."""
        ...


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch: the place in the stream up to which everything is sent, and the state of the snapshot."""

    job_id: str  #: id of the job
    batch: int  #: number of the batch that ends here; 0 before the first batch
    stream: StreamPosition  #: cut through the stream at the end of the batch
    layout: TopicLayout  #: buckets and partitions of its records
    snapshot: SnapshotContext = field(default_factory=SnapshotContext)  #: state of the snapshots
    #: how far each signal channel was read, in the channel's own JSON
    signal_positions: dict[str, Any] = field(default_factory=dict)
    #: counts of the transaction that is open at the end; None if none is open or transactions are not counted
    counted: OpenCounts | None = None
    #: topics to which the batch sends records of schema changes and truncations; a file beside the checkpoint has the
    #: records
    control: tuple[str, ...] = ()
    #: XA transactions whose XA PREPARE is before the end and whose XA COMMIT or XA ROLLBACK is not. Files beside the
    #: checkpoint have their events.
    prepared: tuple[PreparedXa, ...] = ()
    form: str = ""  #: digest of the settings that shape its windows' records (`config.record_form`); "" in old offsets
    #: file beside the checkpoint with the DEFAULTs of columns for the schemas of its records; "" if schemas show none
    defaults: str = ""
    #: file beside the checkpoint with the tables whose rows in the binlog do not name their columns; "" if all rows do
    definitions: str = ""
    #: names of XA transactions that were prepared before the job began, and whose XA PREPARE is searched in the binlog
    sought: tuple[str, ...] = ()
    #: file beside the checkpoint with the records behind the end that another engine has sent (`envelope.seam`); "" if
    #: there are none
    seam: str = ""
    #: file beside the checkpoint with the tables of tools for online schema changes; "" if there are none
    online: str = ""

    def reads(self) -> tuple[PlannedRead, ...]:
        """Return the chunks that this batch has planned, each with its low watermark."""
        low_watermark, scans = low_watermark_of(self.stream), self.snapshot.scans_by_number()
        planned = self.snapshot.planned
        return tuple(PlannedRead(window, scans[window.scan].chunk(window), low_watermark) for window in planned)

    def releases(self) -> tuple[PlannedRelease, ...]:
        """Return the parts of windows that this batch sends."""
        return tuple(
            PlannedRelease(each.window, range(each.window.sent, each.upto), discard_batches(each.window, self.batch))
            for each in self.snapshot.released
        )

    @property
    def has_no_snapshot_left(self) -> bool:
        """True if every table that was asked for is finished.

        False before the first batch, which is the first to ask.
        """
        return self.batch > 0 and not self.snapshot.active

    def oldest_discards(self) -> int:
        """Return the first batch whose recorded keys this batch or a later one may still need.

        Older keys can be deleted.
        """
        windows = (*(each.window for each in self.snapshot.released), *self.snapshot.in_flight)
        return min((window.batch + 1 for window in windows), default=self.batch + 1)

    def dump(self, queues: KeptQueues | None = None) -> dict[str, Any]:
        """Return the offset as a dict of JSON primitives.

        It has the queue itself, or its name if `queues` has stored it.
        """
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
            **{name: to_json(kind, value) for name, kind in _OPTIONAL.items() if (value := getattr(self, name))},
        }

    @classmethod
    def load(cls, content: dict[str, Any], queues: KeptQueues | None = None) -> Offset:
        """Return the offset that `dump` wrote with `queues`.

        Raise OffsetError if it is another program's, has a newer version, or is damaged.
        """
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
                **{name: from_json(kind, content[name]) for name, kind in _OPTIONAL.items() if name in content},
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise OffsetError(f"the saved offset is damaged: {shorten(error)}") from error


#: Fields that the JSON leaves out while they have their default, each with its type.
_OPTIONAL: dict[str, Any] = {
    "counted": OpenCounts,
    "control": tuple[str, ...],
    "prepared": tuple[PreparedXa, ...],
    "form": str,
    "defaults": str,
    "definitions": str,
    "sought": tuple[str, ...],
    "seam": str,
    "online": str,
}


def _snapshot_of(version: int, content: dict[str, Any], queues: KeptQueues | None) -> SnapshotContext:
    """Return the context from the JSON of any version. Raise ValueError as `_snapshot` does."""
    if version < 7:
        content = _described_again(version, content)
    if version < 3:  # a released window was one part
        content = {**content, "released": [{"window": each, "upto": 1} for each in content.get("released", ())]}
    if version < 5 and "throttle" in content:
        content = {**content, "throttle": _of_rows_alone(**content["throttle"])}
    return _snapshot(content, queues)


def _described_again(version: int, snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshot's JSON of version 6 or older.

    Tables whose order may have changed in it are to be described again. A table whose order has changed is then read
    from its beginning, and the others go on. Up to version 6 a table with a surrogate key was ordered by that column
    alone. Up to version 5 all columns of a key ascended. In an index of several columns, one of them descending, each
    boundary could then be a sort of the rest of the table. A single column goes on in the old order, for which the
    server reads its index backward.
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
    """Return the JSON of the throttle in an offset of version 4."""
    return to_json(Throttle, Throttle((Bound(ROWS, rows_per_second, signal),), next_ms))


def _snapshot(content: dict[str, Any], queues: KeptQueues | None) -> SnapshotContext:
    """Return the context from JSON with the names of version 9.

    Raise ValueError if its queue is in a file and `queues` is None.
    """
    own = {name: value for name, value in content.items() if name != "queued"}
    snapshot = from_json(SnapshotContext, _with_own_conditions(own))
    if "queued" not in content:
        return snapshot
    if queues is None:
        raise ValueError("the tables that wait are in a file")
    name, begun_count = from_json(tuple[str, int], content["queued"])
    return replace(snapshot, queue=queues.requests(name)[begun_count:])


def dump_requests(queue: tuple[Request, ...]) -> dict[str, Any]:
    """Return the queue as a dict of JSON primitives."""
    return _with_shared_conditions({"queue": to_json(tuple[Request, ...], queue)})


def load_requests(content: dict[str, Any]) -> tuple[Request, ...]:
    """Return the queue that `dump_requests` wrote."""
    return from_json(tuple[Request, ...], _with_own_conditions(content)["queue"])


def digest(dumped: dict[str, Any]) -> str:
    """Return `version:hash` of what `dump` wrote. It tells a replay of a batch from another batch with the same number.

    A replay has the offset exactly as it was written. The sink compares digests before it sends. Digests of two
    versions cannot be compared.
    """
    text = json.dumps(dumped, sort_keys=True, separators=(",", ":"))
    return f"{dumped.get('version')}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _with_shared_conditions(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON with each text of a condition once, in a list to which the requests refer.

    A signal may give one condition to thousands of tables, and the offset must stay small. The requests of the argument
    are changed in place.
    """
    places: dict[str, int] = {}
    for collection in _collections(snapshot):
        if "condition" in collection:
            collection["condition"] = places.setdefault(collection["condition"], len(places))
    return {**snapshot, "conditions": list(places)} if places else snapshot


def _with_own_conditions(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON as it was before `_with_shared_conditions`, and that of an older version unchanged.

    The argument is not changed.
    """
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
    """Yield the JSON of all data collections, of the queue and of the scans."""
    for request in (*snapshot.get("queue", ()), *(scan["request"] for scan in snapshot.get("scans", ()))):
        yield request["collection"]
