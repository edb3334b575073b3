"""The commands to the snapshot, from signals and from the planner itself.

The signals are parsed by then, and the planner has resolved the names of tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """The rows of a table that a signal chooses: those of a list of keys, of a range of keys, or one row in so many."""

    #: keys as a JSON list of objects, in the form of the record's key; "": they are in `topic` or `files`, or were
    #: written beside the checkpoint
    keys: str = ""
    topic: str = ""  #: Kafka topic with such keys; "" for none
    files: str = ""  #: file or folder with such keys, as JSON lines or Parquet; "" for none
    deletes: bool = False  #: whether a key that the table does not have becomes a deletion and a tombstone
    first: str = ""  #: least values of leading columns of the order, as a JSON object; "": from the first row on
    last: str = ""  #: greatest values of these columns, as a JSON object; "": up to the last row
    every: int = 0  #: one row in so many, by a hash of its key; 0: all rows
    seed: int = 0  #: the same seed chooses the same rows
    walks: bool = False  #: whether the server may walk through the whole table, because no index helps

    @property
    def lists_keys(self) -> bool:
        """True if the rows are those of a list of keys."""
        return bool(self.keys or self.topic or self.files)


@dataclass(frozen=True, slots=True)
class DataCollection:
    """A table that a signal asks for."""

    table: TableId  #: table to read
    condition: str = ""  #: additional condition in SQL; "": all rows
    surrogate: str = ""  #: column that orders the chunks instead of the key; "": the key
    chosen: ChosenRows | None = None  #: rows to read; None: all that fulfil the condition


@dataclass(frozen=True, slots=True)
class Execute:
    """The command of execute-snapshot: read these tables."""

    id: str  #: id of the signal
    collections: tuple[DataCollection, ...]  #: tables to read
    unresolved: tuple[str, ...] = ()  #: names and patterns that match no captured table
    reason: str = ""  #: why the planner itself asks; "": a signal or a setting says so
    names: tuple[str, ...] = ()  #: all tables and unresolved names, in the signal's order; (): tables first


@dataclass(frozen=True, slots=True)
class Stop:
    """The command of stop-snapshot: end snapshots of tables that are read or wait."""

    id: str  #: id of the signal
    tables: frozenset[TableId] | None = None  #: tables whose snapshots end; None: all
    #: End only tables that were asked for by a signal whose id begins with this text; "": tables of every signal.
    asked_by: str = ""

    def stops(self, signal: str, table: TableId) -> bool:
        """Whether the command ends the snapshot of `table` that the signal with id `signal` asked for."""
        return (self.tables is None or table in self.tables) and signal.startswith(self.asked_by)


@dataclass(frozen=True, slots=True)
class Pause:
    """The command of pause-snapshot: plan no chunk until a `Resume`."""

    id: str  #: id of the signal


@dataclass(frozen=True, slots=True)
class Resume:
    """The command of resume-snapshot: plan chunks again."""

    id: str  #: id of the signal


@dataclass(frozen=True, slots=True)
class SetThrottle:
    """The command of incsnap-throttle: set limits on reading."""

    id: str  #: id of the signal
    #: Pairs of a limit's name and its largest value from now on; 0 for no limit, None for that of the settings. Limits
    #: that are not named stay.
    limits: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """The planner's command to drop the table's windows, read their chunks again, and report ROWS_LEFT_OUT.

    The planner sends the command if the batch leaves out rows in the binlog whose columns are not known. A window then
    lacks the events that would discard its outdated rows.
    """

    id: str  #: id of the notification
    table: TableId  #: table whose changes are left out
    place: str  #: file and position of the first row that is left out
    reason: str  #: why they are left out, for people
    is_repeated: bool = False  #: whether an earlier notification has reported it


@dataclass(frozen=True, slots=True)
class Report:
    """The planner's command to send a notification about something that it has found."""

    id: str  #: id of the notification
    type: str  #: its type
    fields: tuple[tuple[str, str], ...]  #: its additional data


Command = Execute | Stop | Pause | Resume | SetThrottle | LeaveOut | Report
