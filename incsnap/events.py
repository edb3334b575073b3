"""Where in the stream of changes we are, and what the stream tells besides rows. Pure values, all of them pickle.

A GTID set says *which transactions* were delivered; a binlog position says *how far* the server's log was read. The
job needs both: the set to ask the server for the rest, the position to know that a window's high watermark is behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import total_ordering
from typing import Any

from incsnap.gtid import GtidSet
from incsnap.tables import TableId


def file_number(file: str) -> int:
    """The numeric suffix of a binlog file's name (``binlog.000012`` -> 12); -1 where there is none.

    Compared as a number because the suffix grows past six digits: ``binlog.1000000`` follows ``binlog.999999``.
    """
    suffix = file.rpartition(".")[2]
    return int(suffix) if suffix.isdecimal() and suffix.isascii() else -1


def base_name(file: str) -> str:
    """What ``log_bin`` calls the files: ``binlog`` of ``binlog.000012``."""
    return file.rpartition(".")[0]


def server_of(log: str) -> str:
    """The server's own uuid, of a binlog's name (``begun_anew``)."""
    return log.partition("/")[0]


def begun_anew(log: str) -> str:
    """The name of the binlog that follows ``log`` on the same server and has other positions.

    A server's first one is called as the server is, by its uuid, and the nth after that ``uuid/n``.
    """
    server, _, number = log.partition("/")
    return f"{server}/{int(number or 0) + 1}"


@total_ordering
@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A byte of one server's binlog, ordered as the server writes. ``pos`` is 64 bits wide.

    No file ("") lies before every byte. ``server_uuid`` says whose binlog it is, and which where the server has begun
    one anew under the job (``begun_anew``); positions of different ones have no order.
    """

    file: str
    pos: int
    server_uuid: str = ""

    def __lt__(self, other: BinlogPosition) -> bool:
        return (file_number(self.file), self.pos) < (file_number(other.file), other.pos)

    def reached(self, file: str, pos: int) -> bool:
        """Is it at or past that byte of the same binlog? Numbers of files of another ``log_bin`` have no order."""
        return base_name(self.file) == base_name(file) and not self < BinlogPosition(file, pos)


#: Before every byte of a server that is not known.
NOWHERE = BinlogPosition("", 0)


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """A cut through the stream: what is before it has been delivered, what is after it has not.

    ``delivered`` holds whole transactions only. Where a cut lies inside a transaction (one larger than a batch),
    ``open_gtid`` names it and ``events_done`` counts its rows events of *included* tables before the cut; both are
    counted again from the transaction's beginning after a restart, so a change of ``table.include.list`` must not meet
    a cut inside a transaction (``planner.unfinished_batch`` refuses it).

    ``file`` and ``pos`` are of the binlog ``server_uuid`` ("": not known); of another one they say nothing. ``begun``:
    when the server began that file, in seconds since 1970 by its own clock (0: not known), which tells the file from
    another that has its name.
    """

    delivered: GtidSet
    file: str
    pos: int
    open_gtid: str = ""
    events_done: int = 0
    server_uuid: str = ""
    begun: int = 0

    @property
    def at(self) -> BinlogPosition:
        return BinlogPosition(self.file, self.pos, self.server_uuid)

    def reached(self, file: str, pos: int) -> bool:
        """Does this cut lie at or past that byte of the same binlog?"""
        return self.at.reached(file, pos)

    def moved_to(self, at: BinlogPosition) -> StreamPosition:
        """The same cut seen from a later position; never moves back in one binlog, and begins anew in another."""
        if at.server_uuid == self.server_uuid and not self.at < at:
            return self
        same = (at.file, at.server_uuid) == (self.file, self.server_uuid)
        return replace(self, file=at.file, pos=at.pos, server_uuid=at.server_uuid, begun=self.begun if same else 0)

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON primitives; ``from_json`` gives the same position again."""
        return {
            "delivered": str(self.delivered),
            "file": self.file,
            "pos": self.pos,
            "open_gtid": self.open_gtid,
            "events_done": self.events_done,
            "server_uuid": self.server_uuid,
            "begun": self.begun,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> StreamPosition:
        """``KeyError``, ``TypeError`` or ``ValueError`` for anything that ``to_json`` did not write."""
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
    """An XA transaction that the log has prepared and neither committed nor rolled back yet.

    Its rows become visible with XA COMMIT, where they are sent, or never. ``xid``: its name, in a form that XA COMMIT
    takes; ``gtid``, ``file``: of the part that XA PREPARE ends. ``parts``: where its events of included tables are
    kept, in order. ``captured``: the choice of tables by which they were picked out, "" if no table was passed over.
    """

    xid: str
    gtid: str
    file: str = ""
    parts: tuple[str, ...] = ()
    captured: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a statement stands: its transaction, and the first byte of its event in the binlog. ``ts_us``: original
    commit, µs since 1970; ``thread``: None where the log does not say."""

    gtid: str
    file: str
    pos: int
    ts_us: int
    server_id: int
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The settings of the session that ran a statement, as far as the statement's event tells them."""

    database: str = ""  #: the default database, "" for none
    sql_mode: int | None = None  #: the bits of `sql_mode`; None where the event does not tell them
    client: str = ""  #: `character_set_client`; this one and the next three are "" where the event does not tell them
    connection: str = ""  #: the character set of `collation_connection`
    server: str = ""  #: the character set of `collation_server`, which a new database has by default
    explicit_timestamps: bool | None = None  #: `explicit_defaults_for_timestamp`; None where it is not told


NO_SESSION = Session()
"""A session of which nothing is known."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """A statement that changed (or may have changed) tables: DDL, TRUNCATE. The tail sets `session` and `origin`."""

    #: The tables that the statement names. None where they are not known: then all tables of `database` may have
    #: changed, and all tables of all databases where `database` is empty.
    tables: frozenset[TableId] | None
    database: str
    sql: str
    truncates: bool = False  #: whether the statement is TRUNCATE TABLE, which removes rows without events
    session: Session = field(default=NO_SESSION, compare=False)  #: the session that ran the statement
    origin: Origin | None = field(default=None, compare=False)  #: where the statement stands in the binlog
    #: whether a table may have other rows now, of which the binlog has no events (RENAME TABLE, EXCHANGE PARTITION,
    #: IMPORT TABLESPACE)
    moves_rows_in: bool = False

    def touches(self, table: TableId) -> bool:
        """In any letter case: the statement is as its author wrote it, whatever lower_case_table_names made of it."""
        if self.tables is None:
            return not self.database or table.database.lower() == self.database.lower()
        return str(table).lower() in {str(changed).lower() for changed in self.tables}
