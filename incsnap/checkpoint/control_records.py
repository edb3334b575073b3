"""Files with the control records of a batch: schema changes, truncations and heartbeats.

The planner made these records by asking the server or the clock. A repeated batch would get other answers, and a DDL
text may be too long for an offset. So the records are stored as they will be sent, and forced to the disk before the
end of the batch is. The offset names their topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.files import Files, packed
from incsnap.checkpoint.windows import required_batch
from incsnap.envelope.control_records import in_partition_0

_FOLDER = "control"
#: Batches for which a file is kept. A power cut may take back the last batches that Spark has recorded as done. When
#: they run again they need their files.
_KEPT = 16


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A record that is not a change of a row."""

    topic: str  #: topic to send it to
    key: bytes | None  #: None: no key
    value: bytes | None  #: as it will be sent; None: no value


class ControlFiles:
    """The files with control records, one for each batch that has some."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._batches: list[int] | None = None

    def write(self, batch: int, records: Sequence[ControlRecord]) -> tuple[str, ...]:
        """Write the records of a batch and return their topics. Write nothing if there are no records."""
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
        """Return the records of a batch for `topic`, with the columns of RECORDS.

        Raise CheckpointDamaged if they are missing.
        """
        return required_batch(self._files, _name(batch), topic, f"the records for topic {topic}")

    def forget(self, done: int) -> None:
        """Delete files that are not needed any more, because batch `done` is done."""
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
