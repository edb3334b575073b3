"""The kinds of failed chunks: whether a failure counts against the chunk's range, and what is done with the range.

The reader writes `kind: message` into the manifest. The kind decides:

* A chunk that is not to blame is read again, as often as necessary.
* A chunk that is too large is halved at once.
* A chunk whose time ran out is halved at once, too, and gets twice the time. Nothing counts against it until the time
  has reached `database.query.timeout.ms`.
* Any other failure counts. After three attempts the range is halved, and so on down to one row.
* A single row is given up by its key after five attempts, with a notification.

A table is never given up silently.

The cause of a lost attempt is unknown. The reader's process may have been killed for the memory that this chunk takes,
or for any other reason, and the whole job with it. One loss means nothing. After the second the range is read alone, so
that no other range is lost with it. After the third it is halved, and its halves at each further loss. A single row is
given up after ten losses, which take at least a minute of waiting.
"""

from __future__ import annotations

from enum import Enum

#: The low watermark was not reached in time, because a commit is stalled. Nothing is known about the chunk itself.
STALLED = "stalled"
#: The server did not answer.
UNREACHABLE = "unreachable"
#: The table does not have the expected columns. A DDL is on its way through the binlog and will drop the window, or the
#: table was described too early. It is described again.
SHAPE = "shape"
#: There is no manifest: the task was lost.
LOST = "lost"
#: There is no manifest after a restart: the job ended before the chunk was read, perhaps because of the chunk.
LEFT = "left"
#: There is no manifest after a restart, and no reader had begun the chunk. Nothing is known about it.
UNBEGUN = "unbegun"
#: The SELECT reached its time limit (TIMEOUT), or the rows reached a limit of bytes (TOO_LARGE).
TIMEOUT = "timeout"
TOO_LARGE = "too_large"
#: Two rows have one identity, in a table without a unique key. None of them may be sent, because chance would decide
#: which one is left.
SHARED_KEY = "shared_key"
#: The table has a column that cannot be read (UnsupportedType).
UNSUPPORTED = "unsupported"

#: Readings of one range that failed by its own fault, before it is halved.
ATTEMPTS_BEFORE_SPLIT = 3
#: Attempts at a single row that failed by its own fault, before it is put into quarantine.
ATTEMPTS_BEFORE_QUARANTINE = 5
#: Lost attempts at one range before it is read alone, and of a single row before it is put into quarantine.
LOST_BEFORE_ALONE = 2
LOST_BEFORE_QUARANTINE = 10
#: Batches in a row in which a table's chunks failed and none succeeded, before the table ends with SQL_EXCEPTION. The
#: cause is then not a row but a right or a view. Halving 100,000 rows to one takes half as many (17 levels of 3
#: attempts).
GIVE_UP_AFTER = 100
#: Ranges in quarantine before the table ends with SQL_EXCEPTION. The offset must stay small.
MAX_QUARANTINED = 64
#: Ranges to read again from which on none is halved any more. The offset must stay small.
MAX_RANGES = 256


class Verdict(Enum):
    """The consequence of a failure for the range of the chunk."""

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
    """Return the kind of an error of the form `kind: message`."""
    return error.partition(":")[0].strip()


def verdict(error: str) -> Verdict:
    """Return the verdict on an error of the form `kind: message`. An unknown kind counts against the range."""
    return _VERDICTS.get(kind_of(error), Verdict.COUNT)


def back_off_ms(attempt: int) -> int:
    """Return how many ms to wait after failure number `attempt`: 250 after the first, then doubled, at most 30,000.

    The first waits are short because most failures are a deadlock or a lost connection. The wait has a limit because a
    table waits for it.
    """
    return int(min(30_000, 250 * 2 ** min(attempt - 1, 10)))
