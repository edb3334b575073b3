"""The search for XA transactions that were prepared before a job's beginning, beside the stream.

XA RECOVER lists a branch that changed nothing like any other, and nothing of it is in the binlog. Nobody can tell it
from one whose binlog file is purged. So a job does not wait for the search: it would read all files for a branch
that changed nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import ConnectionLost
from incsnap.binlog.read_again import connect_beside
from incsnap.errors import IncsnapError, shorten
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)

#: Seconds of rest behind each megabyte that was read: the stream keeps most of the planner's processor.
_REST_SECONDS = 0.03
#: Seconds until the search is begun again after its connection broke, or a file was purged under it.
_AGAIN_SECONDS = 5.0


class SoughtXas:
    """A thread that looks for the XA PREPARE of what ``prepared`` seeks, newest file first, in the transactions
    ``before``. What it finds is taken into ``prepared`` at once. ``wake`` is called when it is done."""

    def __init__(
        self, search: PreparedSearch, prepared: PreparedTransactions, before: GtidSet, wake: Callable[[], None]
    ) -> None:
        self._prepared = prepared
        self._before = before
        self._wake = wake
        self._closed = threading.Event()
        self._search = replace(
            search,
            connect=partial(connect_beside, search.connect),
            take=prepared.take_sought,
            closed=partial(self._closed.wait, _REST_SECONDS),
        )
        #: Has the search come to its end? What it has not found is not looked for again.
        self.is_done = False
        self._thread = threading.Thread(target=self._run, name="incsnap-xa-search", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; may be called twice."""
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
                _log.warning("Prepared XA transactions are looked for when they are committed: %s", error)
                break
            self._tell(missing & self._prepared.sought())
            break
        if not self._closed.is_set():
            self.is_done = True
            self._wake()

    def _tell(self, missing: set[str]) -> None:
        if missing:
            _log.warning(
                "XA RECOVER lists %s, and the binlog has no XA PREPARE of it before the job's beginning. A branch that"
                " changed nothing has none. If the binlog file with it is purged, the job stops at its XA COMMIT: XA"
                " ROLLBACK it before, or read its tables again behind it",
                shorten(", ".join(sorted(missing)), 400),
            )
