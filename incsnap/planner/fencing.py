"""The fencing of all other producers that still write to the topics of a prefix, bucket by bucket.

What a producer has not committed when it is fenced is never committed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter

#: Buckets that are fenced at the same time. Each takes 10 ms; one in a few hundred takes 510 ms.
_TOGETHER = 8


def fence_others(settings: Settings, buckets: int) -> None:
    """Fence all other producers of the first `buckets` buckets of the prefix. Raise SinkError if Kafka fails."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, "")
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="incsnap-fence") as fencing:
        list(fencing.map(writer.fence, range(buckets)))
