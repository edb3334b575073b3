"""XA transactions of a writer: prepared, left open for a while, then committed or rolled back."""

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

#: Longest time between PREPARE and the end. It exceeds a batch, so many transactions are prepared in one batch and end
#: in another.
_LONGEST_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class _Left:
    """A prepared transaction that has not ended."""

    xid: str  #: as XA statements write it: two quoted parts
    due: float  #: when to end it, by `time.monotonic()`
    verb: str  #: COMMIT or ROLLBACK
    done: Callable[[], None]  #: called after its end


class PreparedWrites:
    """The XA transactions of one writer. `share` says which part of its transactions are XA ones, from 0 to 1.

    A session can go on after it has prepared a transaction (`xa_detach_on_prepare`), but the rows stay locked.
    """

    def __init__(self, share: float, random: Random) -> None:
        self._share = share
        self._random = random
        self._names = map(str, itertools.count(1))
        self._prefix = secrets.token_hex(6)
        self._left: list[_Left] = []
        self.ended: dict[str, int] = {"COMMIT": 0, "ROLLBACK": 0, "COMMIT ONE PHASE": 0}

    def start(self, cursor: Cursor) -> str:
        """Begin an XA transaction with a probability of `share`. Return its name, or "" if none was begun."""
        if not self._share or self._random.random() >= self._share:
            return ""
        xid = f"'{self._prefix}','{next(self._names)}'"
        cursor.execute(f"XA START {xid}")
        return xid

    def leave(self, cursor: Cursor, xid: str, *, rolls_back: bool, done: Callable[[], None]) -> None:
        """Prepare the transaction `xid`, to be ended later. Commit one in ten in one phase at once.

        `done` is called when the transaction has ended.
        """
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
        """Roll back a transaction that a lock has stopped before it was prepared."""
        with contextlib.suppress(pymysql.MySQLError):  # a deadlock has already ended it
            cursor.execute(f"XA END {xid}")
        cursor.execute(f"XA ROLLBACK {xid}")

    def end(self, cursor: Cursor, *, all_of_them: bool = False) -> None:
        """End the prepared transactions whose time has come, by COMMIT or ROLLBACK.

        `all_of_them` also ends the others.
        """
        now = time.monotonic()
        for waiting in [waiting for waiting in self._left if all_of_them or waiting.due <= now]:
            cursor.execute(f"XA {waiting.verb} {waiting.xid}")
            self._left.remove(waiting)
            self.ended[waiting.verb] += 1
            waiting.done()
