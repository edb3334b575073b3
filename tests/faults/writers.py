"""Writers that survive a restart of their server: new writers replace those whose connection was lost."""

from __future__ import annotations

from collections import Counter
from contextlib import closing, suppress

import pymysql

from lab.captured_database import CapturedDatabase
from lab.owned_keys import Share
from lab.workload import Writer

#: More versions than one writer makes. The next writers' versions are higher by this number.
_VERSIONS = 1_000_000


class Writers:
    """Two writers on all tables of the database. A tenth of their transactions are XA ones. Call `stop` at the end."""

    def __init__(self, play: CapturedDatabase, seed: int, rate: float) -> None:
        self._play, self._seed, self._rate = play, seed, rate
        self._writers: list[Writer] = []
        self._generation = 0
        self._changes = 0
        #: Number of XA transactions, by how they ended.
        self.prepared: Counter[str] = Counter()

    @property
    def changes(self) -> int:
        """Return the number of changed rows so far."""
        return self._changes + sum(writer.written.changes for writer in self._writers)

    def keep(self) -> None:
        """Start the writers, or start new ones if one has failed. The server must answer."""
        if self._writers and not any(writer.failed for writer in self._writers):
            return
        self.stop()
        self._give_up_prepared()
        self._generation += 1
        first = self._generation * _VERSIONS
        self._writers = [
            Writer(
                self._play.connect,
                self._play.tables,
                seed=self._seed * 1_000 + first // _VERSIONS * 2 + index,
                rate=self._rate,
                share=Share(index, 2),
                first_version=first,
                xa_share=0.1,
            )
            for index in range(2)
        ]
        for writer in self._writers:
            writer.__enter__()

    def stop(self) -> None:
        """Stop the writers. Ignore errors of a lost server, and raise all others."""
        for writer in self._writers:
            with suppress(pymysql.MySQLError, OSError):
                writer.stop()
            self._changes += writer.written.changes
            self.prepared.update(writer.prepared.ended)
        self._writers = []

    def finish(self) -> None:
        """Stop the writers for good. No prepared transaction remains."""
        self.stop()
        self._give_up_prepared()

    def _give_up_prepared(self) -> None:
        """Roll back all prepared transactions: those of writers that lost their server would lock rows forever.

        Every prepared transaction on this server is ours.
        """
        with closing(self._play.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("XA RECOVER")
            for _, length, _, name in list(cursor.fetchall()):
                cursor.execute(f"XA ROLLBACK '{name[:length]}','{name[length:]}'")
