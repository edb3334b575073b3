"""Tests of the order of listed keys."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest

from incsnap.envelope import key_order
from incsnap.envelope.key_order import in_order


def _keys(*members: Mapping[str, object]) -> list[str]:
    return [json.dumps(each, separators=(",", ":"), ensure_ascii=False) for each in members]


def test_numbers_are_in_order_by_size_and_texts_by_characters() -> None:
    keys = _keys(
        {"a": None, "b": "z"},
        {"a": -5, "b": "z"},
        {"a": -0.5, "b": "z"},
        {"a": True, "b": "Z"},
        {"a": 1, "b": "z"},
        {"a": 10, "b": "a"},
        {"a": 10, "b": "\uffee"},
        {"a": 10, "b": "\U0001f600"},
        {"a": 10**400, "b": "a"},
        {"a": "", "b": "a"},
        {"a": "10", "b": "a"},
        {"a": "9", "b": None},
    )
    mixed = [*keys, *keys]
    random.Random(1).shuffle(mixed)
    assert in_order(mixed).to_pylist() == keys


def test_keys_of_several_blocks_are_in_one_order_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order, "_PARSED", 7)
    keys = _keys(*({"id": each} for each in range(-50, 50)))
    mixed = keys * 3
    random.Random(2).shuffle(mixed)
    assert in_order(mixed).to_pylist() == keys


def test_keys_with_other_members_are_kept_for_the_message_that_refuses_them() -> None:
    keys = _keys({"id": 1}, {"id": 1, "more": "x"}, {"id": 2})
    assert in_order(reversed(keys)).to_pylist() == keys


def test_a_list_may_be_empty_or_have_one_key() -> None:
    assert in_order([]).to_pylist() == []
    assert in_order(['{"id":5}'] * 2).to_pylist() == ['{"id":5}']
