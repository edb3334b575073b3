"""The comparison of one topic's kept sides, a range of hashes at a time, and the keys that are looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from incsnap.errors import ConfigError
from incsnap.verify.kept_sides import RECORDS, ROWS, KeptSides
from incsnap.verify.matching import HashedRecords, HashedRows, match
from incsnap.verify.side_slices import SideSlices

#: Most keys that are read again one by one.
MOST_KEYS = 500_000


class TooManyDiffer(Exception):
    """An error: more than `MOST_KEYS` keys of a topic differ. Some of these keys may have changed meanwhile."""


class TooManyKeys(ConfigError):
    """An error: more keys would have to be looked at one by one than verify can."""


@dataclass(slots=True)
class Candidates:
    """The keys of a topic that are looked at again."""

    keys: list[bytes] = field(default_factory=list)  #: keys that differ
    repeated: list[tuple[bytes, int, int]] = field(default_factory=list)  #: keys, and their counts as in `Differences`
    sent_twice: int = 0  #: records that repeat an earlier one of their key
    back_in_time: int = 0  #: records that are older than an earlier one of their key


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """The parts of a table's rows and of its topic's records."""

    sides: KeptSides  #: folder of the parts
    rows: Sequence[int]  #: numbers of the parts with rows
    records: Sequence[int]  #: numbers of the parts with records, in the order of partitions and offsets
    partitions: Sequence[int]  #: partition of each part with records
    tombstones: bool  #: whether a tombstone belongs behind each deletion of the topic

    def add(self, bounds: tuple[int, int], candidates: Candidates) -> None:
        """Compare the keys whose hashes lie in `bounds`, and add what differs to `candidates`.

        Raise TooManyDiffer if too many keys differ.
        """
        rows = SideSlices(self.sides, ROWS, self.rows, bounds)
        records = SideSlices(self.sides, RECORDS, self.records, bounds)
        differences = match(
            HashedRows(rows.column("key_hash"), rows.column("row_hash")),
            HashedRecords(
                key=records.column("key_hash"),
                row=records.column("row_hash"),
                partition=np.repeat(np.array(self.partitions, np.int32), records.counts),
                time=records.column("time"),
                state=records.column("state"),
                is_snapshot=records.column("is_snapshot").astype(np.bool_),
                file=records.column("file"),
                pos=records.column("pos"),
                row_number=records.column("row_number"),
            ),
            tombstones=self.tombstones,
        )
        if len(candidates.keys) + len(differences.rows) + len(differences.records) > MOST_KEYS:
            raise TooManyDiffer
        candidates.keys += dict.fromkeys([*rows.keys(differences.rows), *records.keys(differences.records)])
        listed = slice(max(0, MOST_KEYS - len(candidates.repeated)))
        repeating = records.keys(differences.repeating[listed])
        counts = (numbers[listed].tolist() for numbers in (differences.twice, differences.back))
        candidates.repeated += zip(repeating, *counts, strict=True)
        candidates.sent_twice += int(differences.twice.sum())
        candidates.back_in_time += int(differences.back.sum())


def too_many_keys(count: int, changed: int) -> TooManyKeys:
    """Return the error for a comparison with at least `count` keys that differ or changed meanwhile.

    `changed`: the number of keys that changed meanwhile. Most of them differ too, because one side was read earlier.
    """
    most, others = f"verify can look at no more than {MOST_KEYS:,} keys one by one", count - changed
    fewer = "fewer tables with --table, or a part with --sample."
    if changed > others:
        return TooManyKeys(
            f"{changed:,} keys changed while they were compared, and {others:,} others differ: {most}",
            f"Run the command again when fewer rows change. Or compare {fewer}",
        )
    return TooManyKeys(
        f"At least {others:,} keys differ, and {changed:,} others changed while they were compared: {most}",
        f"Does FILE describe these topics? Compare {fewer}",
    )
