"""A writer: a thread that inserts, updates, deletes and re-keys rows, in transactions of all sizes, some rolled back.

Several writers may work on the same tables: each owns its share of the keys. So the versions of one key grow in commit
order, which is what lets a replay be judged (``history``).
"""

from __future__ import annotations

import itertools
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.sandbox.designs import Key, TableDesign
from incsnap.sandbox.history import ROLLED_BACK
from incsnap.tables import TableId, quote

#: Of a hundred picks so many are of the few hot keys, so that windows are sure to meet events of their rows.
_HOT_PERCENT, _HOT_KEYS = 30, 64
_DEADLOCK, _LOCK_WAIT = 1213, 1205


@dataclass(slots=True)
class Written:
    """What a writer has done so far; ``changes`` counts rows of committed transactions."""

    changes: int = 0
    transactions: int = 0
    rollbacks: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Share:
    """This writer is number ``index`` of ``of`` on the tables."""

    index: int = 0
    of: int = 1

    def owns(self, folded: Key) -> bool:
        return zlib.crc32(repr(folded).encode()) % self.of == self.index


class Writer:
    """``with Writer(...) as writer:`` runs the thread; leaving the block (or ``stop``) ends it and raises its error.

    :param connect: opens a connection of its own.
    :param rate: row changes a second, at most.
    :param first_version: above every version in the tables.
    """

    def __init__(
        self,
        connect: Callable[[], Connection[Cursor]],
        tables: Sequence[tuple[TableDesign, TableId]],
        *,
        seed: int,
        rate: float = 300.0,
        share: Share = Share(),
        first_version: int = 1,
        largest_transaction: int = 30,
    ) -> None:
        self.written = Written()
        self._random = Random(seed)
        self._rate = rate
        self._largest = largest_transaction
        self._versions = itertools.count(first_version)
        self._connection = connect()
        self._connection.autocommit(False)
        with self._connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
        self._keys = [_Keys(self._connection, design, table, share, first_version) for design, table in tables]
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="incsnap-writer", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Idempotent. :raises Exception: what ended the thread before its time."""
        self._stop.set()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def failed(self) -> bool:
        return self._error is not None

    def _run(self) -> None:
        try:
            with self._connection:
                due = time.monotonic()
                while not self._stop.is_set():
                    due += self._transaction() / self._rate
                    # Being late is not made up for: a slow machine gets a slower writer, not a burst.
                    due = max(due, time.monotonic() - 0.2)
                    self._stop.wait(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - handed to the thread that stops us
            self._error = error

    def _transaction(self) -> int:
        """One transaction on one or more tables; returns its number of changes."""
        random = self._random
        changes = 1 if random.random() < 0.6 else random.randrange(2, self._largest)
        rolled_back = random.random() < 0.07
        pending = [_Pending(keys) for keys in self._keys]
        kinds: list[str] = []
        try:
            with self._connection.cursor() as cursor:
                for _ in range(changes):
                    version = ROLLED_BACK if rolled_back else next(self._versions)
                    kinds.append(random.choice(pending).change(cursor, random, version))
                if random.random() < 0.3:
                    # One event of many rows.
                    version = ROLLED_BACK if rolled_back else next(self._versions)
                    kinds.append(random.choice(pending).change_several(cursor, random, version))
        except pymysql.OperationalError as error:
            if error.args[0] not in (_DEADLOCK, _LOCK_WAIT):
                raise
            rolled_back = True
        if rolled_back:
            self._connection.rollback()
            self.written.rollbacks += 1
            return changes
        self._connection.commit()
        for each in pending:
            each.accept()
        self.written.transactions += 1
        self.written.changes += len(kinds)
        for kind in kinds:
            self.written.by_kind[kind] = self.written.by_kind.get(kind, 0) + 1
        return changes


class _Keys:
    """The keys of one table that a writer owns: those that live, and those it has deleted."""

    def __init__(
        self, connection: Connection[Cursor], design: TableDesign, table: TableId, share: Share, first_number: int
    ) -> None:
        self.design = design
        self.table = table
        columns = ", ".join(quote(name) for name in design.key)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {columns} FROM {table.sql} ORDER BY {columns}")
            living = [key for key in cursor.fetchall() if share.owns(design.fold(key))]
        connection.commit()
        self._living: list[Key] = living
        self._at = {design.fold(key): i for i, key in enumerate(living)}
        self.dead: list[Key] = []
        self._share = share
        # A later writer with a higher first_version makes later keys, for it makes at most one for each version.
        self._numbers = itertools.count(first_number)

    def pick(self, random: Random) -> Key | None:
        if not self._living:
            return None
        hot = random.randrange(100) < _HOT_PERCENT
        return self._living[random.randrange(min(_HOT_KEYS, len(self._living)) if hot else len(self._living))]

    def lives(self, key: Key) -> bool:
        return self.design.fold(key) in self._at

    def fresh(self, random: Random) -> Key:
        """A key that does not live: a new one, or one that was deleted before."""
        if self.dead and random.random() < 0.4:
            return self.dead[random.randrange(len(self.dead))]
        while True:
            key = self.design.new_key(random, next(self._numbers))
            if self._share.owns(self.design.fold(key)):
                return key

    def add(self, key: Key) -> None:
        self._at[self.design.fold(key)] = len(self._living)
        self._living.append(key)
        if key in self.dead:
            self.dead.remove(key)

    def remove(self, key: Key) -> None:
        at = self._at.pop(self.design.fold(key))
        last = self._living.pop()
        if at < len(self._living):
            self._living[at] = last
            self._at[self.design.fold(last)] = at
        self.dead = [*self.dead[-500:], key]


class _Pending:
    """The changes of one open transaction to one table; ``accept`` enters them into the keys after the commit."""

    def __init__(self, keys: _Keys) -> None:
        self._keys = keys
        self._touched: set[Key] = set()
        self._effects: list[Callable[[], None]] = []

    def accept(self) -> None:
        for effect in self._effects:
            effect()

    def change(self, cursor: Cursor, random: Random, version: int) -> str:
        design, table = self._keys.design, self._keys.table
        kind = random.choices(("update", "insert", "delete", "re-key"), (60, 16, 12, 12))[0]
        old = None if kind == "insert" else self._living(random)
        if old is None:
            kind = "insert"
        if old is not None and kind == "update":
            row = design.row(random)
            names = random.sample(sorted(row), random.randrange(1, len(row) + 1))
            self._update(cursor, {name: row[name] for name in names} | {"version": version}, old)
            if random.random() < 0.1:
                # The row twice in one transaction; with the same version, for none of the two is seen alone.
                self._update(cursor, design.row(random), old)
        elif old is not None and kind == "delete":
            cursor.execute(f"DELETE FROM {table.sql} WHERE {self._where()}", old)
            self._effects.append(lambda: self._keys.remove(old))
        elif old is not None:
            new = self._fresh(random, old)
            self._update(cursor, dict(zip(design.key, new, strict=True)) | {"version": version}, old)
            self._effects += [lambda: self._keys.remove(old), lambda: self._keys.add(new)]
        else:
            new = self._fresh(random)
            row = dict(zip(design.key, new, strict=True)) | design.row(random) | {"version": version}
            columns = ", ".join(quote(name) for name in row)
            marks = ", ".join(["%s"] * len(row))
            cursor.execute(f"INSERT INTO {table.sql} ({columns}) VALUES ({marks})", tuple(row.values()))
            self._effects.append(lambda: self._keys.add(new))
        return kind

    def change_several(self, cursor: Cursor, random: Random, version: int) -> str:
        keys = [key for key in (self._living(random) for _ in range(20)) if key is not None]
        if keys:
            where = " OR ".join([f"({self._where()})"] * len(keys))
            cursor.execute(
                f"UPDATE {self._keys.table.sql} SET version = %s WHERE {where}",
                (version, *(part for key in keys for part in key)),
            )
        return "update of several"

    def _update(self, cursor: Cursor, values: dict[str, Any], key: Key) -> None:
        sets = ", ".join(f"{quote(name)} = %s" for name in values)
        statement = f"UPDATE {self._keys.table.sql} SET {sets} WHERE {self._where()}"
        cursor.execute(statement, (*values.values(), *key))

    def _where(self) -> str:
        return " AND ".join(f"{quote(name)} = %s" for name in self._keys.design.key)

    def _living(self, random: Random) -> Key | None:
        """A key that this transaction has not touched."""
        for _ in range(10):
            key = self._keys.pick(random)
            if key is not None and self._keys.design.fold(key) not in self._touched:
                self._touched.add(self._keys.design.fold(key))
                return key
        return None

    def _fresh(self, random: Random, old: Key | None = None) -> Key:
        design = self._keys.design
        if old is not None and random.random() < 0.3:
            # The same key to MySQL, another one to a consumer: an update in place that changes a key's case.
            swapped = tuple(part.swapcase() if isinstance(part, str) else part for part in old)
            if swapped != old and design.fold(swapped) == design.fold(old):
                return swapped
        while True:
            key = self._keys.fresh(random)
            if not self._keys.lives(key) and design.fold(key) not in self._touched:
                self._touched.add(design.fold(key))
                return key
