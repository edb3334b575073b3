"""What a failed chunk means: whose fault it was, and so what is done with its range.

The reader writes ``kind: message`` into the manifest; the kind decides. A chunk that is not to blame is read again
for as long as it takes; one that is too much is halved at once; one whose time ran out is also given twice the time, up
to ``database.query.timeout.ms``, before anything is counted against it; any other is read three times, then halved,
down to one row, which is given up by key after five readings, with a notification. A table is never silently given up.

Nobody can say why a reading was lost: the reader's process may have been killed for the memory that this very chunk
takes, or for anything else, and the whole job with it. One loss means nothing. After the second the range is read by
itself, so that no other is lost with it; after the third it is halved, and its halves at each further loss; a single
row is given up after ten, which take a minute of waiting at least.
"""

from __future__ import annotations

from enum import Enum

#: The low watermark was not reached in time (a commit is stalled): nothing is known about the chunk itself.
STALLED = "stalled"
#: The server did not answer.
UNREACHABLE = "unreachable"
#: The table has not the columns that were expected: a DDL is on its way through the log and will drop the window, or it
#: was described too early. It is described anew.
SHAPE = "shape"
#: No manifest: the task was lost.
LOST = "lost"
#: No manifest after a restart: the job ended before the chunk was read, or of it.
LEFT = "left"
#: No manifest after a restart, and no reader had begun the chunk: nothing is known of it.
UNBEGUN = "unbegun"
#: The SELECT ran into its bound of time, or the rows into theirs of bytes.
TIMEOUT = "timeout"
TOO_LARGE = "too_large"
#: Two rows of one identity, in a table that has no unique key: none of them may be sent, or which is left is chance.
SHARED_KEY = "shared_key"
#: The table has a column that cannot be read (UnsupportedType).
UNSUPPORTED = "unsupported"

#: Readings of one range that failed by its own fault, before it is halved.
ATTEMPTS_BEFORE_SPLIT = 3
#: Readings of a single row, before it is put into quarantine.
ATTEMPTS_BEFORE_QUARANTINE = 5
#: Readings of one range that were lost, before it is read by itself; before a single row is put into quarantine.
LOST_BEFORE_ALONE = 2
LOST_BEFORE_QUARANTINE = 10
#: Batches in a row in which a table's chunks failed and none succeeded, before it ends with SQL_EXCEPTION: what fails
#: so often is not a row but a right or a view. Twice what halving 100,000 rows to one takes (17 levels of 3 readings).
GIVE_UP_AFTER = 100
#: Ranges in quarantine before the table ends with SQL_EXCEPTION; the offset must stay small.
MAX_QUARANTINED = 64
#: Ranges to read again beyond which none is halved any more: the offset must stay small.
MAX_RANGES = 256


class Verdict(Enum):
    """What is to be done with the range of a failed chunk."""

    READ_AGAIN = "read again, nobody is to blame"
    COUNT = "read again, and count it against the range"
    SPLIT = "halve it at once"
    GIVE_UP = "the whole table cannot be read"


_VERDICTS = {
    STALLED: Verdict.READ_AGAIN,
    UNREACHABLE: Verdict.READ_AGAIN,
    SHAPE: Verdict.READ_AGAIN,
    LOST: Verdict.READ_AGAIN,
    LEFT: Verdict.READ_AGAIN,
    UNBEGUN: Verdict.READ_AGAIN,
    TIMEOUT: Verdict.SPLIT,
    TOO_LARGE: Verdict.SPLIT,
    SHARED_KEY: Verdict.SPLIT,
    UNSUPPORTED: Verdict.GIVE_UP,
}


def kind_of(error: str) -> str:
    """The kind of an error that is written as ``kind: message``."""
    return error.partition(":")[0].strip()


def verdict(error: str) -> Verdict:
    """What follows from an error written as ``kind: message``; one of an unknown kind counts against the range."""
    return _VERDICTS.get(kind_of(error), Verdict.COUNT)


def back_off_ms(attempt: int) -> int:
    """How long after the ``attempt``-th failure (from 1) to wait: 0.25 s, doubling, at most 30 s.

    Short at first because most failures are a deadlock or a lost connection; bounded because a table waits for it.
    """
    return int(min(30_000, 250 * 2 ** min(attempt - 1, 10)))
