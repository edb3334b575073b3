"""The notification that a running job's table differs from its topic, in the form of Debezium's notifications."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from incsnap.config.settings import Settings
from incsnap.config.topics import notification_topic
from incsnap.envelope.control_schemas import NOTIFICATION_VALUE
from incsnap.errors import IncsnapError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.tasks.formats import struct_formats
from incsnap.verify.kinds import DIFFERENCES
from incsnap.verify.report import TableReport

log = logging.getLogger(__name__)

AGGREGATE_TYPE, TYPE = "Verification", "DIFFERENCES"
_SECONDS = 10.0


def announce(settings: Settings, reports: Sequence[TableReport], now_ms: int) -> None:
    """Send a notification for each of `reports` to the topic of notifications, if there is one.

    An error is logged: the log has the differences too.
    """
    topic = notification_topic(settings)
    if topic is None or not reports:
        return
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    problems: list[str] = []
    try:
        # Formats with a schema registry ask it, here and for each value.
        key_format, value_format = struct_formats(settings)
        producer = Producer({**client.for_admin(), "acks": "all", "enable.idempotence": "true"})
        for report in reports:
            value = notice(settings.topic_prefix, report, now_ms)
            producer.produce(
                topic.name,
                value_format.struct(f"{topic.name}-value", NOTIFICATION_VALUE, value),
                key_format.struct(f"{topic.name}-key", topic.key_schema, topic.key({"id": value["id"]})),
                0,
                on_delivery=lambda error, _: problems.append(str(error)) if error else None,
            )
        left = producer.flush(_SECONDS)
    except (KafkaException, IncsnapError) as error:
        problems.append(str(error))
        left = 0
    if problems or left:
        log.warning(
            "The notification of differences was not sent to %s: %s", topic.name, "; ".join(problems) or "no answer"
        )


def notice(prefix: str, report: TableReport, now_ms: int) -> dict[str, Any]:
    """Return the value of the notification of a table."""
    counts = {kind: str(report.counts[kind]) for kind in DIFFERENCES}
    data = {"connector_name": prefix, "data_collection": report.table, "gtid_set": report.gtid_set, **counts}
    return {
        "id": f"verify-{report.table}-{now_ms}",
        "type": TYPE,
        "aggregate_type": AGGREGATE_TYPE,
        "additional_data": data,
        "timestamp": now_ms,
    }
