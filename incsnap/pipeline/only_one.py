"""One job on one checkpoint: two would overwrite each other's offsets, and each would skip what the other has sent."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from incsnap.errors import ConfigError
from incsnap.pipeline.session import is_local


@contextmanager
def only_one(checkpoint_location: str, root: str) -> Iterator[None]:
    """Holds the checkpoint for the time of the block; the kernel lets go of it when the process dies, however it dies.

    Raises ``ConfigError`` when another process has it. A checkpoint on an object store cannot be held: there the
    newer job takes over MySQL's connection (by its server id) and Kafka's transactions, and the older one fails.
    """
    if not is_local(checkpoint_location):
        yield
        return
    folder = Path(root.removeprefix("file://"))
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"Another incsnap runs on the checkpoint {checkpoint_location}",
                "Stop it first, or give this job a checkpoint.location of its own.",
            ) from None
        yield
    finally:
        os.close(handle)
