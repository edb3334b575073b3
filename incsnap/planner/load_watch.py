"""The measurement of loads that a throttle limits. It runs beside the stream: no batch waits for an answer.

Each load of each server has a thread and a connection, created when a limit first needs them. The server is asked once
a second while the planner asks for the load, and for 30 seconds after that. Then the connection is closed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from pymysql.connections import Connection

from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import SnapshotSettings
from incsnap.errors import IncsnapError, shorten
from incsnap.mysql.loads import (
    PATIENCE_SECONDS,
    CommitLatency,
    Measure,
    replica_lag_ms,
    replicas_of,
    threads_running,
)
from incsnap.mysql.session import close, connect
from incsnap.snapshot.load import BEING_ASKED, MeasuredLoad
from incsnap.snapshot.throttle import COMMIT_LATENCY, REPLICA_LAG, THREADS_RUNNING

log = logging.getLogger(__name__)

#: Seconds between two measurements of a load.
_EVERY_SECONDS = 1.0
#: Seconds after which a measurement is too old to be used.
_OLD_SECONDS = 10.0
#: Seconds after which a load is not measured any more if nobody asks for it. A batch may take some seconds.
_REQUESTED_SECONDS = 30.0
#: Most seconds of one wait, so that no wait is without an end.
_NAP_SECONDS = 60.0
#: Most characters of an error's text.
_TROUBLE = 300


class LoadWatch:
    """The measured loads of one planner."""

    def __init__(self, mysql: MySqlSettings, snapshot: SnapshotSettings) -> None:
        self._own = mysql.model_copy(update={"connect_timeout_seconds": PATIENCE_SECONDS})
        self._replicas = replicas_of(mysql, snapshot)
        self._probes: dict[tuple[str, str], _Probe] = {}

    def newest(self, names: Collection[str]) -> tuple[MeasuredLoad, ...]:
        """Return the newest measurements for the limits `names`, at once."""
        loads: list[MeasuredLoad] = []
        if THREADS_RUNNING in names:
            loads.append(self._load_of(THREADS_RUNNING, "", self._own, lambda: threads_running))
        if COMMIT_LATENCY in names:
            loads.append(self._load_of(COMMIT_LATENCY, "", self._own, CommitLatency))
        if REPLICA_LAG in names:
            loads += [
                self._load_of(REPLICA_LAG, where, settings, lambda: replica_lag_ms)
                for where, settings in self._replicas.items()
            ]
            if not self._replicas:
                trouble = "incsnap.snapshot.throttle.replicas names none"
                loads.append(MeasuredLoad(REPLICA_LAG, None, trouble=trouble))
        return tuple(loads)

    def close(self) -> None:
        """End the threads."""
        for probe in self._probes.values():
            probe.close()

    def _load_of(self, name: str, where: str, settings: MySqlSettings, measure: Callable[[], Measure]) -> MeasuredLoad:
        probe = self._probes.get((name, where))
        if probe is None:
            probe = self._probes[name, where] = _Probe(name, where, settings, measure)
        return probe.newest()


class _Probe:
    """A thread that measures one load of one server. `measure` creates the measurement for a new connection."""

    def __init__(self, name: str, where: str, settings: MySqlSettings, measure: Callable[[], Measure]) -> None:
        self._name, self._where = name, where
        self._settings, self._measure = settings, measure
        self._newest = MeasuredLoad(name, None, where, BEING_ASKED)
        self._measured_at = time.monotonic()
        self._requested_at = 0.0
        self._requested, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"incsnap-load-{name}", daemon=True)
        self._thread.start()

    def newest(self) -> MeasuredLoad:
        """Return the newest measurement, at once. Without a recent one its `trouble` says why."""
        now = time.monotonic()
        if now - self._requested_at > _REQUESTED_SECONDS:
            # A measurement from before the pause says nothing about now.
            self._newest, self._measured_at = MeasuredLoad(self._name, None, self._where, BEING_ASKED), now
        self._requested_at = now
        self._requested.set()
        age = now - self._measured_at
        if age > _OLD_SECONDS:
            return MeasuredLoad(self._name, None, self._where, f"no answer for {age:.0f} s")
        return self._newest

    def close(self) -> None:
        """End the thread. Wait a second for it at most."""
        self._closing.set()
        self._requested.set()
        self._thread.join(_EVERY_SECONDS)

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        measure: Measure | None = None
        trouble_before = ""
        while not self._closing.is_set():
            if time.monotonic() - self._requested_at > _REQUESTED_SECONDS:
                close(connection)
                connection = measure = None
                self._requested.clear()
                # Look again after clearing: somebody may have asked between the two.
                if time.monotonic() - self._requested_at > _REQUESTED_SECONDS:
                    self._requested.wait(_NAP_SECONDS)
                continue
            try:
                if connection is None or measure is None:
                    connection = connect(self._settings, read_timeout=PATIENCE_SECONDS)
                    measure = self._measure()
                value, trouble = measure(connection), ""
                load = MeasuredLoad(self._name, value, self._where, "" if value is not None else BEING_ASKED)
            except IncsnapError as error:
                close(connection)
                connection = measure = None
                trouble = shorten(f"{error.message.rstrip('.')}. {error.hint.rstrip('.')}", _TROUBLE)
                load = MeasuredLoad(self._name, None, self._where, trouble)
            self._newest, self._measured_at = load, time.monotonic()
            self._log_trouble(trouble, trouble_before)
            trouble_before = trouble
            self._closing.wait(_EVERY_SECONDS)
        close(connection)

    def _log_trouble(self, trouble: str, before: str) -> None:
        """Log a trouble when it begins and when it ends, not each time."""
        of = f" of replica {self._where}" if self._where else ""
        if trouble and trouble != before:
            log.warning("%s%s is not known, so snapshots wait: %s", self._name, of, trouble)
        elif before and not trouble:
            log.info("%s%s is known again", self._name, of)
