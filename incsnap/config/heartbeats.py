"""``heartbeat.*`` and ``topic.heartbeat.*``."""

from __future__ import annotations

from incsnap.config.reading import SettingsReader
from incsnap.config.settings import HeartbeatSettings
from incsnap.config.topics import INVALID, LONGEST_NAME

_INTERVAL, _QUERY = "heartbeat.interval.ms", "heartbeat.action.query"


def heartbeats(reading: SettingsReader, prefix: str, delimiter: str, *, read_only: bool) -> HeartbeatSettings:
    """``prefix``: topic.prefix; ``delimiter``: topic.delimiter; ``read_only``: read.only, which forbids the query."""
    interval = reading.integer(_INTERVAL, 0, 0, 2**31 - 1)
    first = reading.text("topic.heartbeat.prefix", "__debezium-heartbeat")
    whole = reading.text("topic.heartbeat.name")
    topic = whole or delimiter.join((first, prefix))
    if INVALID.search(whole or first) or (interval and len(topic) > LONGEST_NAME):
        name = "topic.heartbeat.name" if whole else "topic.heartbeat.prefix"
        reading.problem(name, f"made of letters, digits, . _ -, at most {LONGEST_NAME} in all of the topic's name")
    query = reading.text(_QUERY)
    if query and not interval:
        reading.warnings.append(f"{_QUERY} is never executed, because {_INTERVAL} is 0: set it to its interval")
    if query and read_only:
        reading.warnings.append(f"{_QUERY} is never executed, because read.only is true: take one of them out")
    return HeartbeatSettings(interval_ms=interval, topic=topic, action_query="" if read_only else query)
