"""Requests of a producer whose answers were lost, which the broker may still execute later.

librdkafka repeats a request when its connection breaks or its time is up. The first copy may still be on its way.
A transaction's requests name the producer's id and epoch, and librdkafka 2.16 (transactions of version 1) keeps both
from one transaction to the next. So a late copy counts as a part of the next transaction (KAFKA-17754): a late commit
commits its first half, and a late batch number puts the newer one back. A new producer has a higher epoch, and Kafka
refuses what an older epoch sends.

librdkafka has no call that tells of lost answers, but it logs each broken connection and each time-out before it
repeats a request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from incsnap.errors import ConfigError
from incsnap.kafka import librdkafka as c

_log = logging.getLogger(__name__)
#: What librdkafka's lines about a broken connection and about requests that timed out begin with.
_BROKEN, _TIMED_OUT = b"FAIL", b"REQTMOUT"
#: The level (syslog's) of these lines. librdkafka has a higher one for connections that it closes itself: to a
#: bootstrap address that it has no more need of, or to a coordinator that has answered that it is none any more.
_LEVEL = 6
#: States of a connection in which no request of a transaction has been sent. A broker of the cluster that is down for
#: hours fails in these again and again, which is no reason to give producers up.
_BEFORE_USE = tuple(
    f" in state {state}".encode()
    for state in (
        "INIT",
        "DOWN",
        "TRY_CONNECT",
        "CONNECT",
        "SSL_HANDSHAKE",
        "AUTH_LEGACY",
        "APIVERSION_QUERY",
        "AUTH_HANDSHAKE",
        "AUTH_REQ",
    )
)


def logged(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a producer's settings with those that `LostAnswers` needs. What the user wants to be logged still is."""
    level = str(max(_LEVEL, _level_of(settings)))
    return {**settings, "log.queue": "true", "log_level": level, "log.connection.close": "true"}


def _level_of(settings: Mapping[str, str]) -> int:
    level = settings.get("log_level", "")
    return int(level) if level.isdigit() else 0


class LostAnswers:
    """What one producer has logged about its connections. Used by the producer's thread alone."""

    def __init__(self, lib: Any, conf: int, settings: Mapping[str, str]) -> None:
        self._lib = lib
        #: Lines up to this level are for the user.
        self._shown = _level_of(settings)
        self._any = False
        self._queue: int | None = None
        self._callback = c.LOG_CALLBACK(self._read)  # kept: librdkafka holds only its address
        lib.rd_kafka_conf_set_log_cb(conf, self._callback)

    def listen(self, rk: int) -> None:
        """Collect the lines of the producer `rk` from now on; those before are collected too."""
        self._queue = self._lib.rd_kafka_queue_new(rk)
        if self._lib.rd_kafka_set_log_queue(rk, self._queue) != 0:
            raise ConfigError("librdkafka does not give its log to a queue: log.queue is not in force")

    def close(self) -> None:
        """Give the queue back. Call it before the producer is destroyed."""
        if self._queue is not None:
            self._lib.rd_kafka_queue_destroy(self._queue)
            self._queue = None

    def any(self) -> bool:
        """Whether the answer to any request so far was lost."""
        while self._queue is not None and self._lib.rd_kafka_queue_poll_callback(self._queue, 0):
            pass
        return self._any

    def _read(self, _rk: int, level: int, kind: bytes, line: bytes) -> None:
        if level <= self._shown:
            _log.info("librdkafka: %s", line.decode("utf-8", "replace"))
        if kind == _TIMED_OUT or (kind == _BROKEN and not any(state in line for state in _BEFORE_USE)):
            self._any = True
