"""The lock of a checkpoint in a bucket, where no kernel lets go of what a dead process held: a lease that is renewed.

``lease.json`` says who has the checkpoint. Each write of it is conditional (If-None-Match for a new one, If-Match for
all others), so of two who write at once one is told so. The holder renews it; whoever else wants it looks whether it
changes, and takes it when it has not for the time of the lease. No two machines' clocks are compared.

A holder that could not renew it for two thirds of that time counts it as lost, before anybody may take it. One that was
frozen meanwhile does not know: who takes the place of a job that did not end itself shuts it out of Kafka first.
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
    """Seconds. ``lease``: without a renewal it may be taken. ``renewal``: between two. Each is a request that is paid
    for: 17,280 a day."""

    lease: float = 30.0
    renewal: float = 5.0

    @property
    def trusted(self) -> float:
        """Since its last renewal, for its holder."""
        return self.lease * 2 / 3


class LeaseLost(IncsnapError):
    """Nothing may be written to the checkpoint any more."""

    hint = "Look who has it; this job began nothing new since. Give each job a checkpoint.location of its own."
    resumable = False


@dataclass(frozen=True, slots=True)
class Holder:
    """``token``: of this holding of the lease. ``process``: tells a process from all others of its machine."""

    token: str
    host: str
    pid: int
    process: str
    renewals: int = 0
    released: bool = False

    def __str__(self) -> str:
        return f"the process {self.pid} on {self.host}"

    @property
    def is_dead(self) -> bool:
        """Known for certain: it was of this machine and container, and is gone."""
        machine, _, began = self.process.rpartition("/")
        return bool(machine) and machine == _machine() and _began(self.pid) != began


class Lease:
    """The lease of the checkpoint in ``folder``. ``acquire`` it; then threads may ask ``refuse_if_lost`` until
    ``release``."""

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
        """Raises ``ConfigError`` when another process renews it, ``StoreFailed`` where it cannot be had at all."""
        began, seen_tag, seen_at, announced = _now(), "", 0.0, False
        while not self._ending.is_set():
            asked_at = _now()
            tagged = self._read()
            if tagged is None:
                if tag := self._folder.create(_NAME, _dump(self._own_holder)):
                    return self._begin_renewals(tag, asked_at)
                continue
            holder, tag = tagged
            if holder.token == self._own_holder.token:  # a write of ours whose answer was lost
                return self._begin_renewals(tag, asked_at)
            if holder.released or holder.is_dead or (tag == seen_tag and asked_at - seen_at > self._times.lease):
                if taken := self._folder.replace(_NAME, _dump(self._own_holder), tag):
                    if not holder.released:
                        log.warning("The checkpoint was left by %s, which does not renew its lease", holder)
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
                log.info("Looking whether %s, which has the lease of the checkpoint, still renews it", holder)
            self._ending.wait(min(1.0, self._times.renewal / 3))
        return None

    def _begin_renewals(self, tag: str, asked_at: float) -> None:
        self._tag, self._renewed = tag, asked_at
        self._thread = threading.Thread(target=self._renew, name="incsnap-lease", daemon=True)
        self._thread.start()

    def refuse_if_lost(self) -> None:
        """Raises ``LeaseLost``."""
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
                    log.warning("The lease of the checkpoint cannot be renewed: %s", error.message)
            if self._lost:
                log.error("The lease of the checkpoint %s", self._lost)
                return

    def _renew_once(self, asked_at: float) -> None:
        renewed = replace(self._own_holder, renewals=self._own_holder.renewals + 1)
        tag = self._folder.replace(_NAME, _dump(renewed), self._tag)
        if tag is None:
            tagged = self._read()
            if tagged is None or tagged[0].token != self._own_holder.token:
                self._lost = f"was taken by {tagged[0]}" if tagged is not None else "was deleted"
                return
            tag = tagged[1]  # ours, whose answer was lost
        self._own_holder, self._tag, self._renewed = renewed, tag, asked_at

    def release(self) -> None:
        """Whoever comes next need not wait. Never raises."""
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
    """Goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _machine() -> str:
    """The same for processes that see each other; "" where that cannot be told."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _began(pid: int) -> str:
    """When the process began, in the kernel's ticks; "" where there is none, or nothing left of it but its name."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
