"""The engine on tables in memory, batch by batch. Tests describe in a few lines what happens and what must follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from incsnap.events import UNKNOWN, OnlineStep, SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import Command, DataCollection, Execute
from incsnap.snapshot.context import Release, SnapshotContext
from incsnap.snapshot.engine import BatchFacts, Plan, drive, next_context
from incsnap.snapshot.keys import Key
from incsnap.snapshot.load import MeasuredLoad
from incsnap.snapshot.questions import Answer, Describe, KeyOrder, LookAhead, MaximumKey, Opened, Question, Refused
from incsnap.snapshot.refused import RefusedRow
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId

A, B, C = TableId("db", "a"), TableId("db", "b"), TableId("db", "c")
SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def execute(name: str, *tables: TableId, condition: str = "") -> Execute:
    return Execute(name, tuple(DataCollection(table, condition) for table in tables))


def position(pos: int) -> StreamPosition:
    return StreamPosition(GtidSet.parse(f"{SERVER}:1-9"), "binlog.000001", pos)


def truncate(table: TableId) -> SchemaChange:
    return SchemaChange(frozenset({table}), table.database, "TRUNCATE", truncates=True)


def alter(table: TableId) -> SchemaChange:
    return SchemaChange(frozenset({table}), table.database, "ALTER")


def swap(table: TableId, other: TableId) -> SchemaChange:
    return SchemaChange(frozenset({table, other}), table.database, "RENAME", moves_rows_in=True)


def tool_swap(table: TableId, other: TableId) -> SchemaChange:
    """Return the swap of `table` by a tool for online schema changes, which calls the former table `other`."""
    step = OnlineStep(((table, "gh-ost", UNKNOWN),), frozenset({table}), frozenset({other}))
    return replace(swap(table, other), online=step)


def spans(windows: Iterable[Window | Release]) -> list[tuple[str, str | None, str]]:
    """Return table, lower (excluded) and upper of windows whose key is one column."""
    ranges = (each.window if isinstance(each, Release) else each for each in windows)
    return [(w.table.table, w.lower[0] if w.lower else None, w.upper[0] or "") for w in ranges]


@dataclass
class Snapshots:
    """An engine on tables in memory, with a clock and positions of its own.

    A batch ends 100 bytes after the one before it. A window's high watermark is 100 above the end of its batch. So
    windows are released in the next batch, unless `pos` says otherwise.
    """

    keys: dict[TableId, list[int]]  #: keys of each table
    limits: Limits = field(default_factory=lambda: Limits(parallelism=2, windows=4, start_rows=2, max_rows=2))
    fingerprint: str = "k int"
    tick_ms: int = 1_000  #: how far the clock goes on in a batch
    server_uuid: str = SERVER
    #: result of reading a window; None: every window is read well
    result: Callable[[Window], ChunkResult | None] | None = None
    answer: Callable[[Question], Answer] | None = None  #: answer to a question; None: `truth`
    descending: tuple[str, ...] = ()  #: key columns in descending order

    def __post_init__(self) -> None:
        self.context = SnapshotContext()
        self.number = 0
        self.pos = 0
        self.asked: list[Question] = []
        self.log: list[SnapshotContext] = []

    def batch(
        self,
        *commands: Command,
        changes: tuple[SchemaChange, ...] = (),
        pos: int | None = None,
        brings_tables: bool = False,
        outdated: bool = False,
        release_bytes: int = 1 << 62,
        has_backlog: bool = False,
        configured: Mapping[str, int] | None = None,
        loads: tuple[MeasuredLoad, ...] = (),
        uncaptured: frozenset[TableId] = frozenset(),
        refused: tuple[RefusedRow, ...] = (),
        replaced_keys: frozenset[TableId] = frozenset(),
        away: frozenset[TableId] = frozenset(),
    ) -> Plan:
        """Run one batch with these facts and return its plan."""
        results = {window.id: result for window in self.context.unread if (result := self._read(window))}
        self.number += 1
        self.pos = self.pos + 100 if pos is None else pos
        facts = BatchFacts(
            batch=self.number,
            end=position(self.pos),
            server_uuid=self.server_uuid,
            now_ms=self.number * self.tick_ms,
            results=results,
            commands=commands,
            changes=changes,
            limits=self.limits,
            brings_tables=brings_tables,
            outdated=outdated,
            release_bytes=release_bytes,
            has_backlog=has_backlog,
            configured=configured or {},
            loads=loads,
            uncaptured=uncaptured,
            refused=refused,
            replaced_keys=replaced_keys,
            away=away,
        )
        plan = drive(next_context(self.context, facts), self._answer)
        self.context = plan.context
        self.log.append(plan.context)
        return plan

    def until_done(self, limit: int = 500) -> list[SnapshotContext]:
        """Run batches until no snapshot is left. Return the contexts of all batches so far."""
        for _ in range(limit):
            if not self.context.active:
                return self.log
            self.batch()
        raise AssertionError(f"not done after {limit} batches: {self.context}")

    def notified(self) -> list[tuple[str, str, str]]:
        """Return signal, type, and status or list of tables of all notifications except IN_PROGRESS."""
        return [
            (n.id, n.type, dict(n.fields).get("status") or dict(n.fields).get("data_collections", ""))
            for context in self.log
            for n in context.notifications
            if n.type != "IN_PROGRESS"
        ]

    def _read(self, window: Window) -> ChunkResult | None:
        if self.result:
            result = self.result(window)
            if result is None or result.error or result.high_pos:
                return result
        return self.good(window)

    def good(self, window: Window, *, seconds: float = 0.001, bytes_a_row: int = 1) -> ChunkResult:
        """Return the result of a window that was read well."""
        rows = len(self.rows(window))
        return ChunkResult(rows, rows * bytes_a_row, seconds, "binlog.000001", self.pos + 100, self.server_uuid)

    def rows(self, window: Window) -> list[int]:
        """Return the window's keys."""
        return self._between(self.keys.get(window.table, []), window.lower, window.upper)

    def _between(self, keys: Sequence[int], lower: Key | None, upper: Key) -> list[int]:
        """Return the keys above `lower` up to `upper`, in the order of the table's key."""
        sign = -1 if self.descending else 1
        low = sign * int(lower[0] or 0) if lower else -(10**9)
        return sorted((each for each in keys if low < sign * each <= sign * int(upper[0] or 0)), reverse=sign < 0)

    def _answer(self, question: Question) -> Answer:
        self.asked.append(question)
        if isinstance(question, LookAhead):
            return None
        if self.answer:
            return self.answer(question)
        return self.truth(question)

    def truth(self, question: Question) -> Answer:
        """Return the true answer to a question about the tables."""
        assert not isinstance(question, LookAhead)
        if isinstance(question, Opened):
            return None
        keys = sorted(self.keys.get(question.table, []), reverse=bool(self.descending))
        if isinstance(question, Describe):
            if question.table not in self.keys:
                return Refused("UNKNOWN_SCHEMA", "it does not exist")
            return KeyOrder(("k",), self.fingerprint, descending=self.descending)
        if isinstance(question, MaximumKey):
            return key(keys[-1]) if keys else None
        assert question.descending == self.descending
        left = self._between(keys, question.after, question.maximum)
        return key(left[question.rows - 1]) if len(left) >= question.rows else None


def key(value: int) -> Key:
    return (str(value),)
