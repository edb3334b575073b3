"""What may follow what in the life of one key: the judge of every replay.

The writer gives every row version a number that grows (the ``version`` column), so a topic can be judged without
knowing how it was made. With ``last`` the version of the key's newest record:

* an insert, update or read below ``last``, or at ``last`` when that row is deleted, *went back in time*;
* an update or delete whose ``before`` is not ``last``, or an insert of a living key, shows that something is *lost*;
* a read of a key that was seen before must be exactly ``last``: the log has already told all the SELECT could see.

The last two are stricter than what a consumer needs (the final state would still be right); the window's proof
promises them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The version of rows that are rolled back: should one appear, whatever follows went back in time.
ROLLED_BACK = 2**62


class KeyHistory:
    """The newest record of one key. ``row`` is None once the key is deleted; ``reads`` counts its ``r`` records."""

    __slots__ = ("partition", "reads", "row", "times", "version")

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.version = -1
        self.row: tuple[Any, ...] | None = None
        self.reads = 0
        self.times: list[int] = []


@dataclass(slots=True)
class Findings:
    """One kind of fault: how often, and the first few."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        self.count += 1
        if len(self.examples) < 5:
            self.examples.append(text)


@dataclass(slots=True)
class Judgement:
    """All faults of one topic. Nothing in it: no record twice, no key back in time, nothing lost on the way."""

    back_in_time: Findings = field(default_factory=Findings)
    lost: Findings = field(default_factory=Findings)
    duplicates: Findings = field(default_factory=Findings)
    strays: Findings = field(default_factory=Findings)

    def faults(self) -> list[str]:
        """A line per kind of fault that occurred."""
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
    """Enter one record (versions before and after) into the history of its key."""
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
    """The values of ``row``, checked to be in the order of ``columns``."""
    if tuple(row) != columns:
        raise ValueError(f"a record has the columns {list(row)}, an earlier one {list(columns)}")
    return tuple(row.values())
