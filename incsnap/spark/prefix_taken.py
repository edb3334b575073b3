"""The file by which the driver ends a query whose prefix another start has taken.

The file is in the folder that the driver and the planner's process share. A query can only fail from inside, even one
that has nothing to send. A program that follows its own query must see an exception.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from incsnap.kafka.announcements import PrefixTaken

#: Name of the file.
NAME = "prefix-taken.json"


def end_query(path: str, taken: PrefixTaken) -> None:
    """Write `taken` into the file at `path`, so that the query fails.

    Never raise: a task that sends meets the same error.
    """
    with contextlib.suppress(OSError):
        new = Path(path).with_suffix(".new")
        new.write_text(json.dumps([taken.message, taken.hint]))
        new.rename(path)


def refuse_if_taken(path: str) -> None:
    """Raise the PrefixTaken that the driver has written, if any. `path` is "" if no driver writes."""
    if path and os.path.exists(path):
        message, hint = json.loads(Path(path).read_text())
        raise PrefixTaken(message, hint)
