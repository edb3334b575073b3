"""The repair of keys that differ: a job reads them again, and sends deletions of those that the table does not have.

Only keys with a proved difference are repaired. Nothing can repair a topic's history, and nothing is known about
unverifiable keys.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from incsnap.errors import IncsnapError
from incsnap.verify.allowance import VerificationStopped
from incsnap.verify.kinds import ABSENT, DIFFERENCES
from incsnap.verify.proof import TopicKey
from incsnap.verify.report import Difference, TableReport

log = logging.getLogger(__name__)

#: Tables that a job is asked for at a time. It remembers its last 32 signals.
_TOGETHER = 16


class RepairRefused(IncsnapError):
    """An error: the keys are not sent again."""


@dataclass(frozen=True, slots=True)
class TableRepair:
    """The keys of one table that are sent again."""

    table: str  #: name, as db.table
    topic: str  #: topic of its records
    keys: tuple[bytes, ...]  #: the records' keys, without schemas
    kinds: Mapping[str, int]  #: number of keys of each kind
    deletes: bool  #: whether keys that the table does not have become deletions
    #: number of keys that are left out, by the reason
    left_out: Mapping[str, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return what is sent, for a person."""
        absent = sum(self.kinds.get(kind, 0) for kind in ABSENT)
        rows = len(self.keys) - absent
        parts = [f"{rows:,} keys as rows"] if rows else []
        parts += [f"{absent:,} keys as deletions with tombstones"] if absent else []
        counted = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.items() if count)
        lines = [f"  {self.table}: {' and '.join(parts)} ({counted})"] if parts else []
        return [
            *lines,
            *(f"  {self.table}: {count:,} keys cannot be repaired: {why}" for why, count in self.left_out.items()),
        ]


class Way(Protocol):
    """A way to a job that sends keys again."""

    def ask(self, repair: TableRepair) -> None:
        """Ask the job to send the keys of a table again. Raise IncsnapError if the job cannot be asked."""

    def finish(self) -> None:
        """Wait until the job has sent what it was asked for, or until nothing more is to be expected.

        Raise VerificationStopped if the command shall end. The job obeys nevertheless.
        """


def repair_of(report: TableReport) -> TableRepair | None:
    """Return the repair of a table; None if nothing was proved to differ."""
    if report.refused:
        return None
    proved = [each for each in report.differences if each.kind in DIFFERENCES]
    if not proved:
        return None
    chosen: list[Difference] = []
    left_out = Counter[str]()
    for each in proved:
        if why := report.obstacle(each):
            left_out[why] += 1
        else:
            chosen.append(each)
    counts = Counter(each.kind for each in chosen)
    kinds = {kind: counts[kind] for kind in DIFFERENCES if counts[kind]}
    keys = tuple(each.key for each in chosen)
    return TableRepair(report.table, report.topic, keys, kinds, not report.undeletable, left_out)


def repair(
    reports: Sequence[TableReport], way: Callable[[], Way], agrees: Callable[[str], bool], at_most: int
) -> list[TopicKey]:
    """Let a job send the keys that differ again, and return the keys that the job was asked for.

    `way` proves that a job obeys, and returns the way to it. It is asked before and after the question. `agrees`: asks
    whether to do what the text says. Raise RepairRefused if more than `at_most` keys differ, if nothing can be
    repaired, if the answer is no, or if the command shall end before anything is sent. Raise the errors of `way`, and
    VerificationStopped if the command shall end behind that.
    """
    repairs = [each for report in reports if (each := repair_of(report)) is not None]
    count = sum(len(each.keys) + sum(each.left_out.values()) for each in repairs)
    if not repairs:
        return []
    if count > at_most:
        raise RepairRefused(
            f"{count:,} keys differ, more than --at-most {at_most:,}. That looks like a wrong configuration",
            f"Does FILE describe these tables and topics? If so, repeat with --at-most {count}.",
        )
    text = "\n".join(line for each in repairs for line in each.lines())
    if not any(each.keys for each in repairs):
        raise RepairRefused(f"No key can be repaired.\n{text}", "")
    if not agrees(f"{_proved(way)}:\n{text}"):
        raise RepairRefused("The answer was no", "")
    open_way = _proved(way)
    asked: list[TableRepair] = []
    sent = [each for each in repairs if each.keys]
    for begin in range(0, len(sent), _TOGETHER):
        for each in sent[begin : begin + _TOGETHER]:
            try:
                open_way.ask(each)
            except IncsnapError as error:
                if not asked:
                    raise
                log.error("The keys of %s were not sent again: %s", each.table, error.message)
                continue
            asked.append(each)
        open_way.finish()
    return [(each.topic, key) for each in asked for key in each.keys]


def _proved(way: Callable[[], Way]) -> Way:
    """Return the way to a job that is proved to obey. Raise RepairRefused if the command shall end."""
    try:
        return way()
    except VerificationStopped:
        raise RepairRefused("The command was stopped", "") from None
