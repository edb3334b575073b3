"""The newest snapshot of a job, as Debezium's metrics show it: its duration, its end and its number of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from incsnap.monitoring.status import LastSnapshot, NotificationStatus
from incsnap.snapshot.notifications import ABORTED, COMPLETED, PAUSED, RESUMED, STARTED, TABLE_SCAN_COMPLETED


class SnapshotHistory:
    """The notifications of this process, folded into a `LastSnapshot`.

    A signal that asks for more tables while a snapshot runs adds to this snapshot. One that runs when the process
    starts counts from the first notification that is seen.
    """

    def __init__(self) -> None:
        self._last = LastSnapshot()
        self._seen: tuple[int, tuple[tuple[str, ...], ...]] = (0, ())
        self._open: set[str] = set()

    def see(self, notifications: Iterable[NotificationStatus]) -> None:
        """Take in the notifications that were not seen before. Each has a time; those of one batch have the same."""
        newest, of_newest = self._seen
        for each in notifications:
            name = (each.id, each.type, each.fields.get("scanned_collection", ""))
            if each.timestamp_ms < newest or (each.timestamp_ms == newest and name in of_newest):
                continue
            of_newest = (*of_newest, name) if each.timestamp_ms == newest else (name,)
            newest = each.timestamp_ms
            self._take(each)
        self._seen = (newest, of_newest)

    def last(self, active_tables: int, now_ms: int) -> LastSnapshot:
        """Return the newest snapshot. `active_tables`: how many tables are being read or wait, at `now_ms`."""
        last = self._last
        if active_tables and (not last.started_ms or last.ended_ms):
            last = self._last = LastSnapshot(started_ms=now_ms)
        return replace(last, tables=last.tables + active_tables)

    def _take(self, each: NotificationStatus) -> None:
        last, at = self._last, each.timestamp_ms
        if each.type == STARTED:
            if not self._open:
                last = LastSnapshot(started_ms=at)
            self._open.add(each.id)
        elif each.type == TABLE_SCAN_COMPLETED:
            last = replace(last, started_ms=last.started_ms or at, tables=last.tables + 1)
        elif each.type == PAUSED and not last.paused_at_ms:
            last = replace(last, paused_at_ms=at)
        elif each.type == RESUMED and last.paused_at_ms:
            last = replace(last, paused_ms=last.paused_ms + at - last.paused_at_ms, paused_at_ms=0)
        elif each.type in (COMPLETED, ABORTED):
            self._open.discard(each.id)
            if not self._open:
                last = replace(last, started_ms=last.started_ms or at, ended_ms=at, aborted=each.type == ABORTED)
        self._last = last
