"""Differences made by hand; a server's own are in tests/integration/test_partial_json.py."""

from __future__ import annotations

import struct

import pytest

from incsnap.types.json.binary import json_text, json_tree, tree_text
from incsnap.types.json.differences import patched
from tests.support.binary_json import difference as made


def small_object(**members: bytes) -> bytes:
    """A document whose values stand in the table: three bytes each."""
    size = 4 + 7 * len(members)
    keys, names = b"", b""
    for name in members:
        keys += struct.pack("<HH", size + len(names), len(name))
        names += name.encode()
    return b"\x00" + struct.pack("<HH", len(members), size + len(names)) + keys + b"".join(members.values()) + names


ONE, TWO, NULL = b"\x05\x01\x00", b"\x05\x02\x00", b"\x04\x00\x00"
DOCUMENT = small_object(a=ONE, b=TWO)


def difference(operation: int, path: str, value: bytes | None = None) -> bytes:
    made = bytes([operation, len(path)]) + path.encode()
    return made + (b"" if value is None else bytes([len(value)]) + value)


def test_a_tree_gives_the_text_of_its_document() -> None:
    assert json_text(DOCUMENT) == tree_text(json_tree(DOCUMENT)) == '{"a":1,"b":2}'
    assert tree_text(json_tree(b"")) == "null"


@pytest.mark.parametrize(
    ("differences", "text"),
    [
        ([], '{"a":1,"b":2}'),
        ([difference(0, "$.a", TWO)], '{"a":2,"b":2}'),
        ([difference(0, "$", NULL)], "null"),
        ([difference(1, "$.aa", ONE), difference(1, "$._", ONE)], '{"_":1,"a":1,"b":2,"aa":1}'),
        ([difference(2, "$.b")], '{"a":1}'),
        ([difference(0, "$.b", DOCUMENT), difference(2, "$.b.a")], '{"a":1,"b":{"b":2}}'),
        ([difference(0, '$."a"[0]', TWO)], '{"a":2,"b":2}'),
        ([difference(0, "$.a[last]", TWO)], '{"a":2,"b":2}'),
        ([difference(1, '$."q\\"\\u00e4"', ONE)], '{"a":1,"b":2,"q\\"ä":1}'),
    ],
)
def test_differences_are_applied_in_order(differences: list[bytes], text: str) -> None:
    assert patched(DOCUMENT, b"".join(differences)) == text


@pytest.mark.parametrize(
    "differences",
    [
        difference(3, "$.a", ONE),
        difference(0, "$.c", ONE),
        difference(0, "$.a[1]", ONE),
        difference(1, "$.a", ONE),
        difference(1, "$[0]", ONE),
        difference(1, "$", ONE),
        difference(2, "$"),
        difference(2, "$[0]"),
        difference(2, "$.c"),
        difference(0, "a", ONE),
        difference(0, "$.", ONE),
        difference(0, "$.a[*]", ONE),
        difference(0, "$.a", b""),
        difference(0, "$.a", b"\x0d"),
        difference(0, "$.a", ONE)[:-1],
        b"\x00\xfe" + b"\xff" * 8,
        b"\x00\xff",
        b"\x00",
        b"\x00\x01\xff\x03" + ONE,
    ],
)
def test_differences_that_do_not_fit_are_refused(differences: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|decode"):
        patched(DOCUMENT, differences)


@pytest.mark.parametrize("levels", [100, 102])
def test_documents_do_not_become_deeper_than_the_server_allows(levels: int) -> None:
    differences = b"".join(made("replace", "$" + "[0]" * level, [None]) for level in range(levels))
    if levels == 100:
        assert patched(ONE, differences) == "[" * 100 + "null" + "]" * 100
    else:
        with pytest.raises(ValueError, match="deeper"):
            patched(ONE, differences)
