"""The records that a bucket is about to send, with their tables and topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from incsnap.tasks.blocks import Run


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Records that a bucket is about to send, with their tables and topics."""

    runs: Sequence[Run]  #: topic, table and count of the records, in order
    records: Any  #: a RecordBatch of `envelope.records.RECORDS`
    window: str = ""  #: the file of the window, if the records are rows of a snapshot

    @property
    def topics(self) -> Iterable[str]:
        """Return the topics that the records go to."""
        if self._name_topics:
            return map(str, self.records.column("topic").unique())
        return {run.topic for run in self.runs}

    def topic_of(self, row: int) -> str:
        """Return the topic that the record at index `row` goes to."""
        return str(self.records.column("topic")[row]) if self._name_topics else self.run_of(row).topic

    def run_of(self, row: int) -> Run:
        """Return the run of the record at index `row`. Raise IndexError if there is no such record."""
        for run in self.runs:
            if row < run.records:
                return run
            row -= run.records
        raise IndexError(row)

    @property
    def _name_topics(self) -> bool:
        """Whether the records name their topics themselves."""
        return "topic" in self.records.schema.names
