"""Transactions of a writer that are XA ones: prepared, left for a while, then committed or rolled back."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pymysql
from pymysql.cursors import Cursor

#: Longer than a batch, so that many are prepared in one batch and end in another.
_LONGEST_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class _Left:
    """``done`` is called when it has ended."""

    xid: str
    due: float
    verb: str
    done: Callable[[], None]


class PreparedWrites:
    """``share`` of a writer's transactions are XA ones. The server lets a session go on once it has prepared one
    (``xa_detach_on_prepare``); the rows stay locked."""

    def __init__(self, share: float, random: Random) -> None:
        self._share = share
        self._random = random
        self._names = map(str, itertools.count(1))
        self._prefix = secrets.token_hex(6)
        self._left: list[_Left] = []
        self.ended: dict[str, int] = {"COMMIT": 0, "ROLLBACK": 0, "COMMIT ONE PHASE": 0}

    def start(self, cursor: Cursor) -> str:
        """Begins one, or not: then the name is ""."""
        if not self._share or self._random.random() >= self._share:
            return ""
        xid = f"'{self._prefix}','{next(self._names)}'"
        cursor.execute(f"XA START {xid}")
        return xid

    def leave(self, cursor: Cursor, xid: str, *, rolls_back: bool, done: Callable[[], None]) -> None:
        """Prepares it, to be ended later; one in ten is committed in one phase at once."""
        cursor.execute(f"XA END {xid}")
        if not rolls_back and self._random.random() < 0.1:
            cursor.execute(f"XA COMMIT {xid} ONE PHASE")
            self.ended["COMMIT ONE PHASE"] += 1
            done()
            return
        cursor.execute(f"XA PREPARE {xid}")
        due = time.monotonic() + self._random.uniform(0, _LONGEST_SECONDS)
        self._left.append(_Left(xid, due, "ROLLBACK" if rolls_back else "COMMIT", done))

    def give_up(self, cursor: Cursor, xid: str) -> None:
        """Rolls back what a lock has stopped, before it is prepared."""
        with contextlib.suppress(pymysql.MySQLError):  # a deadlock has ended it already
            cursor.execute(f"XA END {xid}")
        cursor.execute(f"XA ROLLBACK {xid}")

    def end(self, cursor: Cursor, *, all_of_them: bool = False) -> None:
        """Ends those that have waited long enough."""
        now = time.monotonic()
        for waiting in [waiting for waiting in self._left if all_of_them or waiting.due <= now]:
            cursor.execute(f"XA {waiting.verb} {waiting.xid}")
            self._left.remove(waiting)
            self.ended[waiting.verb] += 1
            waiting.done()
