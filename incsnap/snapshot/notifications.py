"""What we tell about a snapshot, in Debezium's words, so that whatever reads Debezium's notifications reads ours.

Types and fields: https://debezium.io/documentation/reference/stable/configuration/notification.html
One difference, on purpose: ``id`` is the id of the signal that asked for *these* tables, also where signals overlap
(Debezium gives the latest signal's), and so each signal has its own STARTED and COMPLETED.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from incsnap.snapshot.keys import Key, show_key
from incsnap.tables import TableId

STARTED = "STARTED"
PAUSED = "PAUSED"
RESUMED = "RESUMED"
IN_PROGRESS = "IN_PROGRESS"
TABLE_SCAN_COMPLETED = "TABLE_SCAN_COMPLETED"
ABORTED = "ABORTED"
COMPLETED = "COMPLETED"
#: Ours: a range of keys that could not be read and was given up.
QUARANTINED = "QUARANTINED"
#: Ours: changes of a table were left out of the stream; the table is read again, and deletions may be missing.
ROWS_LEFT_OUT = "ROWS_LEFT_OUT"

#: How a table ended (``status`` of TABLE_SCAN_COMPLETED).
SUCCEEDED = "SUCCEEDED"
#: Ours: the table was read to its end, but for rows that were given up; ``missing_keys`` has them.
INCOMPLETE = "INCOMPLETE"
EMPTY = "EMPTY"
NO_PRIMARY_KEY = "NO_PRIMARY_KEY"
SKIPPED = "SKIPPED"
SQL_EXCEPTION = "SQL_EXCEPTION"
UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
#: Ours: the table was begun so often that it is given up (``next_context.MAX_BEGINNINGS``).
CHANGED_TOO_OFTEN = "CHANGED_TOO_OFTEN"

AGGREGATE_TYPE = "Incremental Snapshot"


@dataclass(frozen=True, slots=True)
class Notification:
    """``id``: the signal's id. ``timestamp_ms``: when the batch was planned, so that a replay repeats it."""

    id: str
    type: str
    timestamp_ms: int
    fields: tuple[tuple[str, str], ...] = ()

    def value(self, connector_name: str) -> dict[str, Any]:
        """The record's value, as Debezium writes it. ``connector_name`` is ``topic.prefix``."""
        return {
            "id": self.id,
            "type": self.type,
            "aggregate_type": AGGREGATE_TYPE,
            "additional_data": {"connector_name": connector_name, **dict(self.fields)},
            "timestamp": self.timestamp_ms,
        }

    def line(self, connector_name: str) -> str:
        """The text that Debezium writes into its log."""
        value = self.value(connector_name)
        data = ", ".join(f"{name}={text}" for name, text in value["additional_data"].items())
        return (
            f"[Notification Service]  {{id='{self.id}', aggregateType='{value['aggregate_type']}', type='{self.type}',"
            f" additionalData={{{data}}}, timestamp={self.timestamp_ms}}}"
        )


#: Tables named in a notification; a signal may ask for thousands, and notifications are part of the offset.
MAX_NAMED = 50
#: The same in what is told of each single table, where more than those are left: hundreds end with one batch.
FEW_NAMED = 5


def comma_list(tables: Collection[TableId] | Collection[str], named: int = MAX_NAMED) -> str:
    """``db.a,db.b``; of more than 50, the first ``named`` and the number of the rest."""
    if len(tables) <= MAX_NAMED:
        return ",".join(map(str, tables))
    return f"{','.join(map(str, islice(tables, named)))},... {len(tables) - named} more"


#: Ranges named in a notification; each is two keys of 80 characters at most.
MAX_RANGES_NAMED = 10


def key_range(lower: str, upper: str) -> str:
    """Return a range of keys for people: ``lower`` is not in it, ``upper`` is. One whose ends are equal is that key.

    >>> key_range("4", "5"), key_range("5", "5")
    ('(4, 5]', '5')
    """
    return upper if lower == upper else f"({lower}, {upper}]"


def key_ranges(ranges: Sequence[tuple[Key | None, Key]]) -> str:
    """Return the ranges for people, ``(4, 5]; (<null>, 1]; 7``, and the number of the rest beyond 10."""
    named = [key_range(show_key(lower), show_key(upper)) for lower, upper in ranges[:MAX_RANGES_NAMED]]
    ending = f"; ... {len(ranges) - MAX_RANGES_NAMED} more" if len(ranges) > MAX_RANGES_NAMED else ""
    return "; ".join(named) + ending
