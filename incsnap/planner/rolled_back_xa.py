"""The warning about XA transactions that are rolled back after a connector has sent their rows.

Debezium sends the rows of an XA transaction at XA PREPARE. This job sends them at XA COMMIT. So behind a take-over the
topics may have rows that were never committed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from incsnap.binlog.xa_parts import XaMark
from incsnap.envelope.seam import Seam

_log = logging.getLogger(__name__)


def warn_of_sent_rows(marks: Sequence[XaMark], seam: Seam | None) -> None:
    """Warn of each XA ROLLBACK among `marks` whose rows a connector may have sent.

    `seam`: the records that the connector has sent; None if the job has not taken over, or has passed them. A
    transaction that was not found in the binlog has no file. It was prepared before the job's beginning.
    """
    for mark in marks if seam is not None else ():
        if mark.rolled_back and seam is not None and seam.may_have_rows_of(mark.transaction.file):
            _log.warning(
                "The XA transaction %s%s is rolled back. A connector may have sent its rows at XA PREPARE, and they"
                " stay in the topics: `incsnap verify --repair` finds and corrects them",
                mark.transaction.xid,
                f", prepared as {mark.transaction.gtid}," if mark.transaction.gtid else "",
            )
