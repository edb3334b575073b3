"""Tests of the fields of execute-snapshot that choose rows."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from incsnap.planner.signal_commands import chosen_rows
from incsnap.snapshot.commands import ChosenRows
from signals.channels.file import record_of
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


LONG = "12345678901234567890.1234567891"


@pytest.mark.parametrize("number", [LONG, "123456789012345678.92", "-0.1", "1E+400", "1E-7"])
def test_numbers_keep_all_digits_from_a_signals_text_to_its_request(number: str) -> None:
    data = f'{{"data-collections":["shop.orders"],"incsnap-keys":[{{"n":{number}}}],"incsnap-absent":"delete"}}'
    as_table = parse(SignalRecord("s", "execute-snapshot", data))
    as_line = parse(record_of(f'{{"type":"execute-snapshot","data":{data}}}'.encode(), "0", "file"))

    for signal in (as_table, as_line):
        assert isinstance(signal, Signal)
        chosen = chosen_rows(signal)
        assert chosen is not None
        assert [json.loads(chosen.keys, parse_float=Decimal), chosen.deletes] == [[{"n": Decimal(number)}], True]


def test_the_limits_of_a_range_keep_all_digits() -> None:
    data = f'{{"data-collections":["shop.orders"],"incsnap-from":{{"n":{LONG}}},"incsnap-to":{{"n":{LONG}}}}}'
    signal = parse(SignalRecord("s", "execute-snapshot", data))

    assert isinstance(signal, Signal)
    assert chosen_rows(signal) == ChosenRows(first=f'{{"n":{LONG}}}', last=f'{{"n":{LONG}}}')


@pytest.mark.parametrize("field", ["incsnap-keys", "incsnap-from"])
@pytest.mark.parametrize("number", ["1e999999999", "1e-999999999", "1e999999999999999999", "1e99999999999999999999"])
def test_a_number_of_any_other_size_is_refused(field: str, number: str) -> None:
    key = f'{{"n":{number}}}'
    value = f"[{key}]" if field == "incsnap-keys" else key
    data = f'{{"data-collections":["shop.orders"],"{field}":{value}}}'

    for record in (
        SignalRecord("s", "execute-snapshot", data),
        record_of(f'{{"type":"execute-snapshot","data":{data}}}'.encode(), "0", "file"),
    ):
        signal = parse(record)
        assert isinstance(signal, InvalidSignal)
        assert "which is no number of MySQL" in signal.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"key": [{"id": 5}]}, "'incsnap-key' is unknown"),
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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("incsnap_keys", "Write incsnap-keys."),
        ("Incsnap-Keys", "Write incsnap-keys."),
        (" incsnap-keys", "Write incsnap-keys."),
        ("incsnap-keys\t", "Write incsnap-keys."),
        ("INCSNAP_WHOLE_TABLE", "Write incsnap-whole-table."),
        ("incsnap_key", "Known are incsnap-keys, "),
        ("incsnapKeys", "Known are incsnap-keys, "),
    ],
)
def test_a_misspelt_field_does_not_ask_for_the_whole_table(name: str, hint: str) -> None:
    signal = parse(SignalRecord("s", "execute-snapshot", {"data-collections": ["shop.orders"], name: [{"id": 5}]}))
    assert isinstance(signal, InvalidSignal)
    assert f"{name!r} is unknown" in signal.reason
    assert signal.hint.startswith(hint)


@pytest.mark.parametrize("name", ["keys", "surrogate", "x-incsnap-keys", "Incsna"])
def test_a_field_that_debezium_ignores_is_ignored(name: str) -> None:
    signal = parse(SignalRecord("s", "execute-snapshot", {"data-collections": ["shop.orders"], name: [{"id": 5}]}))
    assert isinstance(signal, Signal)
    assert signal.chosen is None


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
