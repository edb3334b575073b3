"""The planner's part in XA transactions: what is prepared at the ends of batches, and where a new job begins."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.prepared import MEMORY_BYTES, PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.prepared_transactions import PreparedFiles, parts_let_go, prepared_after
from incsnap.config.settings import Settings
from incsnap.errors import OffsetError, ServerUnreachable, shorten
from incsnap.events import PreparedXa
from incsnap.gtid import GtidSet
from incsnap.mysql import watermarks
from incsnap.mysql.session import dial
from incsnap.mysql.xa import prepared_xids
from incsnap.snapshot.offset import Offset

_log = logging.getLogger(__name__)


class PreparedXas:
    """The prepared transactions of one planner; ``files``: the folder beside the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._settings = settings
        self._files = PreparedFiles(files)
        choice = settings.tables.model_dump_json().encode()
        self._captured = hashlib.sha256(choice).hexdigest()[:16]

    def first(self, connection: Connection[Any], place: GtidSet | None) -> tuple[GtidSet, tuple[PreparedXa, ...]]:
        """Where a new job begins, and what is prepared then: behind the transactions ``place``, or behind all that is
        executed now.

        Rows of the prepared come with their XA COMMIT, and from nobody else: a snapshot does not see them before, and
        the server does not send them then. So they are looked for in the binlog. Where XA_RECOVER_ADMIN is missing,
        the tail looks when it meets such an XA COMMIT. ``OffsetError`` names those that are not in the binlog any more;
        not at a given place, behind which they may have been prepared.
        """
        xids = prepared_xids(connection)  # before what is executed, so that it holds their XA PREPARE
        executed = watermarks.executed(connection) if place is None else place
        if not xids:
            return executed, ()
        _log.info("prepared XA transactions: %s", shorten(", ".join(xids)))
        settings = self._settings
        transactions = self.transactions_from(())
        search = PreparedSearch(
            partial(dial, settings.mysql),
            settings.mysql.server_id,
            settings.tables.included,
            transactions,
            settings.failures.processing,
        )
        try:
            missing = search.find(xids, executed)
        except ConnectionLost as lost:
            raise ServerUnreachable(f"The binlog could not be searched for prepared transactions: {lost}") from None
        if missing and place is None:
            raise OffsetError(
                f"the rows of prepared XA transactions are not in the binlog any more: {', '.join(sorted(missing))}",
                "XA COMMIT or XA ROLLBACK them (XA RECOVER CONVERT XID lists them), then start.",
            )
        return executed, tuple(transactions.keep(transactions.all()))

    def transactions_from(self, prepared: tuple[PreparedXa, ...]) -> PreparedTransactions:
        """What a tail keeps of prepared transactions; these are prepared where it begins."""
        return PreparedTransactions(self._files, prepared, self._captured, memory_bytes=MEMORY_BYTES)

    def adopt(self, start: Offset, planned: Offset | None) -> None:
        """To be called at a start: files of other lives that neither offset names can go in time."""
        self._files.adopt((*start.prepared, *(planned.prepared if planned else ())), start.batch)

    def after(self, start: Offset, end: Offset, advance: Advance, tail: Tail) -> Offset:
        """``end`` with what is prepared there, which is on the disk then."""
        if not advance.marks:
            return replace(end, prepared=start.prepared)
        prepared = prepared_after(start.prepared, advance.marks, tail.prepared.keep)
        self._files.release(parts_let_go(start.prepared, advance.marks, prepared), end.batch)
        return replace(end, prepared=prepared)

    def forget(self, done: int) -> None:
        """Batch ``done`` is done."""
        self._files.forget(done)
