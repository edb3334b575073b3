"""Tests of the fields that routers add to keys: whether they tell the tables of a topic."""

from __future__ import annotations

import pytest

from incsnap.config.load import from_properties
from incsnap.config.topics import table_with_same_keys
from incsnap.tables import TableId
from tests.support.properties import QUIET

_ROUTER = {
    **QUIET,
    "transforms": "one",
    "transforms.one.type": "ByLogicalTableRouter",
    "transforms.one.topic.regex": "(.*)_[ab]",
    "transforms.one.topic.replacement": "$1",
}
_A, _B, _C = (TableId("d", name) for name in ("orders_a", "orders_b", "items_a"))


@pytest.mark.parametrize(
    ("more", "same"),
    [
        ({}, None),
        ({"key.enforce.uniqueness": "false"}, _C),
        ({"key.field.regex": r"(.*)\.(.*)_[ab]", "key.field.replacement": "$2"}, _B),
        ({"key.field.regex": r"(.*)_(.)", "key.field.replacement": "$2"}, _C),
    ],
)
def test_keys_are_told_by_the_texts_that_a_router_adds(more: dict[str, str], same: TableId | None) -> None:
    settings = from_properties({**_ROUTER, **{f"transforms.one.{name}": text for name, text in more.items()}}).settings
    assert table_with_same_keys(settings, _A, [_C, _B]) == same
    assert table_with_same_keys(settings, _A, []) is None
