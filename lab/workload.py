"""A writer: a thread that inserts, updates, deletes and re-keys rows in transactions of all sizes.

Some transactions are rolled back. Several writers may change the same tables, because each owns its share of the keys.
So the versions of one key grow in commit order, by which a replay is judged (`history`).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId
from lab.history import ROLLED_BACK
from lab.owned_keys import ALL_KEYS, OwnedKeys, PendingWrites, Share
from lab.prepared_writes import PreparedWrites
from lab.table_designs import TableDesign

_DEADLOCK, _LOCK_WAIT = 1213, 1205
#: A tool for online schema changes may take a table away for a moment.
_NO_TABLE = 1146


@dataclass(slots=True)
class WorkDone:
    """The work that a writer has committed so far."""

    changes: int = 0  #: changed rows of committed transactions
    transactions: int = 0  #: committed transactions
    rollbacks: int = 0  #: transactions that were rolled back
    by_kind: dict[str, int] = field(default_factory=dict)  #: changes by kind, such as `update`


class Writer:
    """A thread that writes from `with Writer(...) as writer:` until the block's end or `stop`, which raises its error.

    `connect` opens a new connection. `rate` is the most row changes a second. `first_version` must exceed every version
    in the tables. `xa_share` is the share of transactions that are XA ones, `rollback_share` the share that is rolled
    back, both from 0 to 1.
    """

    def __init__(
        self,
        connect: Callable[[], Connection[Cursor]],
        tables: Sequence[tuple[TableDesign, TableId]],
        *,
        seed: int,
        rate: float = 300.0,
        share: Share = ALL_KEYS,
        first_version: int = 1,
        largest_transaction: int = 30,
        xa_share: float = 0.0,
        rollback_share: float = 0.07,
    ) -> None:
        self.written = WorkDone()
        self._random = Random(seed)
        self.prepared = PreparedWrites(xa_share, self._random)
        self._rate = rate
        self._largest = largest_transaction
        self._rollback_share = rollback_share
        self._versions = itertools.count(first_version)
        self._connection = connect()
        self._connection.autocommit(False)
        with self._connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            if xa_share:  # prepared transactions keep their locks
                cursor.execute("SET innodb_lock_wait_timeout = 1")
        self._keys = [OwnedKeys(self._connection, design, table, share, first_version) for design, table in tables]
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="incsnap-writer", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the thread. Raise its error if it has failed. May be called twice."""
        self._stop.set()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def failed(self) -> bool:
        """Whether the thread has ended with an error that `stop` has not raised yet."""
        return self._error is not None

    def _run(self) -> None:
        try:
            with self._connection, self._connection.cursor() as cursor:
                due = time.monotonic()
                while not self._stop.is_set():
                    self.prepared.end(cursor)
                    due += self._transaction() / self._rate
                    # A delay is not made up for: a slow machine gets a slower writer, not a burst.
                    due = max(due, time.monotonic() - 0.2)
                    self._stop.wait(max(0.0, due - time.monotonic()))
                self.prepared.end(cursor, all_of_them=True)
        except Exception as error:  # noqa: BLE001 - handed to the thread that stops us
            self._error = error

    def _transaction(self) -> int:
        """Run one transaction on one or more tables. Return its number of changes."""
        random = self._random
        changes = 1 if random.random() < 0.6 else random.randrange(2, self._largest)
        rolled_back = random.random() < self._rollback_share
        pending = [PendingWrites(keys) for keys in self._keys]
        kinds: list[str] = []
        xid = ""
        try:
            with self._connection.cursor() as cursor:
                xid = self.prepared.start(cursor)
                for _ in range(changes):
                    version = ROLLED_BACK if rolled_back else next(self._versions)
                    kinds.append(random.choice(pending).change(cursor, random, version))
                if random.random() < 0.3:
                    # One event with many rows.
                    version = ROLLED_BACK if rolled_back else next(self._versions)
                    kinds.append(random.choice(pending).change_several(cursor, random, version))
                if xid:
                    self._leave(cursor, xid, pending, kinds, rolls_back=rolled_back)
                    return changes
        except (pymysql.OperationalError, pymysql.ProgrammingError) as error:
            if error.args[0] not in (_DEADLOCK, _LOCK_WAIT, _NO_TABLE):
                raise
            rolled_back = True
        if rolled_back:
            if xid:
                with self._connection.cursor() as cursor:
                    self.prepared.give_up(cursor, xid)
            self._connection.rollback()
            self.written.rollbacks += 1
            return changes
        self._connection.commit()
        self._accept(pending, kinds)
        return changes

    def _leave(
        self, cursor: Cursor, xid: str, pending: Sequence[PendingWrites], kinds: list[str], *, rolls_back: bool
    ) -> None:
        """Prepare an XA transaction. Its rows stay locked until it ends."""
        for each in pending:
            each.lock()

        def done() -> None:
            for each in pending:
                each.unlock()
            if rolls_back:
                self.written.rollbacks += 1
            else:
                self._accept(pending, kinds)

        self.prepared.leave(cursor, xid, rolls_back=rolls_back, done=done)

    def _accept(self, pending: Sequence[PendingWrites], kinds: list[str]) -> None:
        for each in pending:
            each.accept()
        self.written.transactions += 1
        self.written.changes += len(kinds)
        for kind in kinds:
            self.written.by_kind[kind] = self.written.by_kind.get(kind, 0) + 1
