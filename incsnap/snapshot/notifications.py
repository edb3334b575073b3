"""The notifications about a snapshot, in Debezium's words: every consumer of Debezium's notifications can read them.

Types and fields: https://debezium.io/documentation/reference/stable/configuration/notification.html

One difference is intended: `id` is the id of the signal that asked for *these* tables, even if signals overlap.
Debezium gives the id of the latest signal. So each signal has its own STARTED and COMPLETED.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, islice
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
#: Only in incsnap: a range of keys could not be read and was given up.
QUARANTINED = "QUARANTINED"
#: Only in incsnap: changes of a table were left out of the stream. The table is read again, and deletions may be
#: missing.
ROWS_LEFT_OUT = "ROWS_LEFT_OUT"

#: Only in incsnap: a table belongs to a tool for online schema changes and is not captured.
ONLINE_DDL_TABLE = "ONLINE_DDL_TABLE"
#: Only in incsnap: a tool has altered a table by putting its copy in the table's place.
ONLINE_DDL_SWAP = "ONLINE_DDL_SWAP"

#: The ways in which a table ends: `status` of TABLE_SCAN_COMPLETED.
SUCCEEDED = "SUCCEEDED"
#: Only in incsnap: the table was read to its end, except rows that were given up. `missing_keys` has them.
INCOMPLETE = "INCOMPLETE"
EMPTY = "EMPTY"
NO_PRIMARY_KEY = "NO_PRIMARY_KEY"
SKIPPED = "SKIPPED"
SQL_EXCEPTION = "SQL_EXCEPTION"
UNKNOWN_SCHEMA = "UNKNOWN_SCHEMA"
#: Only in incsnap: the table was begun so often that it is given up (`next_context.MAX_BEGINNINGS`).
CHANGED_TOO_OFTEN = "CHANGED_TOO_OFTEN"

AGGREGATE_TYPE = "Incremental Snapshot"
_ONLINE_AGGREGATE = "Online Schema Change"


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification about a snapshot."""

    id: str  #: correlation id: id of the signal
    type: str  #: STARTED, IN_PROGRESS, ...
    timestamp_ms: int  #: when the batch was planned, in ms since 1970; a replay repeats it
    fields: tuple[tuple[str, str], ...] = ()  #: pairs of name and text, for `additional_data`

    def value(self, connector_name: str) -> dict[str, Any]:
        """Return the record's value, as Debezium writes it. `connector_name` is `topic.prefix`."""
        return {
            "id": self.id,
            "type": self.type,
            "aggregate_type": self._aggregate_type,
            "additional_data": {"connector_name": connector_name, **dict(self.fields)},
            "timestamp": self.timestamp_ms,
        }

    @property
    def _aggregate_type(self) -> str:
        return _ONLINE_AGGREGATE if self.type in (ONLINE_DDL_TABLE, ONLINE_DDL_SWAP) else AGGREGATE_TYPE

    def line(self, connector_name: str) -> str:
        """Return the text that Debezium writes into its log."""
        value = self.value(connector_name)
        data = ", ".join(f"{name}={text}" for name, text in value["additional_data"].items())
        return (
            f"[Notification Service]  {{id='{self.id}', aggregateType='{value['aggregate_type']}', type='{self.type}',"
            f" additionalData={{{data}}}, timestamp={self.timestamp_ms}}}"
        )

    def summary(self) -> str:
        """Return the notification as a line for people, or "" if the log has it elsewhere.

        Warnings tell of keys in quarantine and of changes that were left out. The regular line of a running job tells
        of progress.
        """
        fields = dict(self.fields)
        tables = fields.get("data_collections", "").replace(",", ", ")
        if self.type == ONLINE_DDL_TABLE:
            altered = f", which alters {fields['altered']}" if "altered" in fields else ""
            return f"{tables} belongs to {fields['tool']}{altered} ({fields['trace']}), and is not captured"
        if self.type == ONLINE_DDL_SWAP:
            former = f"; the former table is {fields['former']} and is not captured" if "former" in fields else ""
            return f"{fields['tool']} has altered {tables}: its copy has taken the table's place{former}"
        if self.type == TABLE_SCAN_COMPLETED:
            status = fields["status"]
            return f"{fields['scanned_collection']}: {int(fields['total_rows_scanned']):,} rows were read; {status}"
        return {
            STARTED: f"The snapshot begins, of {tables}",
            COMPLETED: "The snapshot is complete",
            ABORTED: f"The snapshot ends unfinished, of {tables}",
            PAUSED: "The snapshot is paused",
            RESUMED: "The snapshot goes on",
        }.get(self.type, "")


#: Most tables named in a notification. A signal may ask for thousands, and notifications are part of the offset.
MAX_NAMED = 50
#: Most tables named in a notification about a single table if more than `MAX_NAMED` are left: hundreds end with one
#: batch.
FEW_NAMED = 5


def comma_list(tables: Collection[TableId] | Collection[str], named: int = MAX_NAMED, *, first: str = "") -> str:
    """Return the tables as `db.a,db.b`, behind the name `first` if that is given.

    If there are more than `MAX_NAMED`, return only the first `named` and the number of the others: `db.a,... 60 more`.
    """
    count = len(tables) + bool(first)
    names = chain([first] if first else [], map(str, tables))
    if count <= MAX_NAMED:
        return ",".join(names)
    return f"{','.join(islice(names, named))},... {count - named} more"


#: Most ranges named in a notification. Each is two keys of at most 80 characters.
MAX_RANGES_NAMED = 10


def key_range(lower: str, upper: str) -> str:
    """Return a range of keys for people: without `lower`, with `upper`. If both are equal, the range is that key alone.

    >>> key_range("4", "5"), key_range("5", "5")
    ('(4, 5]', '5')
    """
    return upper if lower == upper else f"({lower}, {upper}]"


def key_ranges(ranges: Sequence[tuple[Key | None, Key]]) -> str:
    """Return the ranges for people, as `(4, 5]; (<null>, 1]; 7`. After 10 ranges, return the number of the others."""
    named = [key_range(show_key(lower), show_key(upper)) for lower, upper in ranges[:MAX_RANGES_NAMED]]
    ending = f"; ... {len(ranges) - MAX_RANGES_NAMED} more" if len(ranges) > MAX_RANGES_NAMED else ""
    return "; ".join(named) + ending
