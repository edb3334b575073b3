"""The values of this package: a record as a channel read it, and the signal that it contains, valid or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Channel = Literal["source", "kafka", "file"]
SignalType = Literal[
    "execute-snapshot",
    "stop-snapshot",
    "pause-snapshot",
    "resume-snapshot",
    "incsnap-throttle",
    "log",
    "set-binlog-position",
]


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """A record as a channel read it. Nothing in it has been checked."""

    id: str | None  #: None or "" if it has none
    type: str | None  #: None or "" if it has none
    data: object = None  #: a JSON text, an object already parsed, or None
    channel: Channel = "source"  #: channel that read the record
    #: Where the record was found, for logs and for an id if it has none: GTID and row, Kafka offset, or place of the
    #: line.
    position: str = ""
    problem: str | None = None  #: why the channel could not read the record; then the other fields are empty


@dataclass(frozen=True, slots=True)
class AdditionalCondition:
    """A condition on the rows of some tables."""

    data_collection: str  #: Java regex of the tables
    filter: str  #: SQL; only rows for which it is true are read; "" for all rows


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows that an execute-snapshot signal chooses by its own fields, which begin with `incsnap-`."""

    keys: tuple[Mapping[str, object], ...] = ()  #: incsnap-keys: keys as the records have them
    topic: str = ""  #: incsnap-keys-topic: a Kafka topic with such keys
    files: str = ""  #: incsnap-keys-file: a file or folder with such keys
    deletes: bool = False  #: incsnap-absent=delete
    first: Mapping[str, object] | None = None  #: incsnap-from: least values of columns
    last: Mapping[str, object] | None = None  #: incsnap-to: greatest values of columns
    every: int = 0  #: incsnap-sample, 1/n: one row in n; 0 for all
    seed: int = 0  #: incsnap-seed
    walks: bool = False  #: incsnap-whole-table: the server may walk through the whole table


@dataclass(frozen=True, slots=True)
class Signal:
    """A valid signal. Fields that its type does not use are empty. `resolve` finds the tables that it means."""

    id: str  #: of the record, or made from channel and position
    type: SignalType  #: kind of the signal
    #: Java regexes or literal names, `db.table`. For stop-snapshot, none means all.
    data_collections: tuple[str, ...] = ()
    additional_conditions: tuple[AdditionalCondition, ...] = ()  #: the first one that matches a table applies
    surrogate_key: str | None = None  #: column that orders the chunks instead of the primary key
    #: True if a blocking snapshot is requested. It reads the same rows, and nothing waits for it here.
    blocking: bool = False
    chosen: Chosen | None = None  #: for execute-snapshot: the rows that it chooses; None for all
    message: str = ""  #: for log: the text, in which the first `{}` is replaced by the current offset
    #: For incsnap-throttle (our own type): pairs of a limit and its new value. 0 lifts the limit. None restores the
    #: value in the settings.
    limits: tuple[tuple[str, int | None], ...] = ()
    gtid_set: str | None = None  #: for set-binlog-position: transactions before the place; None for a file and position
    binlog: tuple[str, int] | None = None  #: for set-binlog-position: binlog file and position; None for a GTID set


@dataclass(frozen=True, slots=True)
class InvalidSignal:
    """A record that is no valid signal. It changes nothing and is reported."""

    id: str  #: as in Signal
    reason: str  #: what is wrong
    hint: str  #: what would be right
    quiet: bool = False  #: True if nobody made a mistake (watermarks of another connector)


def is_blank(value: object) -> bool:
    """Whether a field of a signal's data is absent for Debezium: null, or a text of blanks."""
    return value is None or (isinstance(value, str) and not value.strip())
