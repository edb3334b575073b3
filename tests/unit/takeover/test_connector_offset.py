"""The offset of a connector, from its JSON."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.takeover.connector_offset import ConnectorOffset, WaitingTable, offset_of

_GTIDS = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-2047"
_PLACE: dict[str, Any] = {"file": "binlog.000012", "pos": 4711, "gtids": _GTIDS}
#: `new Object[]{5L}` and `new Object[]{9L}`, as Java writes them.
_FIVE, _NINE = (
    "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c02000078700000000173720"
    "00e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176612e6c616e"
    f"672e4e756d62657286ac951d0b94e08b02000078700000000000000{number:03x}"
    for number in (5, 9)
)


def test_a_place_between_transactions() -> None:
    assert offset_of({**_PLACE, "ts_sec": 1_763_800_000, "event": 0, "row": 0, "server_id": 223344}) == ConnectorOffset(
        GtidSet.parse(_GTIDS), "binlog.000012", 4711, seconds=1_763_800_000
    )


def test_a_place_in_a_transaction() -> None:
    offset = offset_of({**_PLACE, "event": 7, "row": 2})

    assert (offset.event, offset.row, offset.is_within_transaction) == (7, 2, True)


@pytest.mark.parametrize(("given", "kind"), [(True, "initial"), ("INITIAL", "initial"), ("BLOCKING", "blocking")])
def test_a_snapshot_under_way(given: object, kind: str) -> None:
    assert offset_of({**_PLACE, "snapshot": given}).snapshot == kind
    assert offset_of({**_PLACE, "snapshot": False}).snapshot == ""


def test_a_first_snapshot_whose_rows_were_all_sent_is_none_under_way() -> None:
    assert offset_of({**_PLACE, "snapshot": True, "snapshot_completed": True}).snapshot == ""
    assert offset_of({**_PLACE, "snapshot": True, "snapshot_completed": False}).snapshot == "initial"


def test_the_newest_signal_of_a_connector_that_only_reads() -> None:
    assert offset_of({**_PLACE, "incremental_snapshot_signal_offset": 7}).signal == 7
    assert offset_of(_PLACE).signal is None


def test_an_offset_with_rows_of_an_incremental_snapshot_names_no_other_snapshot() -> None:
    # Debezium writes so behind the rows of a chunk. The tables that are left stand beside it.
    assert offset_of({**_PLACE, "snapshot": "INCREMENTAL"}).snapshot == ""


def test_an_incremental_snapshot_under_way() -> None:
    name = "incremental_snapshot_collections"
    tables = (
        f'[{{"{name}_id":"shop.orders","{name}_additional_condition":"qty > 1","{name}_surrogate_key":null}},'
        f'{{"{name}_id":"shop.lines"}}]'
    )
    running = offset_of(
        {
            **_PLACE,
            name: tables,
            "incremental_snapshot_correlation_id": "ad-hoc",
            "incremental_snapshot_primary_key": _FIVE,
            "incremental_snapshot_maximum_key": _NINE,
        }
    ).running

    assert running is not None
    assert running.signal == "ad-hoc"
    assert running.tables == (WaitingTable("shop.orders", "qty > 1"), WaitingTable("shop.lines"))
    assert (running.last_key, running.maximum_key) == ((5,), (9,))


def test_a_key_that_is_not_understood_is_no_key() -> None:
    running = offset_of(
        {
            **_PLACE,
            "incremental_snapshot_collections": '[{"incremental_snapshot_collections_id":"a.b"}]',
            "incremental_snapshot_primary_key": "zz",
        }
    ).running

    assert running is not None
    assert (running.last_key, running.problem) == (None, "a key that is not written in hexadecimal digits")


def test_an_offset_without_gtids_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"binlog\.000012:4711 has no GTIDs.*\n?.*") as caught:
        offset_of({"file": "binlog.000012", "pos": 4711})
    assert "gtid_mode=ON" in caught.value.hint


@pytest.mark.parametrize("content", [{}, {"file": "f", "pos": "x", "gtids": _GTIDS}, {"lsn": 1}])
def test_the_offset_of_another_connector_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="not the offset of a MySQL connector"):
        offset_of(content)


@pytest.mark.parametrize("content", ["x", 7, ["gtids"]])
def test_an_offset_that_is_no_object_is_refused(content: Any) -> None:
    with pytest.raises(ConfigError, match=r"this is not the offset of a MySQL connector: .*: it is no object"):
        offset_of(content)
