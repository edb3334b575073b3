"""Tests of the commands that signals become, and of what the log says about them."""

from __future__ import annotations

import pytest

from incsnap.planner.signal_commands import CapturedTables, command_of
from incsnap.snapshot.commands import Execute
from incsnap.tables import TableId
from signals.parse import parse
from signals.records import Chosen, Signal, SignalRecord
from signals.regex import literal

ORDERS, SIGNALS = TableId("shop", "orders"), TableId("shop", "Signals")


@pytest.mark.parametrize(("name", "ignore_case"), [("shop.Signals", False), ("SHOP.signals", True)])
def test_a_signal_that_names_the_signal_table_is_told_so(
    caplog: pytest.LogCaptureFixture, name: str, ignore_case: bool
) -> None:
    captured = CapturedTables((ORDERS,), ignore_case, SIGNALS)
    signal = Signal("s", "execute-snapshot", ("shop.orders", name, "shop.nothing"))

    command = command_of(signal, "kafka", lambda: captured, "")

    assert isinstance(command, Execute)
    assert [each.table for each in command.collections] == [ORDERS]
    assert command.unresolved == (name, "shop.nothing")
    own, other = (record.getMessage() for record in caplog.records)
    assert "shop.Signals is the signal table. No snapshot reads its rows" in own
    assert "no captured table is called or matches shop.nothing." in other


def test_a_signal_for_the_signal_table_alone_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    command_of(
        Signal("s", "execute-snapshot", (str(SIGNALS),)), "kafka", lambda: CapturedTables((), False, SIGNALS), ""
    )

    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "chosen",
    [
        Chosen(keys=({"id": 5},), deletes=True),
        Chosen(topic="lost"),
        Chosen(files="/keys"),
        Chosen(first={"id": 1}),
        Chosen(last={"id": 9}),
    ],
)
def test_keys_and_ranges_for_a_pattern_of_several_tables_are_refused(
    caplog: pytest.LogCaptureFixture, chosen: Chosen
) -> None:
    captured = CapturedTables((ORDERS, TableId("shop", "old_orders")), False, None)
    several = Signal("s", "execute-snapshot", (r"shop\..*orders",), chosen=chosen)
    one = Signal("s", "execute-snapshot", (r"shop\.ord.*",), chosen=chosen)

    assert command_of(several, "file", lambda: captured, "") is None
    assert "keys and ranges belong to one table, and 2 tables match" in caplog.text
    assert isinstance(command_of(one, "file", lambda: captured, ""), Execute)


def test_a_sample_may_be_one_of_several_tables() -> None:
    captured = CapturedTables((ORDERS, TableId("shop", "old_orders")), False, None)
    signal = Signal("s", "execute-snapshot", (r"shop\..*orders",), chosen=Chosen(every=10, seed=3))

    command = command_of(signal, "file", lambda: captured, "")

    assert isinstance(command, Execute)
    assert [each.chosen and (each.chosen.every, each.chosen.seed) for each in command.collections] == [(10, 3)] * 2


_MARKS = "$+()[].*?^|{}\\\"'` -#/\nä"


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        *(form.format(mark) for mark in _MARKS for form in ("a{0}b", "{0}b", "a{0}", "{0}b{0}", "a{0}{0}b")),
        *("orders$2024", "o(1)", "a[1]", "a{1}", "`a`", '"a"', "`a`.`b`", r"\Qa\E", "[", "orders"),
    ],
)
def test_a_literal_name_means_one_of_many_similar_tables(name: str, ignore_case: bool) -> None:
    similar = ["ab", "aab", "aaab", "abb", "aXb", "a", "b", "a1", "aa", "o1", "order", "orders", f"{name}b", name * 2]
    tables = [TableId("shop", each) for each in dict.fromkeys([*similar, name])]
    data = {"type": "incremental", "data-collections": [literal(f"shop.{name}")]}

    signal = parse(SignalRecord("s", "execute-snapshot", data))
    assert isinstance(signal, Signal), signal
    command = command_of(signal, "kafka", lambda: CapturedTables(tuple(tables), ignore_case), "")

    assert isinstance(command, Execute)
    assert [each.table for each in command.collections] == [TableId("shop", name)]
