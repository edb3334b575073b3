"""Logging whether the brokers of a consumer can be reached: one line when they are lost, one when they are back.

librdkafka itself logs each refused connection, 20 times a second and more while a broker is away, and never that the
broker is back. So its own lines are switched off (`log_level`). Two callbacks, both called in `poll`, are combined
instead: `error_cb` gets errors with their reason, and `stats_cb` gets the state of the connections every second. Only
the state tells that a connection is up. https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md
"""

from __future__ import annotations

import json
import logging
from typing import Any

from confluent_kafka import KafkaError

log = logging.getLogger(__name__)


class Brokers:
    """The state of one consumer's brokers. `what` names in the log lines what is read from them.

    The consumer's own thread calls the methods.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._reason = ""
        self._away = False

    def settings(self) -> dict[str, Any]:
        """Return settings for the consumer. A user's own `log_level` after them also shows librdkafka's lines."""
        return {
            "log_level": "0",
            "error_cb": self.failed,
            "stats_cb": self.looked_at,
            "statistics.interval.ms": "1000",
            # The default is 10 s, in which no signal could arrive although the broker is back.
            "reconnect.backoff.max.ms": "2000",
        }

    def failed(self, error: KafkaError) -> None:
        """Record the reason of a failed connection.

        It matters only if no other connection is up, which `looked_at` checks.
        """
        # "1/1 brokers are down" follows an error with the reason, or the quiet end of a connection. Only then it stands
        # alone.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._reason:
            self._reason = error.str()

    def looked_at(self, statistics: str) -> None:
        """Examine librdkafka's statistics (JSON), and log a line if the brokers were lost or are back."""
        if not self._reason and not self._away:
            return  # the usual case, in which some kilobytes of JSON each second are not parsed
        brokers = json.loads(statistics)["brokers"].values()
        connected = any(broker["state"] == "UP" for broker in brokers)
        if connected:
            if self._away:
                log.info("%s can be read again", self._what)
            self._away, self._reason = False, ""
        elif not self._away:
            self._away = True
            # A group coordinator counts as a broker without an address. A bootstrap server counts twice, so addresses
            # are unique here.
            addresses = sorted({broker["nodename"] for broker in brokers} - {""})
            log.warning(
                "%s cannot be read, because no broker (%s) can be reached: %s. It is tried again all the time.",
                self._what,
                ", ".join(addresses),
                self._reason,
            )
