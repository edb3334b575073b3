"""Records that planning makes (schema changes, truncations, heartbeats), on the disk before Spark has the batch that
sends them.

What they say was found by asking the server or the clock, which would answer otherwise when the batch is run again; and
a DDL text may be too long for an offset. So they are written down as they will be sent, and forced to the disk before
the end of the batch is; the offset names the topics they are for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.files import Files, packed
from incsnap.checkpoint.windows import required_batch
from incsnap.envelope.control_records import in_partition_0

_FOLDER = "control"
#: A power cut may take back the last batches that Spark has noted as done; run again, they ask for their files.
_KEPT = 16


@dataclass(frozen=True, slots=True)
class ControlRecord:
    topic: str
    key: bytes | None
    value: bytes


class ControlFiles:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._batches: list[int] | None = None

    def write(self, batch: int, records: Sequence[ControlRecord]) -> tuple[str, ...]:
        """The topics of ``records``; where there are none, nothing is written."""
        by_topic: dict[str, list[ControlRecord]] = {}
        for each in records:
            by_topic.setdefault(each.topic, []).append(each)
        if by_topic:
            batches = {
                topic: in_partition_0([each.key for each in of_topic], [each.value for each in of_topic])
                for topic, of_topic in by_topic.items()
            }
            self._files.write(_name(batch), packed(batches), durable=True)
            self._kept_batches().append(batch)
        return tuple(by_topic)

    def read(self, batch: int, topic: str) -> Any:
        """RECORDS. Raises ``CheckpointDamaged``."""
        return required_batch(self._files, _name(batch), topic, f"the records for topic {topic}")

    def forget(self, done: int) -> None:
        """Batch ``done`` is done."""
        batches = self._kept_batches()
        for batch in [batch for batch in batches if batch <= done - _KEPT]:
            self._files.delete(_name(batch))
            batches.remove(batch)

    def _kept_batches(self) -> list[int]:
        if self._batches is None:
            stems = (name.partition(".")[0] for name in self._files.names(_FOLDER))
            self._batches = [int(stem) for stem in stems if stem.isdecimal()]
        return self._batches


def _name(batch: int) -> str:
    return f"{_FOLDER}/{batch}.arrow"
