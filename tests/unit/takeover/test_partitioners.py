"""A connector whose producer does not choose partitions by Java's default."""

from __future__ import annotations

import pytest

from incsnap.envelope.seam import PartitionEnd, RecordPlace
from incsnap.errors import ConfigError
from incsnap.takeover.partitioners import partitioner_of, refuse_partitioner
from incsnap.takeover.written_records import WrittenRecords

_CLASS = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
_DEFAULT = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"
_BEHIND = WrittenRecords(RecordPlace(1, 4), ends=[PartitionEnd("all", 0, RecordPlace(1, 400))])


@pytest.mark.parametrize(
    ("connector", "worker", "expected"),
    [
        ({"producer.override.partitioner.class": _CLASS}, {}, f"partitioner.class={_CLASS}"),
        ({}, {"producer.partitioner.class": _CLASS}, f"partitioner.class={_CLASS}"),
        ({"producer.override.partitioner.class": _DEFAULT}, {"producer.partitioner.class": _CLASS}, ""),
        ({"producer.override.partitioner.ignore.keys": "true"}, {}, "partitioner.ignore.keys=true"),
        ({"producer.override.partitioner.ignore.keys": "false"}, {}, ""),
        ({}, {}, ""),
    ],
)
def test_the_connectors_setting_counts_before_that_of_its_worker(
    connector: dict[str, str], worker: dict[str, str], expected: str
) -> None:
    assert partitioner_of(connector, worker) == expected


def test_records_behind_the_offset_are_refused_if_keys_do_not_choose_their_partitions() -> None:
    with pytest.raises(ConfigError, match=r"partitioner\.class=x, and all has records behind the offset") as refused:
        refuse_partitioner("partitioner.class=x", _BEHIND, {"all": (1, 0)}, "Stop it cleanly.")
    assert refused.value.hint == "Stop it cleanly."


@pytest.mark.parametrize(
    ("partitioner", "written", "ends"),
    [
        ("", _BEHIND, {"all": (1, 0)}),
        ("partitioner.class=x", WrittenRecords(RecordPlace(1, 4)), {"all": (1, 0)}),
        ("partitioner.class=x", _BEHIND, {"all": (1,)}),
    ],
    ids=["default", "clean stop", "one partition"],
)
def test_nothing_is_refused_if_the_partitions_are_known(
    partitioner: str, written: WrittenRecords, ends: dict[str, tuple[int, ...]]
) -> None:
    refuse_partitioner(partitioner, written, ends, "")
