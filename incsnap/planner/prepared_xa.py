"""The planner's part in XA transactions: which are prepared at the end of a batch, and which were prepared before a new
job began.

The binlog has the rows of an XA transaction at its XA PREPARE, and they become visible at its XA COMMIT. So for a
transaction that was prepared before a job's beginning, a thread searches the binlog for the XA PREPARE, beside the
stream. The search may fail: XA RECOVER also lists a transaction that changed nothing, and the binlog has no PREPARE of
it. Such a transaction looks like one whose binlog file is purged, and the search reads all binlog files. So a job does
not wait for the search.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.prepared import MEMORY_BYTES, PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import ConnectionLost, connect_beside
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.prepared_transactions import PreparedFiles, parts_let_go, prepared_after
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError, shorten
from incsnap.events import PreparedXa
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import dial
from incsnap.mysql.xa import prepared_xids
from incsnap.planner.ended_unlogged import EndedUnlogged, XaRecovery
from incsnap.snapshot.offset import Offset

_log = logging.getLogger(__name__)

#: Seconds of rest after each megabyte that was read, so that the stream keeps most of the planner's processor.
_REST_SECONDS = 0.03
#: Seconds until the search begins again after its connection broke, or a file was purged under it.
_AGAIN_SECONDS = 5.0


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

    def search(self, start: Offset, tail: Tail, of_tools: Collection[str]) -> None:
        """Start the search for the transactions that `start` seeks, beside the stream that `tail` reads from there.

        Rows of the tables `of_tools` are left out, as `TableId.folded` gives them.
        """
        if start.sought and self._search is None:
            self._search = SoughtXas(self._settings, tail, start.stream.delivered, of_tools)

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


class SoughtXas:
    """A thread that searches the binlog for the XA PREPARE of the XA transactions that a new job has missed.

    The newest file is searched first. `tail` says which transactions are sought, and receives each one as soon as it is
    found. `before` is the GTID set at the job's beginning: only transactions in it are searched. Rows of the tables
    `of_tools` are left out. The tail is woken when the search ends.
    """

    def __init__(self, settings: Settings, tail: Tail, before: GtidSet, of_tools: Collection[str]) -> None:
        included = settings.tables.included
        self._prepared = tail.prepared
        self._before = before
        self._wake = tail.wake
        self._closed = threading.Event()
        self._search = PreparedSearch(
            partial(connect_beside, partial(dial, settings.mysql)),
            settings.mysql.server_id,
            lambda table: included(table) and table.folded not in of_tools,
            tail.prepared,
            settings.failures.processing,
            take=tail.prepared.take_sought,
            closed=partial(self._closed.wait, _REST_SECONDS),
        )
        #: Whether the search has come to its end. What it has not found is not searched again.
        self.is_done = False
        self._thread = threading.Thread(target=self._run, name="incsnap-xa-search", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. It may be called twice."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set() and (xids := self._prepared.sought()):
            try:
                missing = self._search.find(xids, self._before)
            except ConnectionLost as lost:
                _log.debug("looking for prepared XA transactions: %s", lost)
                self._closed.wait(_AGAIN_SECONDS)
                continue
            except IncsnapError as error:
                _log.warning(
                    "Prepared XA transactions were not found, and are searched again at XA COMMIT: %s",
                    error,
                )
                break
            self._tell(missing & self._prepared.sought())
            break
        if not self._closed.is_set():
            self.is_done = True
            self._wake()

    def _tell(self, missing: set[str]) -> None:
        """Warn of transactions that were not found."""
        if missing:
            _log.warning(
                "XA RECOVER lists %s, and the binlog has no XA PREPARE of it before the job's beginning. A branch that"
                " changed nothing has none. If the binlog file with its XA PREPARE is purged, the job stops at its XA"
                " COMMIT: roll it back before that, or commit it and signal execute-snapshot for its tables",
                shorten(", ".join(sorted(missing)), 400),
            )
