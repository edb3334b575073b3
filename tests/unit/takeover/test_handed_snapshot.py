"""Tests of the last key up to which a job has sent a table: a connector goes on behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Range, Request, Scan
from incsnap.snapshot.keys import Key
from incsnap.snapshot.window import Window
from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover.handed_snapshot import as_values, sent_up_to

_TABLE = TableId("shop", "orders")
_SCAN = Scan(1, Request("s", DataCollection(_TABLE)), 100, ("id",), maximum=("900",), boundary=("400",))


def window(lower: Key | None, upper: Key, scan: int = 1) -> Window:
    return Window(f"w{upper}", scan, _TABLE, "s", lower, upper, 100, 1)


def test_all_is_sent_up_to_the_boundary_if_no_window_is_in_flight() -> None:
    assert sent_up_to(_SCAN, [window(("5",), ("6",), scan=2)]) == ("400",)


def test_all_is_sent_up_to_the_first_window_in_flight() -> None:
    assert sent_up_to(_SCAN, [window(("200",), ("300",)), window(("300",), ("400",))]) == ("200",)


def test_nothing_is_sent_while_the_first_chunk_is_in_flight() -> None:
    assert sent_up_to(_SCAN, [window(None, ("300",)), window(("300",), ("400",))]) is None


@pytest.mark.parametrize(
    "windows",
    [
        [window(("300",), ("400",)), window(("100",), ("200",))],
        [window(("100",), ("200",)), window(("300",), ("400",))],
        [window(("200",), ("300",))],
    ],
    ids=["read again behind", "gap", "not up to the boundary"],
)
def test_ranges_that_are_planned_out_of_order_leave_the_key_unknown(windows: list[Window]) -> None:
    assert sent_up_to(_SCAN, windows) is None


@pytest.mark.parametrize(
    "scan",
    [
        replace(_SCAN, again=(Range(("1",), ("2",), 1),)),
        replace(_SCAN, quarantine=(Range(("1",), ("2",), 1),)),
        replace(_SCAN, descending=("id",)),
    ],
    ids=["again", "quarantine", "descending"],
)
def test_a_table_with_ranges_left_behind_begins_anew(scan: Scan) -> None:
    assert sent_up_to(scan, []) is None


def test_a_key_has_the_types_of_java() -> None:
    shape = TableShape(_TABLE, (Column("a", "bigint"), Column("b", "varchar"), Column("c", "datetime")))

    assert as_values(shape, ("a", "b"), ("-7", "7")) == [-7, "7"]
    assert as_values(shape, ("a", "c"), ("1", "2026-01-01 00:00:00")) is None
    assert as_values(shape, ("a",), (None,)) is None
    assert as_values(shape, ("a", "b"), ("1",)) is None


def test_a_key_that_debezium_has_in_another_form_is_left_out() -> None:
    columns = (
        Column("u", "bigint", unsigned=True),
        Column("k", "varchar", charset="koi8r"),
        Column("t", "varchar", charset="utf8mb4"),
    )
    shape = TableShape(_TABLE, columns)

    assert as_values(shape, ("u", "t"), (str(2**63 - 1), "\0\U0001f600")) == [2**63 - 1, "\0\U0001f600"]
    assert as_values(shape, ("u",), (str(2**63),)) is None
    # The server shows such a text in hexadecimal digits.
    assert as_values(shape, ("k",), ("C1",)) is None
