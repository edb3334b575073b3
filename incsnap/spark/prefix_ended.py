"""The file by which the driver ends a query whose prefix was taken, also one that has nothing to send.

It lies in the folder that the driver and the planner's process share. A query can only be failed from inside, and a
program that follows its own query must see an exception.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from incsnap.kafka.announcements import PrefixTaken

NAME = "prefix-taken.json"


def end_query(path: str, taken: PrefixTaken) -> None:
    """Write the file. Never raise: a task that sends meets the same error."""
    with contextlib.suppress(OSError):
        new = Path(path).with_suffix(".new")
        new.write_text(json.dumps([taken.message, taken.hint]))
        new.rename(path)


def refuse_if_ended(path: str) -> None:
    """Raise the ``PrefixTaken`` that the driver has written, if it has; ``path`` is "" where no driver writes."""
    if path and os.path.exists(path):
        message, hint = json.loads(Path(path).read_text())
        raise PrefixTaken(message, hint)
