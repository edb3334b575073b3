"""The kinds of differences between a table and its topic."""

from __future__ import annotations

from collections.abc import Sequence

from incsnap.verify.proof import LastRecord, RowPlace

MISSING = "missing"  #: the table has the row, the topic has no record of it or a deletion
STALE = "stale"  #: the topic has an older version of the row
WRONG = "wrong"  #: the topic has another row, and nothing shows that it is an older one
EXTRA = "extra"  #: the topic has a row that the table does not have
NO_TOMBSTONE = "no_tombstone"  #: the row is deleted, and its tombstone was never sent
UNVERIFIABLE = "unverifiable"  #: nothing can be proved about the key
SENT_TWICE = "sent_twice"  #: a record of the topic that repeats an earlier one
BACK_IN_TIME = "back_in_time"  #: a record of the topic that is older than an earlier one of its key

#: Kinds that a snapshot of the key, or its deletion, puts right.
DIFFERENCES = (MISSING, STALE, WRONG, EXTRA, NO_TOMBSTONE)
#: Kinds of keys that the table does not have.
ABSENT = (EXTRA, NO_TOMBSTONE)
#: Kinds of the topic's history alone.
OF_HISTORY = (SENT_TWICE, BACK_IN_TIME)
KINDS = (*DIFFERENCES, UNVERIFIABLE, *OF_HISTORY)


def kind_of(row: bytes | None, record: LastRecord | None, older: LastRecord | None, last_event: RowPlace | None) -> str:
    """Return the kind of a proved difference.

    `row` is the table's, `record` the last one in the topic. `older` is an earlier record of the key with the row of
    `record`, None if there is none. `last_event` is the place of the key's last event in the binlog; None if it is not
    known.
    """
    if row is None:
        return EXTRA if record is not None and record.row is not None else NO_TOMBSTONE
    if record is None or record.row is None:
        return MISSING
    return STALE if older is not None or is_behind(record.place or record.read_at, last_event) else WRONG


def older_record(record: LastRecord | None, others: Sequence[LastRecord]) -> LastRecord | None:
    """Return the newest record of a key before `record` that has the row of `record`, or None.

    `others`: records of the key, the oldest first. If the key has changed since `record` was judged, `record` and later
    ones are among them.
    """
    if record is None or record.row is None:
        return None
    older = (each for each in others if each.partition != record.partition or each.offset < record.offset)
    return next((each for each in reversed(list(older)) if each.row == record.row), None)


def is_behind(place: RowPlace | None, later: RowPlace | None) -> bool:
    """Return True if both places are known, and `later` comes after `place`."""
    return place is not None and later is not None and place < later
