"""The partitioner of a connector's producer. The job computes the partition of a key as Java's default partitioner does
(murmur2), and the take-over compares records partition by partition.
"""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.errors import ConfigError
from incsnap.takeover.written_records import WrittenRecords

#: Java's default partitioner, in releases that have a class of it.
_DEFAULT = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"
_CLASS, _IGNORES = "partitioner.class", "partitioner.ignore.keys"


def partitioner_of(connector: Mapping[str, str], worker: Mapping[str, str]) -> str:
    """Return the setting by which a connector's producer ignores keys or hashes them otherwise; "" for none.

    `connector` and `worker`: settings of the connector's file and of its worker's.
    """

    def given(name: str) -> str:
        override = connector.get(f"producer.override.{name}") or connector.get(f"producer.{name}")
        return (override or worker.get(f"producer.{name}", "")).strip()

    if (name := given(_CLASS)) not in ("", _DEFAULT):
        return f"{_CLASS}={name}"
    return f"{_IGNORES}=true" if given(_IGNORES).lower() == "true" else ""


def refuse_partitioner(
    partitioner: str, written: WrittenRecords, ends: Mapping[str, tuple[int, ...]], hint: str
) -> None:
    """Raise ConfigError if records behind the offset are in partitions that their keys do not choose.

    `partitioner`: result of `partitioner_of`. `ends`: of each topic the ends of its partitions. `hint`: the repair.
    """
    topic = next((each.topic for each in written.ends if len(ends.get(each.topic, ())) > 1), "")
    if partitioner and topic:
        raise ConfigError(
            f"the connector's producer has {partitioner}, and {topic} has records behind the offset: which keys are in"
            " which partition cannot be computed",
            hint,
        )
    for name, number, offset in written.astray:
        raise ConfigError(
            f"the connector has written the record at offset {offset} of {name} into partition {number}, which its key"
            " does not choose (murmur2, Java's default partitioner): which keys are in which partition cannot be"
            " computed",
            hint,
        )
