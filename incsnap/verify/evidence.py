"""The evidence that a job of incsnap or a Kafka Connect worker writes down about what it has delivered.

Both write it after the records are in their topics. So everything before such a place is there, in all partitions. It
can be read once the markers of its transactions are there too (`both_sides.LiveSides`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from incsnap.config.job_file import StrPath
from incsnap.config.load import given_names
from incsnap.errors import IncsnapError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets
from incsnap.kafka.refusals import ClientError
from incsnap.planner.kafka_state import recorded_batches
from incsnap.snapshot.delivered_place import DeliveredPlace, delivered_place

_REQUEST_SECONDS = 10.0
#: Field of a connector's offset: the tables of an incremental snapshot that are not finished.
_COLLECTIONS = "incremental_snapshot_collections"


def connector_offsets(file: StrPath, worker: StrPath | None) -> ConnectorOffsets | None:
    """Return where the offsets of the connector in `file` are; None if neither file names a place.

    `worker` is the file of a Connect worker. Raise ConfigError if a file cannot be parsed.
    """
    places = ConnectorOffsets.of(*given_names(file, worker))
    return places if places.file or places.topics else None


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The tables whose snapshots are under way: some of their rows are still to be sent."""

    tables: frozenset[str] = frozenset()  #: names, as db.table
    has_more: bool = False  #: whether there are tables beside these whose names are not known

    def has(self, table: str) -> bool:
        """Return True if the snapshot of `table` may be under way."""
        return self.has_more or table in self.tables

    def __or__(self, other: UnderWay) -> UnderWay:
        return UnderWay(self.tables | other.tables, self.has_more or other.has_more)


class Evidence:
    """The written evidence about the topics of `prefix`."""

    def __init__(self, client: ClientSettings, prefix: str, offsets: ConnectorOffsets | None) -> None:
        self._client, self._prefix, self._offsets = client, prefix, offsets
        self._log = AnnouncementLog(client, prefix)

    def shown(self) -> Iterator[StreamPosition]:
        """Yield the positions up to which all partitions have everything. A position without GTIDs has a file."""
        places = self._of_job()
        if places:
            yield places[0].end.stream
        if (position := _position(self._of_connector())) is not None:
            yield position

    def under_way(self) -> UnderWay:
        """Return the tables whose snapshots are under way, as the job and the connector say."""
        # A bucket without records for a long time shows an old place, and the beat is newer then.
        newest = max(self._of_job(), key=lambda place: place.end.batch, default=None)
        of_job = UnderWay() if newest is None else UnderWay(frozenset(newest.tables), newest.has_more)
        return of_job | _snapshots(self._of_connector())

    def _of_job(self) -> list[DeliveredPlace]:
        """Return the places of a job of the prefix on the control topic, that of its slowest bucket first.

        The result is empty without a job.
        """
        try:
            owner = self._log.owner(_REQUEST_SECONDS)
            if owner is None or not owner.facts.job:
                return []
            records = recorded_batches(self._client, self._prefix, owner.facts.job, owner.buckets)
            batches = [record.batch for record in records.values()]
            oldest = next((each.place for each in records.values() if each.batch == min(batches)), None)
            places = (oldest if len(records) == owner.buckets else None, owner.facts.place)
            return [delivered_place(place) for place in places if place is not None]
        except (ClientError, IncsnapError):
            return []

    def _of_connector(self) -> Mapping[str, Any]:
        """Return the offset that the connector has committed; empty if there is none."""
        if self._offsets is None:
            return {}
        try:
            places = (self._offsets.own(kept, self._prefix) for _, kept in self._offsets.places(self._client))
            chosen = next(filter(None, places), [])
        except IncsnapError:
            return {}
        return (chosen[0].content if len(chosen) == 1 else None) or {}


def _position(content: Mapping[str, Any]) -> StreamPosition | None:
    """Return the position in a connector's offset; None while its first snapshot is under way, or without an offset."""
    if not content or content.get("snapshot"):
        return None
    try:
        # `pos` is where the transaction begins whose events were sent in part; `gtids` are those before it.
        return StreamPosition(GtidSet.parse(content.get("gtids") or ""), content["file"], int(content["pos"]))
    except (ValueError, TypeError, KeyError):
        return None


def _snapshots(content: Mapping[str, Any]) -> UnderWay:
    """Return the tables of a connector's offset whose snapshots are under way. Only incremental ones name tables."""
    if str(content.get("snapshot") or False).lower() not in ("false", "incremental"):
        return UnderWay(has_more=True)
    try:
        collections = json.loads(content.get(_COLLECTIONS) or "[]")
        return UnderWay(frozenset(str(each[f"{_COLLECTIONS}_id"]) for each in collections))
    except (ValueError, TypeError, KeyError):
        return UnderWay(has_more=True)
