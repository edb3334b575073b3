"""Whoever still writes to the topics of a prefix is fenced, bucket by bucket: what it has not committed never is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter

#: Buckets that are fenced at the same time: each takes 10 ms, and one in some hundred takes 510 ms.
_TOGETHER = 8


def shut_out(settings: Settings, buckets: int) -> None:
    """Fence the first ``buckets`` buckets of the prefix. Raise ``SinkError``."""
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    writer = BucketWriter(client, settings.topic_prefix, "")
    with ThreadPoolExecutor(_TOGETHER, thread_name_prefix="incsnap-fence") as fencing:
        list(fencing.map(writer.fence, range(buckets)))
