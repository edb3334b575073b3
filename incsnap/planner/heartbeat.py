"""Heartbeats: a record each `heartbeat.interval.ms`, and `heartbeat.action.query` beside it.

A heartbeat is due when the interval has passed since the previous heartbeat, or since the start. Its record follows the
events of the batch that is planned then, in the batch's transactions. If there are no events, a batch is made for it.
Debezium looks at its clock only when an event of the binlog comes. So on an idle server its heartbeats wait for the
server's own.
"""

from __future__ import annotations

import math
import time

from incsnap.checkpoint.control_records import ControlRecord
from incsnap.config.settings import Settings
from incsnap.config.topics import heartbeat_topic
from incsnap.envelope.control_schemas import HEARTBEAT_VALUE
from incsnap.planner.heartbeat_action import HeartbeatAction
from incsnap.tasks.formats import struct_formats


class Heartbeat:
    """The heartbeats of one planner. With `heartbeat.interval.ms` 0 no heartbeat is ever due."""

    def __init__(self, settings: Settings) -> None:
        heartbeat = settings.heartbeat
        self._settings = settings
        self._interval = heartbeat.interval_ms / 1000 or math.inf
        self._action = HeartbeatAction(settings.mysql, heartbeat.action_query) if heartbeat.action_query else None
        self._due_at = time.monotonic() + self._interval

    def seconds_left(self) -> float:
        """Return the seconds until the next heartbeat is due; 0 if it is due."""
        return max(0.0, self._due_at - time.monotonic())

    def records(self) -> tuple[ControlRecord, ...]:
        """Return the record of the heartbeat that is due, once, and have the query executed.

        Return () if no heartbeat is due, or if a transform drops the record. Raise the schema registry's error if the
        registry refuses the schema.
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
        """End the thread of the query."""
        if self._action is not None:
            self._action.close()
