"""The outages of MySQL, Kafka and the schema registry: which server does not answer, at which address, since when.

The log says when an outage begins, says once a minute that it lasts, and says when it ends. A thread asks MySQL while
there is a reason for doubt. The heartbeats of the start tell whether Kafka answers.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from incsnap.errors import shorten
from incsnap.monitoring.amounts import duration, moment
from incsnap.monitoring.status import Failure, Outage, clock_ms

log = logging.getLogger(__name__)

MYSQL, KAFKA, REGISTRY = "MySQL", "Kafka", "Schema registry"
#: Seconds between two questions to MySQL while it is in doubt.
_ASK_SECONDS = 2.0
#: Seconds between two log lines of one outage.
_LOG_SECONDS = 60.0
_HINTS = {
    MYSQL: "The job goes on by itself when the server answers. Check database.hostname and that MySQL runs.",
    KAFKA: "The job goes on by itself when a broker answers. Check bootstrap.servers and that Kafka runs.",
    REGISTRY: "The job goes on by itself when the registry answers. Check the registry's URL of the converters.",
}


class Outages:
    """The outages of one job. All methods may be called from any thread.

    `addresses`: of each server, for messages. `ask_mysql` returns why MySQL does not answer, and "" if it answers.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        ask_mysql: Callable[[], str] = lambda: "",
        ask_seconds: float = _ASK_SECONDS,
        log_seconds: float = _LOG_SECONDS,
    ) -> None:
        self._addresses, self._ask_mysql, self._ask_seconds = addresses, ask_mysql, ask_seconds
        self._log_seconds = log_seconds
        self._lock = threading.Lock()
        self._open: dict[str, Outage] = {}
        #: When each server answered last, in ms since 1970.
        self._answered_ms: dict[str, int] = {}
        #: When the next line about each outage is due, by the monotonic clock.
        self._due: dict[str, float] = {}
        self._in_doubt, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._ask, name="incsnap-servers", daemon=True)
        self._thread.start()

    def address(self, server: str) -> str:
        """Return the address of the server, or "" if it is unknown."""
        return self._addresses.get(server, "")

    def current(self) -> tuple[Outage, ...]:
        """Return the servers that do not answer now, the longest outage first."""
        with self._lock:
            return tuple(sorted(self._open.values(), key=lambda each: each.since_ms))

    def answers(self, server: str) -> None:
        """Record that the server has answered just now. Log the end of its outage."""
        now_ms = clock_ms()
        with self._lock:
            self._answered_ms[server] = now_ms
            ended = self._open.pop(server, None)
        if ended is not None:
            lasted = duration((now_ms - ended.since_ms) / 1000)
            log.info("%s at %s answers again, after %s", server, ended.address, lasted)

    def fails(self, server: str, reason: str) -> None:
        """Record that the server does not answer. Log the beginning of an outage, and a line a minute while it lasts.

        The outage began when the server answered for the last time, or now if it never answered.
        """
        now = time.monotonic()
        with self._lock:
            before = self._open.get(server)
            if before is None:
                since_ms = self._answered_ms.get(server, clock_ms())
                before = Outage(server, self._addresses.get(server, ""), since_ms)
                self._due[server] = now
            self._open[server] = known = replace(before, reason=shorten(reason, 300))
            if now < self._due[server]:
                return
            self._due[server] = now + self._log_seconds
        log.warning("%s. The job waits for it", sentence(known))

    def doubt(self, *, in_doubt: bool) -> None:
        """Let the thread ask MySQL from now on, or no longer. An open outage is asked about until it ends."""
        if in_doubt:
            self._in_doubt.set()
        else:
            self._in_doubt.clear()

    def close(self) -> None:
        """End the thread. A question that waits for MySQL is abandoned."""
        self._closing.set()

    def _ask(self) -> None:
        while not self._closing.wait(self._ask_seconds):
            if self._in_doubt.is_set() or MYSQL in self._open:
                if reason := self._ask_mysql():
                    self.fails(MYSQL, reason)
                else:
                    self.answers(MYSQL)
            else:
                with self._lock:
                    self._answered_ms[MYSQL] = clock_ms()


def sentence(outage: Outage) -> str:
    """Return the outage as a sentence without its full stop."""
    why = f" ({outage.reason})" if outage.reason else ""
    return f"{outage.server} at {outage.address} does not answer since {moment(outage.since_ms)}{why}"


def failure_by(outage: Outage, before: Failure | None) -> Failure:
    """Return the failure that a job shows while `outage` lasts. `before`: the job's own last failure."""
    count = max(1, before.count if before is not None else 0)
    next_try_ms = before.next_try_ms if before is not None else 0
    return Failure(sentence(outage), _HINTS[outage.server], outage.since_ms, count, next_try_ms)
