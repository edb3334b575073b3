"""The planner's part in XA transactions: which are prepared at the end of a batch, and where a new job begins."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.prepared import MEMORY_BYTES, PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.prepared_transactions import PreparedFiles, parts_let_go, prepared_after
from incsnap.config.settings import Settings
from incsnap.errors import shorten
from incsnap.events import PreparedXa
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import dial
from incsnap.mysql.xa import prepared_xids
from incsnap.planner.ended_unlogged import EndedUnlogged, XaRecovery
from incsnap.planner.sought_xa import SoughtXas
from incsnap.snapshot.offset import Offset

_log = logging.getLogger(__name__)


def first_place(connection: Connection[Any], place: GtidSet | None) -> tuple[GtidSet, tuple[str, ...]]:
    """Return where a new job begins, and the names of the XA transactions that are prepared then.

    The job begins after the transactions `place`, or after all that is executed now. It needs the rows of a prepared
    transaction at its XA COMMIT: a snapshot does not see these rows before, and the server does not send them again
    then. So they must be searched in the binlog. Without the privilege XA_RECOVER_ADMIN no name is known. The tail then
    searches when it meets such an XA COMMIT.
    """
    xids = prepared_xids(connection) or ()  # asked before `executed`, which then contains their XA PREPARE
    executed = watermarks.executed(connection) if place is None else place
    if xids:
        _log.warning(
            "XA transactions are prepared: %s. Their rows are searched in the binlog, beside the stream",
            shorten(", ".join(xids), 400),
        )
    return executed, xids


class PreparedXas:
    """The prepared transactions of one planner. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._settings = settings
        self._files = PreparedFiles(files)
        choice = settings.tables.model_dump_json().encode()
        self._captured = hashlib.sha256(choice).hexdigest()[:16]
        self._search: SoughtXas | None = None
        self._ended = EndedUnlogged()

    def transactions_from(self, start: Offset) -> PreparedTransactions:
        """Return the store of prepared transactions for a tail that begins at `start`."""
        return PreparedTransactions(
            self._files, start.prepared, self._captured, memory_bytes=MEMORY_BYTES, sought=start.sought
        )

    def search(self, start: Offset, tail: Tail) -> None:
        """Start the search for the transactions that `start` seeks, beside the stream that `tail` reads from there."""
        if start.sought and self._search is None:
            settings = self._settings
            search = PreparedSearch(
                partial(dial, settings.mysql),
                settings.mysql.server_id,
                settings.tables.included,
                tail.prepared,
                settings.failures.processing,
            )
            self._search = SoughtXas(search, tail.prepared, start.stream.delivered, tail.wake)

    def close(self) -> None:
        """End the search."""
        if self._search is not None:
            self._search.close()

    def adopt(self, start: Offset, planned: Offset | None) -> None:
        """Mark the files of earlier processes that neither `start` nor `planned` names. They are deleted later.

        Call this at a start. `planned` is the end of the batch after `start`; None if it is not planned yet.
        """
        self._files.adopt((*start.prepared, *(planned.prepared if planned else ())), start.batch)

    def ask_server(self, start: Offset, connection: Connection[Any], *, same_server: bool) -> None:
        """Ask the server, from time to time, which prepared transactions have ended.

        `same_server`: `connection` leads to the server that the binlog comes from.
        """
        if same_server:
            asked = XaRecovery(
                partial(watermarks.executed, connection),
                partial(prepared_xids, connection),
                partial(watermarks.high_watermark, connection),
            )
            self._ended.ask_server(start.prepared, start.stream.server_uuid, asked, time.monotonic())

    def is_worth_a_batch(self, start: Offset, advance: Advance, tail: Tail) -> bool:
        """Whether the batch behind `start` would write down another set of prepared or sought transactions."""
        if start.sought and ((self._search and self._search.is_done) or tail.prepared.taken(start.sought)):
            return True
        return bool(self._ended.among(start.prepared, advance.end))

    def after(self, start: Offset, end: Offset, advance: Advance, tail: Tail) -> Offset:
        """Return `end` with the transactions that are prepared there and those still sought.

        The former are on the disk by then.
        """
        # Asked before `taken`, which then has all that the search has found
        done = self._search is not None and self._search.is_done
        taken = tail.prepared.taken(start.sought)
        before = (*start.prepared, *tail.prepared.keep(taken)) if taken else start.prepared
        prepared = prepared_after(before, advance.marks, tail.prepared.keep) if advance.marks else before
        if ended := self._ended.among(prepared, end.stream):
            prepared = tuple(each for each in prepared if each not in ended)
            self._forget(ended, tail)
        if prepared is not start.prepared:
            self._files.release(parts_let_go(before, advance.marks, prepared), end.batch)
        known = {mark.transaction.xid for mark in advance.marks} | {each.xid for each in taken}
        sought = () if done else tuple(xid for xid in start.sought if xid not in known)
        return replace(end, prepared=prepared, sought=sought)

    def _forget(self, ended: Sequence[PreparedXa], tail: Tail) -> None:
        """Forget transactions that have ended unlogged, and warn of each."""
        for each in ended:
            tail.prepared.forget(each)
            _log.warning(
                "The XA transaction %s, prepared as %s, has ended on the server without a word in the binlog"
                " (sql_log_bin=0). The job does not wait for it any more. If it was committed, its rows are missing in"
                " the topics: signal execute-snapshot for its tables",
                each.xid,
                each.gtid,
            )

    def forget(self, done: int) -> None:
        """Delete files that batch `done` was the last to need. The batch is done."""
        self._files.forget(done)
