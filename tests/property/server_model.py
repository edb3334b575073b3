"""A small model of a MySQL server with its commit stages: written and sent, visible to SELECT, in gtid_executed.

`log` is the binlog, and all of it has been sent. SELECT sees the first `visible` transactions, and gtid_executed holds
the first `executed` ones: executed <= visible <= len(log). Both numbers grow by one at a time, as with
binlog_order_commits=ON. A failover moves to another server with the same transactions, but with other positions and
another progress.

An XA transaction has two transactions in the log. The first prepares it, and its rows are not visible. The second
commits it, has no rows of its own, and makes these rows visible. Its keys are locked in between. `log` has the events
that each transaction makes visible.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from incsnap.events import SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import Command
from incsnap.tables import TableId

#: The key of a row in the model: one integer for each key column.
Row = tuple[int, ...]

#: Table -> number of its key columns.
TABLES = {TableId("db", "a"): 1, TableId("db", "b"): 2}
_SOURCES = (("3e11fa47-71ca-11e1-9e33-c80aa9429562", ""), ("4e11fa47-71ca-11e1-9e33-c80aa9429562", "tag"))


@dataclass(frozen=True)
class Event:
    """An event of the binlog."""

    kind: str  #: put (insert or update), delete, rekey, truncate, ddl or signal
    table: TableId
    version: int  #: number that grows with every event
    key: Row = ()
    new_key: Row = ()
    rekeys_table: bool = False  #: a DDL that changes the table's key
    command: Command | None = None

    def change(self) -> SchemaChange:
        return SchemaChange(frozenset({self.table}), self.table.database, self.kind, truncates=self.kind == "truncate")


@dataclass(frozen=True)
class Xa:
    """A transaction of the log that prepares, commits or rolls back an XA transaction."""

    verb: str  #: `prepare`, `commit` or `rollback`
    xid: str
    events: tuple[Event, ...]  #: events of the XA transaction


@dataclass
class Table:
    """The rows of a table."""

    rows: dict[Row, int]  #: key -> version
    shape: int = 0  #: number of DDLs so far
    key_shape: int = 0  #: number of DDLs so far that changed the key

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
    """The modelled server. `habit` says which gap between commit stages is wide (see `go_on`).

    `ddl_share` is the share of DDL and TRUNCATE among its transactions, and `xa_share` that of XA among the others.
    """

    def __init__(self, random_: random.Random, habit: str, ddl_share: float, xa_share: float) -> None:
        self.random = random_
        self.habit = habit
        self.ddl_share = ddl_share
        self.xa_share = xa_share
        self.uuid = 0
        self.versions = 0
        self.log: list[list[Event]] = []
        #: Index in `log` -> part of an XA transaction; and the XA transactions that are prepared at the log's end, by
        #: name.
        self.xa: dict[int, Xa] = {}
        self.prepared: dict[str, Xa] = {}
        #: delivered[i] has the GTIDs of the first i transactions. `index` is its inverse, because an offset has only
        #: the set.
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
        """Commit a transaction of up to three changes, and the signals (rows of the signal table)."""
        table = next(iter(TABLES))
        events = [Event("signal", table, self._version(), command=command) for command in signals]
        self._append(events + self._changes(self.random.randint(0 if signals else 1, 3)))

    def change_xa(self) -> None:
        """Prepare an XA transaction, or end a prepared one. Some ends are not in the log (sql_log_bin=0)."""
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
        """Do one step: write and send a commit, or make a transaction visible, or executed."""
        # At most 12 transactions wait to become visible: no group commit is larger in this model.
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
        """Move one transaction a stage further.

        The habit says where transactions wait longest: before they are visible, or before they are executed.
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
        """Wait as WAIT_FOR_EXECUTED_GTID_SET does. The server goes on, and commits less than it executes."""
        moves = 0
        while not gtids <= self.delivered[self.executed]:
            self.step() if self.random.random() < 0.2 else self.go_on()
            moves += 1
            if moves % 20 == 0:  # Hypothesis may draw the same number for ever
                self.show()
                self.execute()

    def fail_over(self) -> None:
        """Move to another server with the same binlog contents at other positions.

        It may have applied less, or more.
        """
        self.uuid += 1
        self._shift = self.random.randint(0, 200)
        self.executed = self.random.randint(0, len(self.log))
        self.visible = self.random.randint(self.executed, len(self.log))
        self.view = self.tables_at(self.visible, 0)

    # -- reading

    def server_uuid(self) -> str:
        return f"server-{self.uuid}"

    def position(self, transactions: int, events: int = 0) -> tuple[str, int]:
        """Return (file, pos) after the first `transactions`, and after `events` of the next one."""
        number = transactions + self._shift
        return f"binlog.{1 + number // self._rotation:06d}", 100 * (number % self._rotation) + 10 * events + 4

    def cut(self, transactions: int, events: int = 0) -> StreamPosition:
        file, pos = self.position(transactions, events)
        gtid = self.gtids[transactions] if events else ""
        return StreamPosition(self.delivered[transactions], file, pos, gtid, events)

    def between(self, start: StreamPosition, end: StreamPosition) -> list[tuple[int, Event]]:
        """Return (transaction, event) for each event that becomes visible in the range, from the two positions
        alone."""
        spans = self.spans(start, end)
        return [(number, event) for number, low, high in spans for event in self.log[number][low:high]]

    def spans(self, start: StreamPosition, end: StreamPosition) -> list[tuple[int, int, int]]:
        """Return (transaction, its first event, end of its events) for each transaction of the range."""
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
        """Return the GTID of the transaction that prepares `xid`."""
        return self.gtids[int(xid.split()[1])]

    def prepared_at(self, transactions: int) -> dict[str, Xa]:
        """Return the XA transactions that are prepared after the first `transactions`, by name."""
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
        """Return a change, or None if every key is locked."""
        table = self.random.choice(list(TABLES))
        prepared = [event for xa in self.prepared.values() for event in xa.events if event.table == table]
        locked = {key for event in prepared for key in (event.key, event.new_key)}
        rows, keys = self.committed[table].rows, [key for key in keys_of(table) if key not in locked]
        if not keys:
            return None
        key = self.random.choice(keys)
        if key not in rows:
            return Event("put", table, self._version(), key)
        rng = self.random.random()
        if rng < 0.25:
            return Event("delete", table, self._version(), key)
        free = [other for other in keys if other not in rows]
        if rng < 0.5 and free:
            return Event("rekey", table, self._version(), key, self.random.choice(free))
        return Event("put", table, self._version(), key)

    def _version(self) -> int:
        self.versions += 1
        return self.versions


def keys_of(table: TableId) -> list[Row]:
    """Return every key that a row of the table can have."""
    return [(i,) for i in range(9)] if TABLES[table] == 1 else [(i, j) for i in range(3) for j in range(3)]
