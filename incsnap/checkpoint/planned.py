"""The end of the newest batch, on the disk before Spark has it.

Spark does not force its offset log to the disk: after a power cut the offset of a batch can be gone although Kafka
holds the batch. Planned anew it would end elsewhere, its buckets would be skipped as sent, and what lies between
the two ends would be lost. So the end is forced to the disk first (about 5 ms), and a batch that is planned again
ends where it did. With it goes what of the settings it was planned with (``planner.choices``).
"""

from __future__ import annotations

import json
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
    """What of the settings a batch was planned with."""

    release: str  #: of incsnap; "" for one of 2026-11-24 or older, which wrote other texts (``planner.older_choices``)
    values: Mapping[str, str]  #: by the properties that say it


def remember(files: Files, offsets: KeptOffsets, end: Offset, planned_with: PlannedWith) -> None:
    """Write the end of a batch down, and what it is planned with; the file survives a power cut."""
    # A list, which older releases take for nothing that they could compare.
    written = [planned_with.release, dict(planned_with.values)]
    files.write(_NAME, json.dumps({**offsets.dump(end), _CHOICES: written}).encode(), durable=True)


def plan_and_choices(files: Files) -> tuple[dict[str, Any], PlannedWith] | None:
    """Return the end of the newest batch as it was dumped, and the settings it was planned with.

    None if the file is torn, or has no settings.
    """
    plan, choices = _written(files)
    match choices:
        case dict():
            return plan, PlannedWith("", choices)
        case [str() as release, dict() as values]:
            return plan, PlannedWith(release, values)
    return None


def forget_plan(files: Files) -> None:
    files.delete(_NAME)


def planned(files: Files) -> Offset | None:
    """The end of the newest batch; ``None`` before the first, or if the file is torn."""
    plan, _ = _written(files)
    try:
        return Offset.load(plan, QueueFiles(files))
    except (ValueError, OffsetError):
        return None


def recall(files: Files, offsets: KeptOffsets, start: Offset) -> Offset | None:
    """The end of the batch behind ``start`` if it was planned before, which ``offsets`` dumps as it was; ``None`` if
    not."""
    plan, _ = _written(files)
    try:
        end = offsets.load(plan)
    except (ValueError, AttributeError, OffsetError):
        return None
    return end if end.job_id == start.job_id and end.batch == start.batch + 1 else None


def _written(files: Files) -> tuple[dict[str, Any], object]:
    """The file's offset and settings. An empty offset, which no release loads, where there is no file or a torn one."""
    content = files.read(_NAME)
    try:
        plan = json.loads(content.to_pybytes()) if content is not None else {}
        choices = plan.pop(_CHOICES, None)
    except (ValueError, AttributeError):
        return {}, None
    return plan, choices
