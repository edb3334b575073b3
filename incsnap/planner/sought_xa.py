"""The search, beside the stream, for XA transactions that were prepared before a job's beginning.

XA RECOVER lists a branch that changed nothing like any other branch, but the binlog has nothing of it. Nobody can tell
it from a branch whose binlog file is purged. So a job does not wait for the search: for a branch that changed nothing
the search reads all binlog files.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.prepared_search import PreparedSearch
from incsnap.binlog.protocol.dump_connection import ConnectionLost, connect_beside
from incsnap.errors import IncsnapError, shorten
from incsnap.gtid import GtidSet

_log = logging.getLogger(__name__)

#: Seconds of rest after each megabyte that was read, so that the stream keeps most of the planner's processor.
_REST_SECONDS = 0.03
#: Seconds until the search begins again after its connection broke, or a file was purged under it.
_AGAIN_SECONDS = 5.0


class SoughtXas:
    """A thread that searches the binlog for the XA PREPARE of the transactions that `prepared` seeks, newest file
    first.

    `before` are all transactions before the job's beginning: only these are searched. A transaction that is found goes
    into `prepared` at once. `wake` is called when the search is done.
    """

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
