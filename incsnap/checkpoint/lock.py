"""The lock of a checkpoint: one job at a time.

Two jobs would overwrite each other's offsets and skip each other's batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock, Timeout

from incsnap.checkpoint.lease import Lease
from incsnap.checkpoint.location import is_local
from incsnap.checkpoint.objects import ObjectFolder
from incsnap.config.object_store import is_object_store
from incsnap.errors import ConfigError

#: Seconds between two attempts to lock.
_POLL_SECONDS = 0.2


def try_folder(checkpoint_location: str, root: str) -> None:
    """Create a folder where the checkpoint is or would be, and remove it again.

    `incsnap check` tests permissions this way. Only a local disk is tried. Raise ConfigError if the folder cannot be
    created.
    """
    if not is_local(checkpoint_location):
        return
    folder = Path(root.removeprefix("file://")).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with TemporaryDirectory(prefix="incsnap-check-", dir=there):
            pass
    except OSError as error:
        raise _not_made(checkpoint_location, error) from None


def _not_made(checkpoint_location: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"{checkpoint_location} cannot be made or written to: {error.strerror}",
        "Set checkpoint.location to a folder that the job's user may write to.",
    )


class CheckpointLock:
    """A held lock of a checkpoint."""

    def __init__(self, lease: Lease | None = None) -> None:
        self._lease = lease

    def refuse_if_lost(self) -> None:
        """Raise LeaseLost if another job may have the checkpoint."""
        if self._lease is not None:
            self._lease.refuse_if_lost()


@contextmanager
def checkpoint_lock(checkpoint_location: str, root: str, patience_seconds: float = 0.0) -> Iterator[CheckpointLock]:
    """Hold the checkpoint during the block.

    On a local disk the lock is a file lock, which the kernel releases when the process dies. In a bucket it is a lease
    (`lease`). On other file systems (hdfs:, gs:) there is no lock. There a newer job takes over MySQL's connection (by
    its server id) and Kafka's transactions, and the older job fails.

    Raise ConfigError if another process still has the checkpoint after `patience_seconds`, or if it cannot be locked.
    """
    if is_object_store(checkpoint_location):
        lease = Lease(ObjectFolder(root))
        lease.acquire(patience_seconds)
        try:
            yield CheckpointLock(lease)
        finally:
            lease.release()
        return
    if not is_local(checkpoint_location):
        yield CheckpointLock()
        return
    folder = Path(root.removeprefix("file://"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_made(checkpoint_location, error) from None
    # On a file system without locks the library would use the existence of a file as the lock. That file outlives its
    # holder.
    lock = FileLock(
        folder / "lock",
        timeout=patience_seconds,
        poll_interval=_POLL_SECONDS,
        fallback_to_soft=False,
        thread_local=False,  # a program's query releases it on the thread that waits for the query's end
    )
    try:
        held = lock.acquire()
    except Timeout:
        raise ConfigError(
            f"Another incsnap runs on the checkpoint {checkpoint_location}",
            "Stop it first, or give this job a checkpoint.location of its own.",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"The checkpoint {checkpoint_location} cannot be locked: {error.strerror}",
            "Put checkpoint.location on a file system that has locks (flock) and that the job may write to.",
        ) from None
    with held:
        yield CheckpointLock()
