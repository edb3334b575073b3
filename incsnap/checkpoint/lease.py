"""The lock of a checkpoint in a bucket: a lease that its holder renews.

In a bucket no kernel releases the lock of a dead process. `lease.json` names the holder. Each write of it is
conditional (If-None-Match for a new lease, If-Match for all others). So if two processes write at once, one of them
fails. The holder renews the lease. Another process watches whether the lease changes, and takes the lease when it has
not changed for the time of the lease. Clocks of two machines are never compared.

A holder that could not renew for two thirds of that time treats the lease as lost, before another process may take it.
A frozen holder does not notice. So a job that replaces one which did not end in order fences it in Kafka first.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

from incsnap.checkpoint.objects import ObjectFolder
from incsnap.errors import ConfigError, IncsnapError, StoreFailed

log = logging.getLogger(__name__)

_NAME = "lease.json"


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The times of a lease, in seconds."""

    lease: float = 30.0  #: a lease that was not renewed for so long may be taken
    renewal: float = 5.0  #: time between two renewals; each is a request that costs money, 17,280 a day

    @property
    def trusted(self) -> float:
        """Seconds after its last renewal for which the holder trusts the lease."""
        return self.lease * 2 / 3


class LeaseLost(IncsnapError):
    """An error: the lease is lost, so nothing may be written to the checkpoint any more."""

    hint = (
        "Another job may have taken the checkpoint: incsnap/lease.json in it names the holder. This job began no"
        " batch since. Give each job a checkpoint.location of its own."
    )
    resumable = False


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lease, as written to the bucket."""

    token: str  #: random id of this holding of the lease
    host: str  #: name of the holder's machine
    pid: int  #: process id of the holder
    process: str  #: identifies the machine, its boot, the container and the process's start
    renewals: int = 0  #: number of renewals, so that each write differs
    released: bool = False  #: whether the holder has given up the lease

    def __str__(self) -> str:
        return f"the process {self.pid} on {self.host}"

    @property
    def is_dead(self) -> bool:
        """Whether the holder is certainly dead: it ran on this machine and in this container, and is gone."""
        machine, _, began = self.process.rpartition("/")
        return bool(machine) and machine == _machine() and _began(self.pid) != began


class Lease:
    """The lease of the checkpoint in `folder`, from `acquire` to `release`.

    Any thread may call `refuse_if_lost` meanwhile.
    """

    def __init__(self, folder: ObjectFolder, times: LeaseTimes | None = None) -> None:
        self._folder = folder
        self._times = times or LeaseTimes()
        self._own_holder = Holder(uuid4().hex, socket.gethostname(), os.getpid(), f"{_machine()}/{_began(os.getpid())}")
        self._tag = ""
        self._renewed = 0.0
        self._lost = ""
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, patience_seconds: float = 0.0) -> None:
        """Take the lease and start the thread that renews it.

        Raise ConfigError if another process still renews it after `patience_seconds`, and StoreFailed if the bucket
        fails.
        """
        began, seen_tag, seen_at, announced = _now(), "", 0.0, False
        while not self._ending.is_set():
            asked_at = _now()
            tagged = self._read()
            if tagged is None:
                if tag := self._folder.create(_NAME, _dump(self._own_holder)):
                    return self._begin_renewals(tag, asked_at)
                continue
            holder, tag = tagged
            if holder.token == self._own_holder.token:  # our own write, whose answer was lost
                return self._begin_renewals(tag, asked_at)
            if holder.released or holder.is_dead or (tag == seen_tag and asked_at - seen_at > self._times.lease):
                if taken := self._folder.replace(_NAME, _dump(self._own_holder), tag):
                    if not holder.released:
                        log.warning("This job takes the checkpoint from %s, which does not renew its lease", holder)
                    return self._begin_renewals(taken, asked_at)
                continue
            if tag != seen_tag:
                if seen_tag and asked_at - began >= patience_seconds:
                    raise ConfigError(
                        f"Another incsnap runs on the checkpoint {self._folder.path('')[:-1]}: {holder}",
                        "Stop it first, or give this job a checkpoint.location of its own.",
                    )
                seen_tag, seen_at = tag, asked_at
            if not announced:
                announced = True
                log.info("Waiting to see whether %s still renews its lease of the checkpoint", holder)
            self._ending.wait(min(1.0, self._times.renewal / 3))
        return None

    def _begin_renewals(self, tag: str, asked_at: float) -> None:
        self._tag, self._renewed = tag, asked_at
        self._thread = threading.Thread(target=self._renew, name="incsnap-lease", daemon=True)
        self._thread.start()

    def refuse_if_lost(self) -> None:
        """Raise LeaseLost if another process may have the checkpoint."""
        if not self._lost and _now() - self._renewed > self._times.trusted:
            self._lost = f"could not be renewed for {self._times.trusted:.0f} s"
        if self._lost:
            raise LeaseLost(f"The lease of the checkpoint {self._folder.path('')[:-1]} {self._lost}")

    def _renew(self) -> None:
        warned = False
        while not self._ending.wait(self._times.renewal):
            asked_at = _now()
            try:
                self._renew_once(asked_at)
                warned = False
            except StoreFailed as error:
                if not warned:
                    warned = True
                    log.warning(
                        "The lease of the checkpoint cannot be renewed since %.0f s: %s",
                        _now() - self._renewed,
                        error.message,
                    )
            if self._lost:
                log.error("The lease of the checkpoint %s", self._lost)
                return

    def _renew_once(self, asked_at: float) -> None:
        """Renew the lease, or record that it is lost. `asked_at` is the time of the request."""
        renewed = replace(self._own_holder, renewals=self._own_holder.renewals + 1)
        tag = self._folder.replace(_NAME, _dump(renewed), self._tag)
        if tag is None:
            tagged = self._read()
            if tagged is None or tagged[0].token != self._own_holder.token:
                self._lost = f"was taken by {tagged[0]}" if tagged is not None else "was deleted"
                return
            tag = tagged[1]  # our own write, whose answer was lost
        self._own_holder, self._tag, self._renewed = renewed, tag, asked_at

    def release(self) -> None:
        """Give up the lease, so that the next process need not wait. Never raise an error."""
        self._ending.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        try:
            if not self._lost:
                self._folder.replace(_NAME, _dump(replace(self._own_holder, released=True)), self._tag)
        except StoreFailed as error:
            log.warning("The lease of the checkpoint could not be released, and runs out by itself: %s", error.message)

    def _read(self) -> tuple[Holder, str] | None:
        """Return the holder of the lease and the tag of the object, or None.

        Raise ConfigError if the object is not a lease.
        """
        tagged = self._folder.read_tagged(_NAME)
        if tagged is None:
            return None
        content, tag = tagged
        try:
            return Holder(**json.loads(content)), tag
        except (ValueError, TypeError):
            raise ConfigError(
                f"{self._folder.path(_NAME)} is not a lease of this release",
                "If no incsnap runs on this checkpoint, delete that object.",
            ) from None


def _dump(holder: Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _now() -> float:
    """Return seconds of a clock that also advances while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _machine() -> str:
    """Return a text that is equal for processes that see each other (boot and PID namespace), or "" if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _began(pid: int) -> str:
    """Return the start time of the process in the kernel's ticks, or "" if there is no such process or it is a
    zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
