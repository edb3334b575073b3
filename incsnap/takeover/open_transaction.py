"""The transaction that a connector's task may have left open: Kafka Connect writes in transactions for exactly once.

A worker that is killed leaves its transaction open until the broker ends it, by default after a minute. Until then a
consumer that reads committed records sees nothing behind it, so nothing of the job either. A worker that only hangs
could even commit it behind the job's first records. Connect ends it in the same way before it starts the task again
(KIP-618).
"""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError

_SECONDS = 30.0


def task_transaction(worker: Mapping[str, str], connector: str) -> str:
    """Return the `transactional.id` of the connector's task, as Connect gives it; "" if it writes no transactions."""
    is_enabled = worker.get("exactly.once.source.support", "").strip().lower() == "enabled"
    group = worker.get("group.id", "")
    # MySQL's connector has one task.
    return f"{group}-{connector}-0" if is_enabled and group and connector else ""


def end_transaction(client: ClientSettings, transactional_id: str) -> str:
    """End the open transaction of every producer with this id, and let none of them write again.

    Return why that failed; "" if it has worked.
    """
    try:
        with TransactionalProducer(client.for_producer(transactional_id)) as producer:
            producer.init_transactions(_SECONDS)
    except ClientError as error:
        return error.text
    return ""
