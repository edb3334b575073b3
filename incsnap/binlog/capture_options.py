"""What is wanted of the stream besides rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from incsnap.events import SchemaChange


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """``queries``: keep the texts of statements, where the server logs them. ``concerns``: which changes of tables are
    of interest; others are passed over, so that nobody wakes up for them. ``ends_batch``: statements behind which every
    batch ends."""

    queries: bool = False
    concerns: Callable[[SchemaChange], bool] = lambda _: True
    ends_batch: Callable[[SchemaChange], bool] = lambda _: False


CHANGES: Final = CaptureOptions()
"""All changes of tables, and nothing else."""
