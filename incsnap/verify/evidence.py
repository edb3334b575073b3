"""The evidence that a job of incsnap or a Kafka Connect worker writes down about what it has delivered.

Both write it after the records are in their topics. So everything before such a place is there, in all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incsnap.config.documents import read_document, read_worker
from incsnap.errors import IncsnapError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka.announcement_log import AnnouncementLog
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets, kept_offsets
from incsnap.kafka.refusals import ClientError
from incsnap.planner.kafka_state import recorded_batches
from incsnap.snapshot.delivered_place import delivered_place

_REQUEST_SECONDS = 10.0


def connector_offsets(file: str | Path, worker: str | Path | None) -> ConnectorOffsets | None:
    """Return where the offsets of the connector in `file` are; None if neither file names a topic.

    `worker` is the file of a Connect worker. Raise ConfigError if a file cannot be parsed.
    """
    own = read_document(file)
    of_worker = read_worker(worker)
    topic = own.get("offsets.storage.topic") or of_worker.get("offset.storage.topic") or ""
    return ConnectorOffsets(topic, own.get("name", "")) if topic else None


class Evidence:
    """The written evidence about the topics of `prefix`."""

    def __init__(self, client: ClientSettings, prefix: str, offsets: ConnectorOffsets | None) -> None:
        self._client, self._prefix, self._offsets = client, prefix, offsets
        self._log = AnnouncementLog(client, prefix)

    def shown(self) -> Iterator[StreamPosition]:
        """Yield the positions up to which all partitions have everything. A position without GTIDs has a file."""
        job = self._of_job()
        if job is not None:
            yield job
        if self._offsets is not None and (position := self._of_connector(self._offsets)) is not None:
            yield position

    def _of_job(self) -> StreamPosition | None:
        """Return what the control topic says of a job of the prefix; None without a job."""
        try:
            owner = self._log.owner(_REQUEST_SECONDS)
            if owner is None or not owner.facts.job:
                return None
            records = recorded_batches(self._client, self._prefix, owner.facts.job, owner.buckets)
            batches = [record.batch for record in records.values()]
            oldest = next((each.place for each in records.values() if each.batch == min(batches)), None)
            place = (oldest if len(records) == owner.buckets else None) or owner.facts.place
            return None if place is None else delivered_place(place).end.stream
        except (ClientError, IncsnapError):
            return None

    def _of_connector(self, offsets: ConnectorOffsets) -> StreamPosition | None:
        """Return the position that the connector has committed; None if there is none.

        While the first snapshot is under way there is no position either.
        """
        try:
            kept = kept_offsets(self._client, offsets.topic).values()
        except IncsnapError:
            return None
        chosen = [each for each in kept if each.server == self._prefix and offsets.connector in ("", each.connector)]
        content = chosen[0].content if len(chosen) == 1 else None
        if content is None or content.get("snapshot"):
            return None
        try:
            # `pos` is where the transaction begins whose events were sent in part; `gtids` are those before it.
            return StreamPosition(GtidSet.parse(content.get("gtids") or ""), content["file"], int(content["pos"]))
        except (ValueError, TypeError, KeyError):
            return None
