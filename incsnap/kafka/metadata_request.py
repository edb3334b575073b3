"""A request for metadata, made for what librdkafka learns by it: a broker to talk to, and the partitions of a topic."""

from __future__ import annotations

import ctypes
from typing import Any

from incsnap.kafka import librdkafka as c

#: Seconds to reach a first broker in.
REACH_SECONDS = 3.0


def look_up(lib: Any, rk: int | None, topic: int | None, seconds: float = REACH_SECONDS) -> int:
    """Asks a broker for its cluster, and for the topic where the handle of one is given: what it says of that, as a
    code of ``KafkaError``. An answer that does not come is no error here, as what is done next tells it better."""
    metadata = ctypes.POINTER(c.ClusterMetadata)()
    if lib.rd_kafka_metadata(rk, 0, topic, ctypes.byref(metadata), c.milliseconds(seconds)):
        return 0
    try:
        cluster = metadata.contents
        return int(cluster.topics[0].err) if topic is not None and cluster.topic_cnt == 1 else 0
    finally:
        lib.rd_kafka_metadata_destroy(metadata)
