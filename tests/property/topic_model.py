"""The topic as an independent consumer reads it, and the invariants that must hold for it (I3, I4, I5, I6, I8)."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from incsnap.tables import TableId
from tests.property.server_model import Row

if typing.TYPE_CHECKING:
    from tests.property.job_model import Job


class Violation(AssertionError):
    """An error: the run has broken an invariant. `kind` names it."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


@dataclass(frozen=True)
class Record:
    """A record as the consumer reads it."""

    table: TableId
    #: c, u or d for an event, t for a TRUNCATE, r for a snapshot row, x for a deletion that a snapshot has found
    op: str
    key: Row | None
    version: int
    transaction: int = -1  #: index of the event's transaction; -1 for a snapshot row
    #: For r and x: the number of the reading that found it. For r: how many DDLs had changed its table then.
    reading: int = 0
    shape: int = 0
    #: Id of the signal that asked for the snapshot row.
    signal: str = ""


class Topic:
    def __init__(self, buckets: int) -> None:
        self.buckets: list[list[tuple[int, Record]]] = [[] for _ in range(buckets)]
        self._forbidden: list[tuple[int, str, set[TableId]]] = []

    def append(self, bucket: int, batch: int, records: list[Record]) -> None:
        self.buckets[bucket] += [(batch, record) for record in records]

    def forbid(self, batch: int, signal: str, tables: set[TableId]) -> None:
        """Note that a signal was stopped: from this batch on, no row of these tables may come for it."""
        self._forbidden.append((batch, signal, tables))

    def check(self, job: Job) -> None:
        rows: dict[TableId, dict[Row, int]] = {table: {} for table in job.server.committed}
        for bucket in self.buckets:
            self._replay(bucket, rows, job)
        self._check_tables(rows, job)
        self._check_signals(job)
        self._check_stops()

    def _replay(self, bucket: list[tuple[int, Record]], rows: dict[TableId, dict[Row, int]], job: Job) -> None:
        last: dict[tuple[TableId, Row], int] = {}
        cleared: dict[TableId, int] = {}
        seen: set[object] = set()
        for batch, record in bucket:
            self._check_once(batch, record, seen, job)
            if record.key is None:
                cleared[record.table] = record.version
                for key in [key for key in rows[record.table] if (record.table, key) in last]:
                    del rows[record.table][key]
                continue
            if record.op == "x":
                if record.key in rows[record.table]:
                    raise Violation("vanished", f"{record} in batch {batch}, though the row is there")
                continue
            newest = max(last.get((record.table, record.key), -1), cleared.get(record.table, -1))
            # A snapshot row may repeat the version of an event before it. It may not be older.
            if record.version < newest:
                raise Violation("back in time", f"{record} in batch {batch} after version {newest}")
            last[record.table, record.key] = record.version
            if record.op == "d":
                rows[record.table].pop(record.key, None)
            else:
                rows[record.table][record.key] = record.version

    @staticmethod
    def _check_once(batch: int, record: Record, seen: set[object], job: Job) -> None:
        """Raise Violation if an event comes twice, or a snapshot row comes twice for one request.

        A row may come again if a DDL changed the key, because the table then begins again. It may also come again if a
        changed layout took back a window of which a part was sent.
        """
        identity: object = (record.table, record.key, record.op, record.version)
        if record.op in "rx":
            if job.server.committed[record.table].key_shape or job.relaid:
                return
            identity = (record.table, record.key, record.op, record.signal)
        if identity in seen:
            raise Violation("twice", f"{record} in batch {batch}")
        seen.add(identity)

    def _check_tables(self, rows: dict[TableId, dict[Row, int]], job: Job) -> None:
        """Raise Violation if a replay of the topic does not give the tables (I3).

        A row in quarantine may differ, if nobody has changed it since.
        """
        for table, contents in job.server.committed.items():
            for key in contents.rows.keys() | rows[table].keys():
                if contents.rows.get(key) != rows[table].get(key) and key not in job.quarantined:
                    got, is_ = rows[table].get(key), contents.rows.get(key)
                    raise Violation("diverged", f"{table} {key}: topic {got}, table {is_}")

    def _check_signals(self, job: Job) -> None:
        """Raise Violation if a row is missing that was in the table when a signal asked for it.

        It must have arrived as a snapshot row for that signal, or in a later event.
        """
        arrived: dict[tuple[TableId, Row], list[Record]] = {}
        truncated: dict[TableId, int] = {}
        for bucket in self.buckets:
            for _, record in bucket:
                if record.key is None:
                    truncated[record.table] = max(record.transaction, truncated.get(record.table, -1))
                else:
                    arrived.setdefault((record.table, record.key), []).append(record)
        for signal, (transaction, version) in job.signalled_at.items():
            before = job.server.tables_at(transaction, 0)
            for collection in job.asked[signal].collections:
                table = collection.table
                if table in job.stopped.get(signal, ()) or truncated.get(table, -1) >= transaction:
                    continue
                meant = job.listed.get(signal)
                for key in before[table].rows if meant is None else meant & before[table].rows.keys():
                    came = arrived.get((table, key), ())
                    if key not in job.quarantined and not any(
                        record.signal == signal or (record.transaction, record.version) > (transaction, version)
                        for record in came
                    ):
                        raise Violation("missing", f"{table} {key}, there at signal {signal}, never came")

    def _check_stops(self) -> None:
        for batch, signal, tables in self._forbidden:
            for bucket in self.buckets:
                for sent, record in bucket:
                    if sent >= batch and record.signal == signal and record.table in tables:
                        raise Violation("stopped", f"{record} in batch {sent} after the stop in {batch}")
