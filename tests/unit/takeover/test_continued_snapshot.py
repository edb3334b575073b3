"""The rest of a connector's snapshot: the tables that wait, with their conditions, and what is said about them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from incsnap.config.settings import Settings
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request
from incsnap.tables import TableId
from incsnap.takeover import continued_snapshot
from incsnap.takeover.connector_offset import RunningSnapshot, WaitingTable
from incsnap.takeover.continued_snapshot import requests_of
from incsnap.types.modes import Modes
from tests.support.job_settings import loaded_with

_ORDERS, _LINES, _NOTES = (TableId("shop", name) for name in ("orders", "lines", "notes"))
_CAPTURED = {str(table): table for table in (_ORDERS, _LINES, _NOTES)}
_KEYS = {str(table): ("id",) for table in (_ORDERS, _LINES, _NOTES)}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return settings of a job whose server can read a range of each table."""
    monkeypatch.setattr(continued_snapshot, "_can_be_read", lambda *_: True)
    return loaded_with().settings


def test_tables_that_wait_keep_their_order_and_their_conditions(settings: Settings) -> None:
    waiting = (
        WaitingTable("shop.orders", "qty > 1"),
        WaitingTable("shop.lines", "qty > 2", "number"),
        WaitingTable("shop.notes"),
    )

    requests, lines = requests_of(settings, RunningSnapshot("ad-hoc", waiting, (5,), (9,)), _CAPTURED, _KEYS)

    assert requests == (
        Request("ad-hoc", DataCollection(_ORDERS, "qty > 1", "", ChosenRows(first='{"id": 5}', last='{"id": 9}'))),
        Request("ad-hoc", DataCollection(_LINES, "qty > 2", "number")),
        Request("ad-hoc", DataCollection(_NOTES)),
    )
    assert lines == [
        'The snapshot of shop.orders (signal ad-hoc) goes on behind the key {"id": 5}.',
        "The snapshot of shop.lines (signal ad-hoc) begins at its first row.",
        "The snapshot of shop.notes (signal ad-hoc) begins at its first row.",
    ]


def test_the_last_key_is_not_that_of_the_next_table_if_the_first_one_is_not_captured(settings: Settings) -> None:
    running = RunningSnapshot("ad-hoc", (WaitingTable("shop.gone"), WaitingTable("shop.lines")), (5,), (9,))

    requests, lines = requests_of(settings, running, _CAPTURED, _KEYS)

    assert requests == (Request("ad-hoc", DataCollection(_LINES)),)
    assert lines == [
        "shop.gone was to be read and is not captured: it is left out.",
        "The snapshot of shop.lines (signal ad-hoc) begins at its first row.",
    ]


def test_a_key_that_cannot_be_read_is_named_with_the_table_that_has_it(settings: Settings) -> None:
    waiting = (WaitingTable("shop.orders"), WaitingTable("shop.lines"))
    running = RunningSnapshot("ad-hoc", waiting, None, None, "an object of the class java.util.UUID")

    requests, lines = requests_of(settings, running, _CAPTURED, _KEYS)

    assert [each.collection for each in requests] == [DataCollection(_ORDERS), DataCollection(_LINES)]
    assert lines == [
        "The snapshot of shop.orders (signal ad-hoc) begins at its first row, because the connector's last key cannot"
        " be read: an object of the class java.util.UUID.",
        "The snapshot of shop.lines (signal ad-hoc) begins at its first row.",
    ]


@pytest.mark.parametrize(
    ("last", "maximum", "shown"),
    [
        (date(2026, 11, 27), date(2026, 11, 28), "2026-11-27"),
        (datetime(2026, 11, 27, 1, 2, 3), datetime(2026, 11, 28), "2026-11-27 01:02:03"),
        (time(1, 2, 3), time(4), "01:02:03"),
    ],
    ids=["DATE", "a time without a zone", "a time of a day"],
)
def test_a_key_that_needs_no_time_zone_goes_on(settings: Settings, last: Any, maximum: Any, shown: str) -> None:
    running = RunningSnapshot("ad-hoc", (WaitingTable("shop.orders"),), (last,), (maximum,))

    (request,), (line,) = requests_of(settings, running, _CAPTURED, _KEYS)

    assert request.collection.chosen is not None
    assert request.collection.chosen.first == f'{{"id": "{shown}"}}'
    assert line == f'The snapshot of shop.orders (signal ad-hoc) goes on behind the key {{"id": "{shown}"}}.'


@pytest.mark.parametrize(
    ("last", "handling", "shown"),
    [
        (Decimal("12345678901234567890.10"), "bytes", "12345678901234567890.10"),
        (1.5, "bytes", "1.5"),
        (b"\xfb\xff\x00", "bytes", '"+/8A"'),
        (b"\xfb\xff\x00", "base64", '"+/8A"'),
        (b"\xfb\xff\x00", "base64-url-safe", '"-_8A"'),
        (b"\xfb\xff\x00", "hex", '"fbff00"'),
    ],
    ids=str,
)
def test_a_key_has_the_form_of_records(settings: Settings, last: Any, handling: str, shown: str) -> None:
    of_mode = settings.model_copy(update={"modes": Modes(binary_handling=handling)})
    running = RunningSnapshot("ad-hoc", (WaitingTable("shop.orders"),), (last,), (last,))

    (request,), (line,) = requests_of(of_mode, running, _CAPTURED, _KEYS)

    assert request.collection.chosen == ChosenRows(first=f'{{"id": {shown}}}', last=f'{{"id": {shown}}}')
    assert line == f'The snapshot of shop.orders (signal ad-hoc) goes on behind the key {{"id": {shown}}}.'


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (
            datetime(2026, 11, 27, tzinfo=UTC),
            "an instant of a DATETIME or TIMESTAMP, whose time zone the offset does not have",
        ),
        (True, "a value of the type bool"),
    ],
    ids=["DATETIME", "BIT"],
)
def test_the_reason_is_given_for_a_key_whose_values_are_no_limit_of_a_range(
    settings: Settings, last: Any, reason: str
) -> None:
    waiting = (WaitingTable("shop.orders"), WaitingTable("shop.lines"))
    running = RunningSnapshot("ad-hoc", waiting, (last,), (last,))

    requests, lines = requests_of(settings, running, _CAPTURED, _KEYS)

    assert [each.collection for each in requests] == [DataCollection(_ORDERS), DataCollection(_LINES)]
    assert lines == [
        "The snapshot of shop.orders (signal ad-hoc) begins at its first row, because the connector's last key cannot"
        f" be read: {reason}.",
        "The snapshot of shop.lines (signal ad-hoc) begins at its first row.",
    ]
