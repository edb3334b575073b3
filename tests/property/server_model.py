"""A MySQL server in miniature, with its commit stages: written and sent, visible to SELECT, in gtid_executed.

``log`` is the binlog: a transaction in it has been sent. ``visible`` and ``executed`` count how many of them SELECT
sees and gtid_executed holds; executed <= visible <= len(log), and both move one transaction at a time, as with
binlog_order_commits=ON. A failover moves to another server: same transactions, other positions, other progress.

An XA transaction is two of the log: the one that prepares it has its rows and shows none, the one that commits it has
none and shows them. Its keys are locked in between. ``log`` says what each transaction shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import Command
from incsnap.tables import TableId

Row = tuple[int, ...]
"""A key of the model: integers, one for each key column."""

TABLES = {TableId("db", "a"): 1, TableId("db", "b"): 2}
"""Table -> number of key columns."""
_SOURCES = (("3e11fa47-71ca-11e1-9e33-c80aa9429562", ""), ("4e11fa47-71ca-11e1-9e33-c80aa9429562", "tag"))


@dataclass(frozen=True)
class Event:
    """``kind``: put (insert or update), delete, rekey, truncate, ddl, signal. ``version`` grows with every event."""

    kind: str
    table: TableId
    version: int
    key: Row = ()
    new_key: Row = ()
    rekeys_table: bool = False
    command: Command | None = None

    def change(self) -> SchemaChange:
        return SchemaChange(frozenset({self.table}), self.table.database, self.kind, truncates=self.kind == "truncate")


@dataclass(frozen=True)
class Xa:
    """What a transaction of the log does: ``prepare``, ``commit`` or ``rollback`` of these events."""

    verb: str
    xid: str
    events: tuple[Event, ...]


@dataclass
class Table:
    """Rows as key -> version, and how often DDL changed the columns and the key."""

    rows: dict[Row, int]
    shape: int = 0
    key_shape: int = 0

    def copy(self) -> Table:
        return Table(dict(self.rows), self.shape, self.key_shape)


Tables = dict[TableId, Table]


def apply(tables: Tables, event: Event) -> None:
    table = tables[event.table]
    if event.kind == "put":
        table.rows[event.key] = event.version
    elif event.kind == "delete":
        del table.rows[event.key]
    elif event.kind == "rekey":
        del table.rows[event.key]
        table.rows[event.new_key] = event.version
    elif event.kind == "truncate":
        table.rows.clear()
    elif event.kind == "ddl":
        table.shape += 1
        table.key_shape += event.rekeys_table


class Server:
    """``habit``: which gap is wide. ``ddl_share``, ``xa_share``: of its transactions."""

    def __init__(self, random_: random.Random, habit: str, ddl_share: float, xa_share: float) -> None:
        self.random = random_
        self.habit = habit
        self.ddl_share = ddl_share
        self.xa_share = xa_share
        self.uuid = 0
        self.versions = 0
        self.log: list[list[Event]] = []
        #: Those of the log that are parts of XA transactions, by their index; and what is prepared at its end.
        self.xa: dict[int, Xa] = {}
        self.prepared: dict[str, Xa] = {}
        #: delivered[i]: GTIDs of the first i transactions; and back, as the offset only holds the set.
        self.delivered = [GtidSet()]
        self.index = {GtidSet(): 0}
        self.gtids: list[str] = []
        self.visible = self.executed = 0
        self._numbers = dict.fromkeys(_SOURCES, 0)
        self.committed: Tables = {table: Table({}) for table in TABLES}
        for table in TABLES:
            for key in keys_of(table):
                if random_.random() < 0.7:
                    self.committed[table].rows[key] = self._version()
        self.initial = {table: contents.copy() for table, contents in self.committed.items()}
        self.view = {table: contents.copy() for table, contents in self.committed.items()}
        self._shift = random_.randint(0, 5)
        self._rotation = random_.choice((3, 7, 100))

    # -- writing

    def commit(self, *signals: Command) -> None:
        """One transaction of one to three changes, and the signals (rows of a signal table)."""
        table = next(iter(TABLES))
        events = [Event("signal", table, self._version(), command=command) for command in signals]
        self._append(events + self._changes(self.random.randint(0 if signals else 1, 3)))

    def change_xa(self) -> None:
        """Prepare a transaction, or end one that is prepared; some ends are in no log (sql_log_bin=0)."""
        if self.prepared and self.random.random() < 0.5:
            xa = self.prepared.pop(self.random.choice(list(self.prepared)))
            verb = self.random.choice(("commit", "commit", "rollback"))
            if verb == "rollback" and len(self.log) % 2:
                return
            shown = list(xa.events) if verb == "commit" else []
            for event in shown:
                apply(self.committed, event)
        else:
            before = {table: contents.copy() for table, contents in self.committed.items()}
            events = self._changes(self.random.randint(1, 3))
            self.committed = before
            verb, shown = "prepare", []
            xa = Xa(verb, f"xid {len(self.log)}", tuple(events))
            self.prepared[xa.xid] = xa
        self.xa[len(self.log)] = replace(xa, verb=verb)
        self._append(shown)

    def ddl(self) -> None:
        kind = self.random.choice(("truncate", "ddl", "ddl"))
        locked = {event.table for xa in self.prepared.values() for event in xa.events}
        free = [table for table in TABLES if table not in locked]
        if not free:
            return
        table = self.random.choice(free)
        event = Event(kind, table, self._version(), rekeys_table=kind == "ddl" and self.random.random() < 0.3)
        apply(self.committed, event)
        self._append([event])

    def step(self) -> None:
        """One thing happens: a commit is written and sent, becomes visible, or is executed."""
        # At most 12 transactions wait to become visible: a group commit is no larger in a model.
        if self.random.random() < 0.4 and len(self.log) - self.visible < 12:
            if self.random.random() < self.ddl_share:
                self.ddl()
            elif self.random.random() < self.xa_share:
                self.change_xa()
            else:
                self.commit()
        else:
            self.go_on()

    def go_on(self) -> None:
        """One transaction gets a stage further. The habit decides which gap is wide: before visible, or before
        executed.
        """
        shows = {
            "late to show": self.executed == self.visible,
            "late to execute": self.visible < len(self.log),
            "any": self.random.random() < 0.5,
        }
        self.show() if shows[self.habit] else self.execute()

    def show(self) -> None:
        if self.visible < len(self.log):
            for event in self.log[self.visible]:
                apply(self.view, event)
            self.visible += 1

    def execute(self) -> None:
        if self.executed < self.visible:
            self.executed += 1

    def wait_for_executed(self, gtids: GtidSet) -> None:
        """WAIT_FOR_EXECUTED_GTID_SET: the server goes on until it is so; it commits less than it executes meanwhile."""
        moves = 0
        while not gtids <= self.delivered[self.executed]:
            self.step() if self.random.random() < 0.2 else self.go_on()
            moves += 1
            if moves % 20 == 0:  # dice of Hypothesis may say the same for ever
                self.show()
                self.execute()

    def fail_over(self) -> None:
        """Another server with the same binlog contents at other positions; what it has applied may be less or more."""
        self.uuid += 1
        self._shift = self.random.randint(0, 200)
        self.executed = self.random.randint(0, len(self.log))
        self.visible = self.random.randint(self.executed, len(self.log))
        self.view = self.tables_at(self.visible, 0)

    # -- reading

    def server_uuid(self) -> str:
        return f"server-{self.uuid}"

    def position(self, transactions: int, events: int = 0) -> tuple[str, int]:
        """(file, pos) after so many transactions and events of the next one."""
        number = transactions + self._shift
        return f"binlog.{1 + number // self._rotation:06d}", 100 * (number % self._rotation) + 10 * events + 4

    def cut(self, transactions: int, events: int = 0) -> StreamPosition:
        file, pos = self.position(transactions, events)
        gtid = self.gtids[transactions] if events else ""
        return StreamPosition(self.delivered[transactions], file, pos, gtid, events)

    def between(self, start: StreamPosition, end: StreamPosition) -> list[tuple[int, Event]]:
        """(transaction, event) of what becomes visible in the range, from the two positions alone."""
        spans = self.spans(start, end)
        return [(number, event) for number, low, high in spans for event in self.log[number][low:high]]

    def spans(self, start: StreamPosition, end: StreamPosition) -> list[tuple[int, int, int]]:
        """(transaction, its first event, the one behind its last) of the range."""
        first, last = self.index[start.delivered], self.index[end.delivered]
        return [
            (
                number,
                start.events_done if number == first else 0,
                end.events_done if number == last else len(self.log[number]),
            )
            for number in range(first, min(last + 1, len(self.log)))
        ]

    def gtid_of(self, xid: str) -> str:
        """Return the GTID of the part that prepares the transaction of that name."""
        return self.gtids[int(xid.split()[1])]

    def prepared_at(self, transactions: int) -> dict[str, Xa]:
        """What is prepared behind so many transactions."""
        prepared: dict[str, Xa] = {}
        for number in range(transactions):
            if number in self.xa:
                prepared.pop(self.xa[number].xid, None)
                if self.xa[number].verb == "prepare":
                    prepared[self.xa[number].xid] = self.xa[number]
        return prepared

    def tables_at(self, transactions: int, events: int) -> Tables:
        tables = {table: contents.copy() for table, contents in self.initial.items()}
        for transaction in self.log[:transactions]:
            for event in transaction:
                apply(tables, event)
        if events:
            for event in self.log[transactions][:events]:
                apply(tables, event)
        return tables

    # -- private

    def _append(self, events: list[Event]) -> None:
        source = self.random.choice(_SOURCES)
        self._numbers[source] += 1
        number = self._numbers[source]
        self.gtids.append(":".join(part for part in (*source, str(number)) if part))
        self.log.append(events)
        self.delivered.append(self.delivered[-1] | GtidSet({source: [(number, number)]}))
        self.index[self.delivered[-1]] = len(self.log)

    def _changes(self, count: int) -> list[Event]:
        events = []
        for _ in range(count):
            event = self._change()
            if event is not None:
                apply(self.committed, event)
                events.append(event)
        return events

    def _change(self) -> Event | None:
        """None where every key is locked."""
        table = self.random.choice(list(TABLES))
        prepared = [event for xa in self.prepared.values() for event in xa.events if event.table == table]
        locked = {key for event in prepared for key in (event.key, event.new_key)}
        rows, keys = self.committed[table].rows, [key for key in keys_of(table) if key not in locked]
        if not keys:
            return None
        key = self.random.choice(keys)
        if key not in rows:
            return Event("put", table, self._version(), key)
        dice = self.random.random()
        if dice < 0.25:
            return Event("delete", table, self._version(), key)
        free = [other for other in keys if other not in rows]
        if dice < 0.5 and free:
            return Event("rekey", table, self._version(), key, self.random.choice(free))
        return Event("put", table, self._version(), key)

    def _version(self) -> int:
        self.versions += 1
        return self.versions


def keys_of(table: TableId) -> list[Row]:
    """Every key that a row of the table can have."""
    return [(i,) for i in range(9)] if TABLES[table] == 1 else [(i, j) for i in range(3) for j in range(3)]
