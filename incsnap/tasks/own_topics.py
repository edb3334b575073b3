"""The topics and partitions of records that name these themselves: outbox events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.envelope.partitioner import partition
from incsnap.errors import ValueRefused

#: A function from a topic that an event names to its number of partitions. It creates a missing topic.
PartitionsOf = Callable[[str], int]


def by_topic(topic: str, records: pa.RecordBatch, partitions_of: PartitionsOf) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield (topic, records) for each topic, each record with its final partition.

    Outbox events name their topic. Their partition is the one that they name, or else the one of their key. Other
    records are yielded unchanged, with `topic`. Raise ValueRefused if an event names a partition that its topic does
    not have.
    """
    if "topic" not in records.schema.names:
        yield topic, records
        return
    names = records.column("topic").dictionary_encode()
    index = records.schema.get_field_index("partition")
    for number, name in enumerate(names.dictionary.to_pylist()):
        of_topic = records.filter(pc.equal(names.indices, number))
        count = partitions_of(name)
        chosen = pa.array(partition(of_topic.column("key"), count), pa.int32())
        if "place" in of_topic.schema.names:
            chosen = pc.coalesce(_places(name, of_topic.column("place"), count), chosen)
        yield name, of_topic.set_column(index, "partition", chosen)


def _places(topic: str, places: Any, count: int) -> Any:
    """Return the partitions that events name. Raise ValueRefused if the topic lacks one of them."""
    wrong = places.filter(pc.or_(pc.less(places, 0), pc.greater_equal(places, count)))
    if len(wrong):
        raise ValueRefused(
            f"an event is to go to partition {wrong[0]} of {topic}, which has {count}",
            "Give the topic more partitions, or correct what writes the number into the outbox table.",
        )
    return places
