"""Detection of requests whose answers were lost, which a broker may still execute later.

librdkafka repeats a request when its connection breaks or its time is up. The first copy may still be on its way. The
requests of a transaction name the producer's id and epoch. librdkafka 2.16 (transactions of version 1) keeps both from
one transaction to the next. So a late copy counts as part of the next transaction (KAFKA-17754): a late commit commits
its first half, and a late batch number replaces the newer one. A new producer has a higher epoch, and Kafka refuses
requests of an older epoch.

librdkafka has no call that reports lost answers. But it logs each broken connection and each time-out before it repeats
a request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from incsnap.config.names import words
from incsnap.errors import ConfigError
from incsnap.kafka import librdkafka as c

_log = logging.getLogger(__name__)
#: The kinds of librdkafka's log lines about a broken connection and about requests that timed out.
_BROKEN, _TIMED_OUT = b"FAIL", b"REQTMOUT"
#: The level (syslog's) of these lines. Connections that librdkafka closes itself are logged at a less urgent level: to
#: a bootstrap address that is no longer needed, or to a coordinator that has answered that it is none any more.
_LEVEL = 6
#: States of a connection before a request of a transaction was sent. A broker that is down for hours fails in these
#: states again and again. That is no reason to give up a producer.
_BEFORE_USE = tuple(
    f" in state {state}".encode()
    for state in words(
        "INIT DOWN TRY_CONNECT CONNECT SSL_HANDSHAKE AUTH_LEGACY APIVERSION_QUERY AUTH_HANDSHAKE AUTH_REQ"
    )
)


def logged(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a producer's settings with those that `LostAnswers` needs. Lines that the user wants are still logged."""
    level = str(max(_LEVEL, _level_of(settings)))
    return {**settings, "log.queue": "true", "log_level": level, "log.connection.close": "true"}


def _level_of(settings: Mapping[str, str]) -> int:
    """Return the log level that the user has set; 0 if none."""
    level = settings.get("log_level", "")
    return int(level) if level.isdigit() else 0


class LostAnswers:
    """The log of one producer about its connections. Only the producer's thread uses it."""

    def __init__(self, lib: Any, conf: int, settings: Mapping[str, str]) -> None:
        self._lib = lib
        #: Lines up to this level go to the user's log.
        self._shown = _level_of(settings)
        self._any = False
        self._queue: int | None = None
        self._callback = c.LOG_CALLBACK(self._read)  # a reference for Python: librdkafka holds only the address
        lib.rd_kafka_conf_set_log_cb(conf, self._callback)

    def listen(self, rk: int) -> None:
        """Collect the log lines of the producer `rk`, including earlier lines.

        Raise ConfigError if the log has no queue.
        """
        self._queue = self._lib.rd_kafka_queue_new(rk)
        if self._lib.rd_kafka_set_log_queue(rk, self._queue) != 0:
            raise ConfigError("librdkafka does not give its log to a queue: log.queue is not in force")

    def close(self) -> None:
        """Release the queue. Call it before the producer is destroyed."""
        if self._queue is not None:
            self._lib.rd_kafka_queue_destroy(self._queue)
            self._queue = None

    def any(self) -> bool:
        """Return True if the answer to any request so far was lost."""
        while self._queue is not None and self._lib.rd_kafka_queue_poll_callback(self._queue, 0):
            pass
        return self._any

    def _read(self, _rk: int, level: int, kind: bytes, line: bytes) -> None:
        """Examine one log line, and log it if the user wants its level."""
        if level <= self._shown:
            _log.info("librdkafka: %s", line.decode("utf-8", "replace"))
        if kind == _TIMED_OUT or (kind == _BROKEN and not any(state in line for state in _BEFORE_USE)):
            self._any = True
