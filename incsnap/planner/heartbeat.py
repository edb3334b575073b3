"""Heartbeats: a record each ``heartbeat.interval.ms``, and ``heartbeat.action.query`` beside it.

A heartbeat is due when the interval has passed since the one before it, or since the start. It stands behind the events
of the batch that was planned then, in its transactions; where there is nothing else, a batch is made for it. Debezium
looks at its clock when an event of the binlog comes, so on an idle server its heartbeats wait for the server's own.
"""

from __future__ import annotations

import math
import time

from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.config.topics import heartbeat_topic
from incsnap.envelope.heartbeat_records import HEARTBEAT_VALUE
from incsnap.planner.heartbeat_action import HeartbeatAction
from incsnap.tasks.formats import struct_formats


class Heartbeat:
    """The heartbeats of one planner. Where ``heartbeat.interval.ms`` is 0, none is ever due."""

    def __init__(self, settings: Settings) -> None:
        heartbeat = settings.heartbeat
        self._settings = settings
        self._interval = heartbeat.interval_ms / 1000 or math.inf
        self._action = HeartbeatAction(settings.mysql, heartbeat.action_query) if heartbeat.action_query else None
        self._due_at = time.monotonic() + self._interval

    def seconds_left(self) -> float:
        """How long it is until the next is due; 0 where it is."""
        return max(0.0, self._due_at - time.monotonic())

    def records(self) -> tuple[ControlRecord, ...]:
        """The heartbeat that is due now, once; the query is executed then. None where a transform drops it.

        Raises what a schema registry refuses.
        """
        if self.seconds_left():
            return ()
        self._due_at = time.monotonic() + self._interval
        if self._action is not None:
            self._action.ask()
        topic = heartbeat_topic(self._settings)
        if topic is None:
            return ()
        keys, values = struct_formats(self._settings)
        key, value = {"serverName": self._settings.topic_prefix}, {"ts_ms": time.time_ns() // 1_000_000}
        return (
            ControlRecord(
                topic.name,
                keys.struct(f"{topic.name}-key", topic.key_schema, topic.key(key)),
                values.struct(f"{topic.name}-value", HEARTBEAT_VALUE, value),
            ),
        )

    def close(self) -> None:
        if self._action is not None:
            self._action.close()
