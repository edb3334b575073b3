"""Tests of the counts of changes by operation, from rows events to the counts of a sink task."""

from __future__ import annotations

from pathlib import Path

import pytest

from incsnap.checkpoint.progress import BucketCounts
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.tasks import blocks, small_tables
from incsnap.tasks.bucket import BucketBatch, Delivery, gather
from incsnap.tasks.event_counts import event_counts
from incsnap.tasks.partitions import SlicePart
from incsnap.tasks.slice_rows import slice_rows
from incsnap.tasks.transaction_metadata import WHOLE
from tests.support.kafka import keyed, records
from tests.support.stream_in_memory import slice_of
from tests.unit.tasks.test_small_tables import (
    CHARSETS,
    LAYOUT,
    UNWRAP,
    deletion,
    insertion,
    map_of,
    settings_of,
    update,
)

#: Six insertions, three updates (one of them of a key) and two deletions.
CHANGES = [
    [map_of(0), insertion(0, (1, 1), (2, 2), (3, 3)), update(0, (1, 1), (1, 2)), deletion(0, (3, 3))],
    [map_of(1), insertion(1, (1, 1), (2, 2), (3, 3)), update(1, (1, 1), (1, 2)), deletion(1, (2, 2))],
    [map_of(1), update(1, (3, 3), (4, 3))],
]
#: A change of a key counts as a deletion and a creation.
ALL = BucketCounts(events=12, creates=7, updates=2, deletes=3)


def counted(tmp_path: Path, **more: str) -> BucketCounts:
    """Return the sum of the counts of all buckets, without the count of bytes."""
    part = SlicePart(1, LAYOUT, 0, slice_of(*CHANGES), CHARSETS, WHOLE)
    rows = list(slice_rows(part, settings_of(**more), 5))
    total = BucketCounts()
    for bucket in {row[1] for row in rows}:
        received = gather([blocks.to_arrow([row for row in rows if row[1] == bucket], "2:d")])
        assert isinstance(received, BucketBatch)
        delivery = Delivery(received, WindowBuffers(str(tmp_path)))
        for _ in delivery.records():
            pass
        total += delivery.counts
    return total - BucketCounts(bytes=total.bytes)


@pytest.fixture(params=["together", "alone"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Encode small tables together, or each by itself."""
    if request.param == "alone":
        monkeypatch.setattr(small_tables, "_MOST_IMAGES", 0)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("tombstones", ["true", "false"])
@pytest.mark.parametrize("metadata", ["true", "false"])
def test_changes_are_counted_by_operation_without_tombstones(tmp_path: Path, tombstones: str, metadata: str) -> None:
    counts = counted(tmp_path, tombstones__on__delete=tombstones, provide__transaction__metadata=metadata)

    assert counts == ALL


@pytest.mark.usefixtures("way")
def test_operations_that_are_skipped_are_not_counted(tmp_path: Path) -> None:
    assert counted(tmp_path, skipped__operations="u,d") == BucketCounts(events=6, creates=6)


@pytest.mark.usefixtures("way")
def test_changes_that_a_transform_drops_are_not_counted(tmp_path: Path) -> None:
    counts = counted(
        tmp_path,
        transforms="f",
        transforms__f__type="io.debezium.transforms.Filter",
        transforms__f__language="jsr223.groovy",
        transforms__f__condition="value.op == 'u'",
        transforms__f__topic__regex="p\\.shop\\..*",
    )

    assert counts == BucketCounts(events=2, updates=2)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("mode", ["tombstone", "delete-to-tombstone", "rewrite"])
def test_a_deletion_that_a_transform_makes_a_tombstone_is_counted(tmp_path: Path, mode: str) -> None:
    counts = counted(tmp_path, **UNWRAP, transforms__u__delete__tombstone__handling__mode=mode)

    assert counts == ALL


def test_records_without_the_column_count_if_they_have_a_value() -> None:
    """The records of a DataFrame have no such column."""
    assert event_counts(records((0, b"a", b"1"), (0, b"a", None))) == BucketCounts(events=1)


def test_a_control_record_is_no_change(tmp_path: Path) -> None:
    """A truncation is a control record."""
    received = gather([blocks.to_arrow([blocks.control(1, 0, 0, "p.d.t", keyed(("a", '{"op":"t"}')))], "2:d")])
    assert received is not None
    delivery = Delivery(received, WindowBuffers(str(tmp_path)))

    assert sum(len(each.records) for each in delivery.records()) == 1
    assert delivery.counts.events == 0
