"""The keys that a writer owns, and its changes of these rows within one transaction."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.tables import TableId, quote
from lab.table_designs import Key, TableDesign

#: How many of a hundred picks take one of the few hot keys, and how many hot keys there are. So windows surely meet
#: events of their rows.
_HOT_PERCENT, _HOT_KEYS = 30, 64


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the keys that one writer owns: every key belongs to exactly one of `of` writers."""

    index: int = 0  #: number of this writer, from 0
    of: int = 1  #: number of writers

    def owns(self, folded: Key) -> bool:
        """Whether this writer owns the key `folded`, a result of `TableDesign.fold`."""
        return zlib.crc32(repr(folded).encode()) % self.of == self.index


ALL_KEYS = Share()


class OwnedKeys:
    """The keys of one table that a writer owns: living ones, and deleted ones."""

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
        #: Folded keys of rows that prepared transactions keep locked.
        self.locked: set[Key] = set()
        self._share = share
        # Each version makes at most one key. So a later writer with a higher first_version makes later keys.
        self._numbers = itertools.count(first_number)

    def pick(self, random: Random) -> Key | None:
        """Return a random living key, often a hot one. Return None if no key lives."""
        if not self._living:
            return None
        hot = random.randrange(100) < _HOT_PERCENT
        return self._living[random.randrange(min(_HOT_KEYS, len(self._living)) if hot else len(self._living))]

    def lives(self, key: Key) -> bool:
        """Whether a row with this key exists."""
        return self.design.fold(key) in self._at

    def fresh(self, random: Random) -> Key:
        """Return a key without a row: a new key, or one that was deleted before."""
        if self.dead and random.random() < 0.4:
            return self.dead[random.randrange(len(self.dead))]
        while True:
            key = self.design.new_key(random, next(self._numbers))
            if self._share.owns(self.design.fold(key)):
                return key

    def add(self, key: Key) -> None:
        """Note that a row with this key exists now."""
        self._at[self.design.fold(key)] = len(self._living)
        self._living.append(key)
        if key in self.dead:
            self.dead.remove(key)

    def remove(self, key: Key) -> None:
        """Note that the row with this key was deleted."""
        at = self._at.pop(self.design.fold(key))
        last = self._living.pop()
        if at < len(self._living):
            self._living[at] = last
            self._at[self.design.fold(last)] = at
        self.dead = [*self.dead[-500:], key]


class PendingWrites:
    """The changes of one open transaction to one table. `accept` applies them to the keys after the commit."""

    def __init__(self, keys: OwnedKeys) -> None:
        self._keys = keys
        self._touched: set[Key] = set()
        self._effects: list[Callable[[], None]] = []

    def accept(self) -> None:
        """Apply the changes to the keys. Call this after the commit."""
        for effect in self._effects:
            effect()

    def lock(self) -> None:
        """Keep later transactions away from these rows: a prepared transaction holds them."""
        self._keys.locked |= self._touched

    def unlock(self) -> None:
        """Allow later transactions to change these rows again."""
        self._keys.locked -= self._touched

    def _free(self, key: Key) -> bool:
        folded = self._keys.design.fold(key)
        return folded not in self._touched and folded not in self._keys.locked

    def change(self, cursor: Cursor, random: Random, version: int) -> str:
        """Make one random change with this version: insert, update, delete, or an update of the key.

        Return its kind.
        """
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
                # Change the row twice in one transaction. Both changes have one version, because no reader sees the
                # first one alone.
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
        """Update up to 20 rows by one statement. Return the kind of this change."""
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
        """Return a key that this transaction has not touched, or None if ten picks give no such key."""
        for _ in range(10):
            key = self._keys.pick(random)
            if key is not None and self._free(key):
                self._touched.add(self._keys.design.fold(key))
                return key
        return None

    def _fresh(self, random: Random, old: Key | None = None) -> Key:
        design = self._keys.design
        if old is not None and random.random() < 0.3:
            # An update in place that changes the key's case: MySQL sees the same key, a consumer another one.
            swapped = tuple(part.swapcase() if isinstance(part, str) else part for part in old)
            if swapped != old and design.fold(swapped) == design.fold(old):
                return swapped
        while True:
            key = self._keys.fresh(random)
            if not self._keys.lives(key) and self._free(key):
                self._touched.add(design.fold(key))
                return key
