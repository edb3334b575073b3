"""The planner's part in XA transactions: what is prepared at the ends of batches, and where a new job begins."""

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
    """Return where a new job begins, and the names of what is prepared then, whose rows must be looked for.

    The job begins behind the transactions ``place``, or behind all that is executed now. Rows of what is prepared come
    with its XA COMMIT, and from nobody else: a snapshot does not see them before, and the server does not send them
    then. Where XA_RECOVER_ADMIN is missing no name is known, and the tail looks when it meets such an XA COMMIT.
    """
    xids = prepared_xids(connection) or ()  # before what is executed, so that it holds their XA PREPARE
    executed = watermarks.executed(connection) if place is None else place
    if xids:
        _log.warning(
            "XA transactions are prepared: %s. Their rows are looked for in the binlog, beside the stream",
            shorten(", ".join(xids), 400),
        )
    return executed, xids


class PreparedXas:
    """The prepared transactions of one planner; ``files``: the folder beside the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._settings = settings
        self._files = PreparedFiles(files)
        choice = settings.tables.model_dump_json().encode()
        self._captured = hashlib.sha256(choice).hexdigest()[:16]
        self._search: SoughtXas | None = None
        self._ended = EndedUnlogged()

    def transactions_from(self, start: Offset) -> PreparedTransactions:
        """Return what a tail that begins at ``start`` keeps of prepared transactions."""
        return PreparedTransactions(
            self._files, start.prepared, self._captured, memory_bytes=MEMORY_BYTES, sought=start.sought
        )

    def search(self, start: Offset, tail: Tail) -> None:
        """Look for what ``start`` seeks, beside the stream that ``tail`` reads from there."""
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
        """Let files of other lives go in time that neither offset names. To be called at a start."""
        self._files.adopt((*start.prepared, *(planned.prepared if planned else ())), start.batch)

    def look(self, start: Offset, connection: Connection[Any], *, same_server: bool) -> None:
        """Ask the server, from time to time, which of the prepared have ended. ``same_server``: ``connection`` leads to
        the server that the binlog comes from."""
        if same_server:
            asked = XaRecovery(
                partial(watermarks.executed, connection),
                partial(prepared_xids, connection),
                partial(watermarks.high_watermark, connection),
            )
            self._ended.look(start.prepared, start.stream.server_uuid, asked, time.monotonic())

    def is_worth_a_batch(self, start: Offset, advance: Advance, tail: Tail) -> bool:
        """Whether the batch behind ``start`` would write down another set of prepared or sought transactions."""
        if start.sought and ((self._search and self._search.is_done) or tail.prepared.taken(start.sought)):
            return True
        return bool(self._ended.among(start.prepared, advance.end))

    def after(self, start: Offset, end: Offset, advance: Advance, tail: Tail) -> Offset:
        """Return ``end`` with what is prepared there, which is on the disk then, and what is still sought."""
        done = self._search is not None and self._search.is_done  # before what was found is asked for
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
        for each in ended:
            tail.prepared.forget(each)
            _log.warning(
                "The XA transaction %s, prepared as %s, has ended on the server without a word in the binlog"
                " (sql_log_bin=0), and is not waited for any more. If that was an XA COMMIT, its rows are missing in"
                " the topics: signal execute-snapshot for its tables",
                each.xid,
                each.gtid,
            )

    def forget(self, done: int) -> None:
        """Let go what batch ``done``, which is done, was the last to need."""
        self._files.forget(done)
