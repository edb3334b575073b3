"""Are the brokers of a consumer there? One line in the log when they go, and one when they are back.

librdkafka itself says so for each connection that is refused, 20 times a second and more, for as long as a broker is
away, and never that it is back. So its own lines are left out (``log_level``), and two things are put together that it
tells by callbacks, both in ``poll``: errors (``error_cb``), which have the reason, and each second the state of its
connections (``stats_cb``), which alone says that one is up.
https://github.com/confluentinc/librdkafka/blob/master/STATISTICS.md
"""

from __future__ import annotations

import json
import logging
from typing import Any

from confluent_kafka import KafkaError

log = logging.getLogger(__name__)


class Brokers:
    """``what``: is read from them, as the lines name it. Calls of one consumer, from its own thread."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._reason = ""
        self._away = False

    def settings(self) -> dict[str, Any]:
        """What the consumer is made with; a user's ``log_level`` behind it brings librdkafka's own lines too."""
        return {
            "log_level": "0",
            "error_cb": self.failed,
            "stats_cb": self.looked_at,
            "statistics.interval.ms": "1000",
            # By default 10 s, in which nobody could signal although the broker is there.
            "reconnect.backoff.max.ms": "2000",
        }

    def failed(self, error: KafkaError) -> None:
        """A connection failed. It is news only when there is no other one: ``looked_at`` sees that."""
        # "1/1 brokers are down" follows the error that says why, or a connection's quiet end, and then stands alone.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._reason:
            self._reason = error.str()

    def looked_at(self, statistics: str) -> None:
        """Takes librdkafka's statistics, JSON, of which the state of each broker is looked at."""
        if not self._reason and not self._away:
            return  # nothing has failed: the rule, which is not to cost a document of some kilobytes each second
        brokers = json.loads(statistics)["brokers"].values()
        connected = any(broker["state"] == "UP" for broker in brokers)
        if connected:
            if self._away:
                log.info("%s can be read again", self._what)
            self._away, self._reason = False, ""
        elif not self._away:
            self._away = True
            # A group's coordinator counts as a broker without an address, a bootstrap server as a second one with it.
            addresses = sorted({broker["nodename"] for broker in brokers} - {""})
            log.warning(
                "%s cannot be read, because no broker (%s) can be reached: %s. It is tried again all the time.",
                self._what,
                ", ".join(addresses),
                self._reason,
            )
