"""A file with the end of the newest batch, written before Spark has the batch.

Spark does not force its offset log to the disk. After a power cut the offset of a batch can be missing although Kafka
has the batch. If the batch was planned again with another end, its buckets would be skipped as sent, and changes
between the two ends would be lost. So the end is forced to the disk first (about 5 ms), and a batch that is planned
again ends at the same place. The file also has the settings that the batch was planned with (`planner.choices`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import KeptOffsets, QueueFiles
from incsnap.errors import OffsetError
from incsnap.snapshot.offset import Offset

_NAME = "planned-offset.json"
_CHOICES = "planned_with"


@dataclass(frozen=True, slots=True)
class PlannedWith:
    """The settings that a batch was planned with."""

    #: version of incsnap; "" for versions up to 2026-11-24, which wrote other texts (`planner.choices`)
    release: str
    values: Mapping[str, str]  #: text of each setting, by its property


def remember(files: Files, offsets: KeptOffsets, end: Offset, planned_with: PlannedWith) -> None:
    """Write the end of a batch and the settings that it was planned with. The file survives a power cut."""
    # A list, because older releases ignore a list instead of comparing it.
    written = [planned_with.release, dict(planned_with.values)]
    files.write_json(_NAME, {**offsets.dump(end), _CHOICES: written}, durable=True)


def plan_and_choices(files: Files) -> tuple[dict[str, Any], PlannedWith] | None:
    """Return the end of the newest batch in Spark's form, not loaded, and the settings that the batch was planned with.

    So it can also be read if another release has planned the batch. Return None if the file is missing or torn, or has
    no settings.
    """
    plan, choices = _written(files)
    match choices:
        case dict():
            return plan, PlannedWith("", choices)
        case [str() as release, dict() as values]:
            return plan, PlannedWith(release, values)
    return None


def forget_plan(files: Files) -> None:
    """Delete the file."""
    files.delete(_NAME)


def planned_end(files: Files) -> Offset | None:
    """Return the end of the newest batch, whichever batch that is.

    Return None before the first batch or if the file is torn.
    """
    plan, _ = _written(files)
    try:
        return Offset.load(plan, QueueFiles(files))
    except (ValueError, OffsetError):
        return None


def recall(files: Files, offsets: KeptOffsets, start: Offset) -> Offset | None:
    """Return the stored end of the batch after `start`, or None if that batch was not planned before.

    The planner returns this end to Spark in place of a new plan. `offsets` remembers the loaded end, so `offsets.dump`
    returns the stored content for it.
    """
    plan, _ = _written(files)
    try:
        end = offsets.load(plan)
    except (ValueError, AttributeError, OffsetError):
        return None
    return end if end.job_id == start.job_id and end.batch == start.batch + 1 else None


def _written(files: Files) -> tuple[dict[str, Any], object]:
    """Return the file's offset and settings.

    The offset is empty, and so cannot be loaded, if the file is missing or torn.
    """
    try:
        plan = files.read_json(_NAME) or {}
        choices = plan.pop(_CHOICES, None)
    except (ValueError, AttributeError):
        return {}, None
    return plan, choices
