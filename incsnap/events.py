"""Positions in the stream of changes, and what the stream contains besides rows. All values are pure and can be
pickled.

A GTID set says which transactions were delivered. A binlog position says how far the server's log was read. The job
needs both: the set to ask the server for the rest, and the position to see whether a window's high watermark is passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import total_ordering
from typing import Any, Final

from incsnap.gtid import GtidSet
from incsnap.tables import TableId


def file_number(file: str) -> int:
    """Return the numeric suffix of a binlog file's name (`binlog.000012` -> 12), or -1 if there is none.

    Files are compared by number, because the suffix grows past six digits: `binlog.1000000` follows `binlog.999999`.
    """
    suffix = file.rpartition(".")[2]
    return int(suffix) if suffix.isdecimal() and suffix.isascii() else -1


def base_name(file: str) -> str:
    """Return the name that `log_bin` gives to the files, for example `binlog` for `binlog.000012`."""
    return file.rpartition(".")[0]


def server_of(log: str) -> str:
    """Return the server's uuid from the name of a binlog: `uuid` for `uuid` and for `uuid/1` (see `begun_anew`)."""
    return log.partition("/")[0]


def begun_anew(log: str) -> str:
    """Return the name of the binlog that follows `log` on the same server after the server has begun its binlog anew.

    Positions of the two have no order. A server's first binlog is named by the server's uuid, and the later ones are
    `uuid/1`, `uuid/2` and so on.
    """
    server, _, number = log.partition("/")
    return f"{server}/{int(number or 0) + 1}"


@total_ordering
@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A byte in a server's binlog, ordered as the server writes.

    Positions in different binlogs have no order. The empty file name comes before every byte.
    """

    file: str  #: "": before the first file
    pos: int  #: a 64-bit number
    server_uuid: str = ""  #: name of the binlog: the server's uuid, or as `begun_anew` returns it

    def __lt__(self, other: BinlogPosition) -> bool:
        return (file_number(self.file), self.pos) < (file_number(other.file), other.pos)

    def reached(self, file: str, pos: int) -> bool:
        """Return True if this position is at or after byte `pos` of `file`.

        The caller makes sure that both are in one binlog. Return False if the files have different base names. Their
        numbers then have no order, because `log_bin` was changed.
        """
        return base_name(self.file) == base_name(file) and not self < BinlogPosition(file, pos)


#: The position before every byte of an unknown server.
NOWHERE = BinlogPosition("", 0)


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A cut through the stream: everything before the cut is delivered, nothing after it is.

    A cut may lie inside a transaction that is larger than a batch. Then `open_gtid` and `events_done` describe the cut.
    After a restart the events are counted again from the transaction's beginning. So `table.include.list` must not
    change while a cut is inside a transaction (`planner.unfinished_batch` refuses such a change).
    """

    delivered: GtidSet  #: whole transactions only
    file: str  #: binlog file, in the binlog `server_uuid`
    pos: int  #: byte of `file`
    open_gtid: str = ""  #: transaction that the cut lies in; "": between transactions
    events_done: int = 0  #: rows events of included tables in `open_gtid` before the cut
    server_uuid: str = ""  #: name of the binlog (see BinlogPosition); "": unknown
    #: When the server began `file`, in seconds since 1970 by the server's clock; 0: unknown. This distinguishes the
    #: file from another file with its name.
    begun: int = 0

    @property
    def at(self) -> BinlogPosition:
        """The binlog position of the cut."""
        return BinlogPosition(self.file, self.pos, self.server_uuid)

    def reached(self, file: str, pos: int) -> bool:
        """Return True if this cut lies at or after byte `pos` of `file` in the same binlog, as
        `BinlogPosition.reached`."""
        return self.at.reached(file, pos)

    def moved_to(self, at: BinlogPosition) -> StreamPosition:
        """Return this cut with the later position `at`. The position never moves back in one binlog.

        A position in another binlog replaces the present one.
        """
        if at.server_uuid == self.server_uuid and not self.at < at:
            return self
        same = (at.file, at.server_uuid) == (self.file, self.server_uuid)
        return replace(self, file=at.file, pos=at.pos, server_uuid=at.server_uuid, begun=self.begun if same else 0)

    def to_json(self) -> dict[str, Any]:
        """Return the position as a dict of JSON primitives, for `from_json`."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"delivered": str(self.delivered)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> StreamPosition:
        """Return the position from the dict of `to_json`. Raise KeyError, TypeError or ValueError for anything else."""
        return cls(
            delivered=GtidSet.parse(content["delivered"]),
            file=str(content["file"]),
            pos=int(content["pos"]),
            open_gtid=str(content.get("open_gtid", "")),
            events_done=int(content.get("events_done", 0)),
            server_uuid=str(content.get("server_uuid", "")),
            begun=int(content.get("begun", 0)),
        )


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """An XA transaction that is prepared in the log and neither committed nor rolled back yet.

    Its rows are sent with XA COMMIT, when they become visible, or never.
    """

    xid: str  #: its name, in a form that XA COMMIT takes
    gtid: str  #: GTID of the first part of the transaction, which XA PREPARE ends
    file: str = ""  #: binlog file of that first part
    parts: tuple[str, ...] = ()  #: names of the stored parts with its events of included tables, in order
    captured: str = ""  #: the filter by which these tables were included; "" if no table was left out


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a statement in the binlog."""

    gtid: str  #: the statement's transaction
    file: str  #: binlog file of the statement's event
    pos: int  #: first byte of the statement's event in `file`
    ts_us: int  #: original commit time, in µs since 1970
    server_id: int  #: server that first ran the statement
    thread: int | None = None  #: id of the connection; None if the log does not have it


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of the session that ran a statement, as far as the statement's event has them."""

    database: str = ""  #: default database; "" for none
    sql_mode: int | None = None  #: bits of `sql_mode`; None: not in the event
    client: str = ""  #: `character_set_client`; this and the next two are "" if they are not in the event
    connection: str = ""  #: character set of `collation_connection`
    server: str = ""  #: character set of `collation_server`, the default of a new database
    explicit_timestamps: bool | None = None  #: `explicit_defaults_for_timestamp`; None: not in the event
    time_zone: str = ""  #: `time_zone`, which the event has if the statement depends on it; "" if it has none
    foreign_key_checks: bool | None = None  #: `foreign_key_checks`; None: not in the event


#: A session of which no setting is known.
NO_SESSION = Session()


#: The alteration of a table, or of a tool's copy, of which some statement is not known.
UNKNOWN: Final = ("",)


@dataclass(frozen=True, slots=True)
class OnlineStep:
    """A statement's meaning in an online schema change, by a tool such as gh-ost."""

    #: Tables whose altered copy takes their name by the statement, each with the tool and the same alteration as
    #: ALTER TABLE statements, or `UNKNOWN`. Each is one ALTER of the table.
    swaps: tuple[tuple[TableId, str, tuple[str, ...]], ...] = ()
    #: Tables that the statement renames or replaces and that have the same rows behind it: those of `swaps`, except in
    #: the revert of a swap that was not seen, and tables that are away between two halves of a swap.
    kept: frozenset[TableId] = frozenset()
    #: tables in the statement that belong to a tool, or whose change is no change to a consumer
    hidden: frozenset[TableId] = frozenset()

    def keeps(self, table: TableId) -> bool:
        """Return True if the table has the same rows behind the statement. Letter case is ignored."""
        return table.folded in {kept.folded for kept in self.kept}

    def hides(self, table: TableId) -> bool:
        """Return True if the statement is no change of `table` to a consumer. Letter case is ignored."""
        return table.folded in {hidden.folded for hidden in self.hidden}

    def alteration_of(self, table: TableId) -> tuple[str, ...] | None:
        """Return the alteration of a table of `swaps`; None for another table. Letter case is ignored."""
        return next((each for swapped, _, each in self.swaps if swapped.folded == table.folded), None)

    def text_of(self, table: TableId) -> str:
        """Return the alteration of a table of `swaps` as one text; "" if it is not known, and for another table."""
        return ";\n".join(self.alteration_of(table) or ())

    def tool_of(self, table: TableId) -> str:
        """Return the tool that has altered a table of `swaps`; "" for another table. Letter case is ignored."""
        return next((tool for swapped, tool, _ in self.swaps if swapped.folded == table.folded), "")


#: A statement that has nothing to do with an online schema change.
NO_STEP = OnlineStep()


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement that changed, or may have changed, tables: DDL or TRUNCATE.

    The tail sets `session`, `origin`, `has_xid` and `in_transaction`.
    """

    #: Tables that the statement names, or None if they are unknown. Then any table of `database` may have changed, and
    #: any table of any database if `database` is "".
    tables: frozenset[TableId] | None
    database: str  #: database of the statement; "": unknown
    sql: str  #: text of the statement
    truncates: bool = False  #: whether this is TRUNCATE TABLE, which removes rows without events
    session: Session = field(default=NO_SESSION, compare=False)  #: session that ran the statement
    origin: Origin | None = field(default=None, compare=False)  #: place of the statement in the binlog
    #: Whether the statement's event names a transaction of the storage engine. The event of a CREATE ... IF NOT EXISTS
    #: names one if the statement made a database or a table of InnoDB, and none if it did nothing.
    has_xid: bool = field(default=False, compare=False)
    #: Whether the statement stands between BEGIN and COMMIT, as CREATE TABLE ... SELECT does. Its event names no
    #: transaction of the storage engine, whatever the statement did.
    in_transaction: bool = field(default=False, compare=False)
    #: Whether a table may have other rows now without events in the binlog (RENAME TABLE, EXCHANGE PARTITION, IMPORT
    #: TABLESPACE).
    moves_rows_in: bool = False
    #: Tables that this RENAME has moved away: no table has their name behind the statement.
    moved_away: frozenset[TableId] = frozenset()
    #: Names that this RENAME has given to tables of other names. Such a table takes the place of the one before.
    taken_names: frozenset[TableId] = frozenset()
    #: what the statement is in an online schema change; the planner sets it
    online: OnlineStep = field(default=NO_STEP, compare=False)

    def moves_away(self, table: TableId) -> bool:
        """Return True if `table` has another name now and no other table has taken its name. Letter case is ignored."""
        return table.folded in {away.folded for away in self.moved_away}

    def brings_another(self, table: TableId) -> bool:
        """Return True if another table has the name of `table` now. Letter case is ignored."""
        return table.folded in {taken.folded for taken in self.taken_names}

    def touches(self, table: TableId) -> bool:
        """Return True if the statement may have changed `table`.

        Letter case does not matter: the statement is as its author wrote it, whatever lower_case_table_names says.
        """
        if self.tables is None:
            return not self.database or table.database.lower() == self.database.lower()
        return table.folded in {changed.folded for changed in self.tables}
