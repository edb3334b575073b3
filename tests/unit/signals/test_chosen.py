"""Tests of the fields of execute-snapshot that choose rows."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.planner.signal_commands import chosen_rows
from incsnap.snapshot.commands import ChosenRows
from signals.chosen import MAX_KEYS
from signals.parse import parse
from signals.records import InvalidSignal, Signal, SignalRecord


def parsed(**fields: Any) -> Signal | InvalidSignal:
    own = {f"incsnap-{name.replace('_', '-')}": value for name, value in fields.items()}
    return parse(SignalRecord("s", "execute-snapshot", {"data-collections": ["shop.orders"], **own}))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"keys": [{"id": 5}, {"id": 7}]}, ChosenRows(keys='[{"id":5},{"id":7}]')),
        ({"keys_topic": "lost", "absent": "delete"}, ChosenRows(topic="lost", deletes=True)),
        ({"keys_file": "/keys", "absent": "count", "whole_table": True}, ChosenRows(files="/keys", walks=True)),
        ({"from": {"id": 1}, "to": {"id": 9}}, ChosenRows(first='{"id":1}', last='{"id":9}')),
        ({"sample": "1/100", "seed": 7}, ChosenRows(every=100, seed=7)),
        ({}, None),
    ],
)
def test_rows_are_chosen(fields: dict[str, Any], expected: ChosenRows | None) -> None:
    signal = parsed(**fields)
    assert isinstance(signal, Signal)
    assert chosen_rows(signal) == expected


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"key": [{"id": 5}]}, "incsnap-key is unknown"),
        ({"keys": []}, "is not a list of keys"),
        ({"keys": {"id": 5}}, "is not a list of keys"),
        ({"keys": [5]}, "not the JSON of a key"),
        ({"keys": [{}]}, "not the JSON of a key"),
        ({"keys": [{"id": [5]}]}, "a list or an object as a value"),
        ({"keys": [{"id": "\ud800"}]}, "half a character"),
        ({"keys": [{"id": 1}] * (MAX_KEYS + 1)}, f"and {MAX_KEYS} are the most"),
        ({"keys": [{"id": 5}], "keys_topic": "t"}, "exclude each other"),
        ({"keys": [{"id": 5}], "sample": "1/2"}, "no meaning beside keys"),
        ({"keys": [{"id": 5}], "absent": "drop"}, "not one of: count, delete"),
        ({"absent": "delete"}, "needs keys"),
        ({"from": {"id": 1}, "to": {"at": 1}}, "different columns"),
        ({"from": 5}, "not the JSON of a key"),
        ({"sample": "1/0"}, "not of the form 1/100"),
        ({"sample": 100}, "not of the form 1/100"),
        ({"sample": "1/2", "seed": -1}, "not a whole number"),
        ({"seed": 1}, "needs incsnap-sample"),
        ({"keys_topic": " "}, "is no text"),
        ({"keys": None, "absent": "delete"}, "incsnap-keys is null"),
        ({"from": None}, "incsnap-from is null"),
        ({"keys_topic": "t", "whole_table": "yes"}, "neither true nor false"),
    ],
)
def test_wrong_fields_are_refused_with_a_reason(fields: dict[str, Any], reason: str) -> None:
    signal = parsed(**fields)
    assert isinstance(signal, InvalidSignal)
    assert reason in signal.reason
    assert signal.hint


def test_keys_belong_to_one_table() -> None:
    data = {"data-collections": ["shop.orders", "shop.lines"], "incsnap-keys": [{"id": 5}]}
    signal = parse(SignalRecord("s", "execute-snapshot", data))
    assert isinstance(signal, InvalidSignal)
    assert "belong to one table" in signal.reason


def test_a_surrogate_key_has_no_meaning_beside_keys() -> None:
    data = {"data-collections": ["shop.orders"], "incsnap-keys": [{"id": 5}], "surrogate-key": "at"}
    assert isinstance(parse(SignalRecord("s", "execute-snapshot", data)), InvalidSignal)


@pytest.mark.parametrize("blank", [None, "", " \t"])
def test_a_blank_surrogate_key_beside_keys_counts_as_absent(blank: str | None) -> None:
    data = {"data-collections": ["shop.orders"], "incsnap-keys": [{"id": 5}], "surrogate-key": blank}
    assert isinstance(parse(SignalRecord("s", "execute-snapshot", data)), Signal)
