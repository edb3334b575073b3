"""The rules for the order of one key's records, by which every replay is judged.

The writer gives every row version a growing number (the `version` column), so a topic can be judged without knowing how
it was made. `last` is the version of the key's newest record:

- An insert, update or read below `last` *went back in time*. So did one at `last` if that row is deleted.
- An update or delete whose `before` is not `last` shows that a record is *lost*. So does an insert of a living key.
- A read of a known key must be exactly `last`: the log has already told all that the SELECT could see.

The last two rules are stricter than a consumer needs, for whom the final state would still be right. The proof of the
window promises them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The version of rows that are rolled back. If one appears, every later record of its key goes back in time.
ROLLED_BACK = 2**62


class KeyHistory:
    """The newest record of one key, and what is known of the earlier ones.

    `row` is None when the key is deleted. `version` is -1 before the first record. `reads` counts `r` records. `times`
    has the times at which the records were sent (ms since 1970), if the replay keeps them.
    """

    __slots__ = ("partition", "reads", "row", "times", "version")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.version = -1
        self.row: tuple[Any, ...] | None = None
        self.reads = 0
        self.times: list[int] = []


@dataclass(slots=True)
class Findings:
    """The faults of one kind: their number, and the first five as examples."""

    count: int = 0  #: how often the fault occurred
    examples: list[str] = field(default_factory=list)  #: texts of the first five

    def add(self, text: str) -> None:
        """Count a fault. Keep its text if it is one of the first five."""
        self.count += 1
        if len(self.examples) < 5:
            self.examples.append(text)


@dataclass(slots=True)
class Judgement:
    """The faults of one topic, by kind. A correct topic has none."""

    back_in_time: Findings = field(default_factory=Findings)  #: records older than an earlier record of their key
    lost: Findings = field(default_factory=Findings)  #: records which show that an earlier record is lost
    duplicates: Findings = field(default_factory=Findings)  #: events that came twice
    #: records of a wrong form or at a wrong place, such as a tombstone without a delete
    strays: Findings = field(default_factory=Findings)

    def faults(self) -> list[str]:
        """Return a line for each kind of fault that occurred."""
        kinds = (
            ("keys that went back in time", self.back_in_time),
            ("records that show a loss before them", self.lost),
            ("duplicate events", self.duplicates),
            ("records in the wrong place", self.strays),
        )
        return [
            f"{records.count} {name}, such as {'; '.join(records.examples)}" for name, records in kinds if records.count
        ]


def judge(history: KeyHistory, key: object, op: str, before: int | None, after: int | None, to: Judgement) -> None:
    """Compare a record with the history of its key, and update the history. Add a fault of the record to `to`.

    `before` and `after` are the versions of the record's two rows, None if it has no such row. The caller replaces
    `history.row` afterwards.
    """
    last, alive, is_known = history.version, history.row is not None, history.version >= 0
    version = after if after is not None else before
    if version is None:
        to.strays.add(f"key {key}: op {op} without a row")
        return
    step = f"key {key}: {op} of version {version} after {'' if alive else 'the delete of '}version {last}"
    if is_known:
        if version < last or (version == last and not alive):
            to.back_in_time.add(step)
        elif op == "r":
            if version > last:
                to.lost.add(step)
        elif op == "c":
            if alive:
                to.lost.add(step)
        elif not alive or before != last:
            to.lost.add(f"{step} (before: {before})")
    if op == "r":
        history.reads += 1
    history.version = max(last, version)


def columns_of(row: dict[str, Any], columns: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of `row`. Raise ValueError if its columns are not `columns` in this order."""
    if tuple(row) != columns:
        raise ValueError(f"a record has the columns {list(row)}, an earlier one {list(columns)}")
    return tuple(row.values())
