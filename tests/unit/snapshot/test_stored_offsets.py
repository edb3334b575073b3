"""Tests that this release reads offsets of older releases, which are kept unchanged in `offsets/`.

A release that raises `VERSION` adds its own offset and leaves the others alone. This command writes it:

    python -m tests.unit.snapshot.test_stored_offsets
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Range, Release, Request, Scan, SnapshotContext
from incsnap.snapshot.notifications import STARTED, Notification
from incsnap.snapshot.offset import VERSION, Offset, OpenCounts, TopicLayout
from incsnap.snapshot.throttle import REPLICA_LAG, ROWS, Bound, Throttle
from incsnap.snapshot.window import ChunkResult, ChunkTime, Window
from incsnap.tables import TableId

FOLDER = Path(__file__).with_name("offsets")
NEWEST = FOLDER / f"version-{VERSION}.json"

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_ORDERS, _CUSTOMERS, _AUDIT, _LINES, _ITEMS = (
    TableId("inventory", name) for name in ("orders", "customers", "audit", "lines", "items")
)
_READING = ChunkResult(2_500, 900_000, 0.5, "binlog.000012", 8_200, _SERVER, "", "w3-1.arrow", 1_950_000, 4)


def _asked(table: TableId, condition: str = "") -> Request:
    """Return a request for the table."""
    return Request("ad-hoc-1", DataCollection(table, condition))


#: An offset with everything in it: tables are read, one waits, a transaction is cut in two, an XA transaction is
#: prepared.
EXPECTED = Offset(
    job_id="5d1f0c9c2f6a4f0e8c1b7a3e9d2c4b6a",
    batch=812,
    stream=StreamPosition(
        GtidSet.parse(f"{_SERVER}:1-4711"), "binlog.000012", 8_421, f"{_SERVER}:4712", 3, _SERVER, 1_763_800_000
    ),
    layout=TopicLayout(2, {"shop.inventory.orders": 4, "shop.inventory.customers": 1}),
    snapshot=SnapshotContext(
        queue=(_asked(_AUDIT, "level = 'error'"),),
        scans=(
            Scan(
                1,
                _asked(_ORDERS, "level = 'error'"),
                10_000,
                ("id",),
                "PRIMARY",
                "c0ffee",
                True,
                ("90000",),
                ("30000",),
                again=(Range(("20000",), ("25000",), 5_000, 1, 1),),
                quarantine=(Range(("26",), ("27",), 1, 5, 5),),
                rows_read=27_500,
                begun_again=1,
                lost_readings=3,
            ),
            Scan(2, _asked(_CUSTOMERS), 2_500),
            Scan(
                3,
                _asked(_LINES),
                10_000,
                ("day", "seq"),
                "PRIMARY",
                "facade",
                True,
                ("2020-01-01", "9"),
                ("2026-11-23", "4"),
                descending=("day",),
                times=(ChunkTime(2_500, 5.5), ChunkTime(10_000, 7.25)),
                doublings=1,
            ),
            Scan(
                4,
                Request("keys-1", DataCollection(_ITEMS, chosen=ChosenRows(topic="lost-keys", deletes=True))),
                5_000,
                ("id",),
                "PRIMARY",
                "decade",
                True,
                ("100000",),
                ("5000",),
                rows_read=4_000,
                keys="5d1f0c9c2f6a4f0e8c1b7a3e9d2c4b6a",
                absent=1_000,
            ),
            Scan(
                5,
                Request("range-1", DataCollection(_CUSTOMERS, chosen=ChosenRows(first='{"id":7}', every=100, seed=3))),
                2_500,
                ("id",),
                "PRIMARY",
                "facade",
                True,
                first=("7",),
            ),
        ),
        planned=(
            Window("w4", 1, _ORDERS, "ad-hoc-1", ("25000",), ("30000",), 5_000, 812, planned_ms=1_763_800_100),
            Window("w5", 3, _LINES, "ad-hoc-1", ("2025-01-01", "4"), ("2020-01-01", "9"), 9, 812, doublings=1),
        ),
        held=(Window("w3", 1, _ORDERS, "ad-hoc-1", None, ("20000",), 20_000, 809, 0, 0, 0, _READING, 17, 811),),
        released=(
            Release(Window("w2", 1, _ORDERS, "ad-hoc-1", None, ("9",), 9, 805, 0, 0, 0, _READING, 5, 807, True, 1), 3),
        ),
        notifications=(
            Notification("ad-hoc-1", STARTED, 1_763_800_000_000, (("data_collections", "inventory.orders"),)),
        ),
        paused=True,
        recent=("ad-hoc-1",),
        scans_begun=5,
        paused_by="pause-1",
        throttle=Throttle((Bound(ROWS, 5_000, "slow-1"), Bound(REPLICA_LAG, 0, "fast-2")), 1_763_800_001_000),
    ),
    signal_positions={"kafka": 42, "file": {"inode": 7, "place": 120}},
    counted=OpenCounts(1_763_800_000_123_456, (("inventory.orders", 3),)),
    control=("812.json",),
    prepared=(PreparedXa("X'67',X'62',1", f"{_SERVER}:4700", "binlog.000012", ("p1",), "abc"),),
    form="0123456789abcdef",
    defaults="fedcba9876543210",
    sought=("X'68',X'',1",),
    seam="0f0f0f0f",
)


def test_this_release_has_kept_what_it_writes() -> None:
    assert json.loads(NEWEST.read_text()) == json.loads(json.dumps(EXPECTED.dump()))


def _kept(version: int) -> dict[str, Any]:
    """Return the JSON of the offset that was kept for a version."""
    kept: dict[str, Any] = json.loads((FOLDER / f"version-{version}.json").read_text())
    return kept


#: The offset as version 8 kept it: without records that another engine has sent.
_EXPECTED_OF_8 = replace(EXPECTED, seam="")
#: The offset as version 7 kept it: without rows that a signal chooses.
_EXPECTED_OF_7 = replace(
    _EXPECTED_OF_8, snapshot=replace(EXPECTED.snapshot, scans=EXPECTED.snapshot.scans[:3], scans_begun=3)
)
_SCANS = (
    replace(EXPECTED.snapshot.scans[0], begun_again=0, lost_readings=0),
    EXPECTED.snapshot.scans[1],
    replace(EXPECTED.snapshot.scans[2], times=(), doublings=0),
)
#: The offset as version 6 kept it: without tables begun again, sought XA transactions and times of chunks.
_EXPECTED_OF_6 = replace(
    _EXPECTED_OF_7,
    snapshot=replace(_EXPECTED_OF_7.snapshot, scans=_SCANS, planned=EXPECTED.snapshot.planned[:1]),
    sought=(),
)
#: The offset as version 5 and older kept it: without a key that descends.
_EXPECTED_BEFORE = replace(_EXPECTED_OF_6, snapshot=replace(_EXPECTED_OF_6.snapshot, scans=_SCANS[:2], scans_begun=2))


def test_an_offset_that_was_kept_is_read_whole() -> None:
    assert Offset.load(_kept(9)) == EXPECTED
    assert Offset.load(_kept(8)) == _EXPECTED_OF_8
    assert Offset.load(_kept(7)) == _EXPECTED_OF_7
    assert Offset.load(_kept(6)) == _EXPECTED_OF_6
    assert Offset.load(_kept(5)) == _EXPECTED_BEFORE


def test_a_throttle_of_version_4_goes_on() -> None:
    offset = Offset.load(_kept(4))

    assert offset.snapshot.throttle == Throttle((Bound(ROWS, 5_000, "slow-1"),), 1_763_800_001_000)
    assert replace(offset, snapshot=replace(offset.snapshot, throttle=EXPECTED.snapshot.throttle)) == _EXPECTED_BEFORE


@pytest.mark.parametrize("version", range(1, 6))
def test_a_key_of_several_columns_in_an_older_offset_is_asked_about_again(version: int) -> None:
    scans = tuple(
        Scan(number, _asked(_LINES), 10, columns, "PRIMARY", "c0ffee", True, ("2", "4")[: len(columns)])
        for number, columns in enumerate([("id",), ("day", "seq")])
    )
    kept = replace(EXPECTED, snapshot=SnapshotContext(scans=scans)).dump()

    offset = Offset.load({**kept, "version": version}).snapshot.scans

    assert offset == (scans[0], replace(scans[1], described=False))
    assert Offset.load(kept).snapshot.scans == scans


@pytest.mark.parametrize("version", range(1, 7))
def test_a_table_with_a_surrogate_key_in_an_older_offset_is_asked_about_again(version: int) -> None:
    request = Request("ad-hoc-1", DataCollection(_LINES, surrogate="day"))
    scan = Scan(1, request, 10, ("day",), "by_day", "c0ffee", True, ("2",))
    kept = replace(EXPECTED, snapshot=SnapshotContext(scans=(scan,))).dump()

    assert Offset.load({**kept, "version": version}).snapshot.scans == (replace(scan, described=False),)
    assert Offset.load(kept).snapshot.scans == (scan,)


def test_every_kept_offset_is_read() -> None:
    offsets = [Offset.load(json.loads(file.read_text())) for file in sorted(FOLDER.glob("version-*.json"))]

    assert offsets
    assert {(each.job_id, each.batch, each.stream) for each in offsets} == {
        (EXPECTED.job_id, EXPECTED.batch, EXPECTED.stream)
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    NEWEST.write_text(json.dumps(EXPECTED.dump(), indent=1) + "\n")
