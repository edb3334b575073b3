"""Tests of binary JSON documents and differences: valid ones give the right text, damaged ones a text or an error."""

from __future__ import annotations

import copy
import json
import time
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from incsnap.types.json.binary import json_text, json_tree, tree_text
from incsnap.types.json.differences import patched
from tests.support.binary_json import binary, difference, in_order, server_text

NAMES = st.text(max_size=6) | st.sampled_from(["a", "b", "aa", "a b", 'q"', "ä", "", "€uro"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.text(max_size=20)
    | st.text(alphabet="x", min_size=120, max_size=300)
)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=25
)


@given(DOCUMENTS)
def test_a_document_gives_the_servers_text(document: Any) -> None:
    raw = binary(document)
    assert json_text(raw) == tree_text(json_tree(raw)) == server_text(document)


def test_large_containers_and_the_deepest_document() -> None:
    wide: Any = {"list": [str(number) for number in range(20_000)], "k": {f"key {n}": n for n in range(5_000)}}
    assert json_text(binary(wide)) == server_text(wide)
    deep: Any = 7
    for _ in range(100):
        deep = [deep]
    assert json_text(binary(deep)) == "[" * 100 + "7" + "]" * 100


@given(DOCUMENTS, st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 255)), max_size=5), st.integers(0, 20))
def test_a_damaged_document_ends_in_text_or_a_value_error(
    document: Any, changes: list[tuple[int, int]], cut: int
) -> None:
    raw = bytearray(binary([document, document]))
    for place, byte in changes:
        raw[place % len(raw)] = byte
    for read in (json_text, json_tree):
        with suppress(ValueError):
            read(bytes(raw[: len(raw) - cut]))


def test_containers_that_contain_themselves_and_impossible_counts_take_no_time() -> None:
    begun = time.process_time()
    for kind in (0, 1, 2, 3):
        width = 4 if kind & 1 else 2
        for count in (1, 50, 1000, 60_000):
            for offset in (0, 4, 8):
                entry = bytes([kind]) + offset.to_bytes(width, "little")
                keys = bytes(width + 2) * (count if kind < 2 else 0)
                head = count.to_bytes(width, "little") + (1 << 16).to_bytes(4, "little")[:width]
                with suppress(ValueError):
                    json_text(bytes([kind]) + head + keys + entry * count)
        with suppress(ValueError):
            json_text(bytes([kind]) + b"\xff" * 64)
    assert time.process_time() - begun < 5


def places(document: Any, path: str = "$") -> list[tuple[str, Any, Any]]:
    """Yield (path, container, key) of everything inside."""
    members = []
    if isinstance(document, dict):
        for name, value in document.items():
            here = f"{path}.{json.dumps(name, ensure_ascii=False)}"
            members += [(here, document, name), *places(value, here)]
    elif isinstance(document, list):
        for index, value in enumerate(document):
            here = f"{path}[{index}]"
            members += [(here, document, index), *places(value, here)]
    return members


def containers(document: Any, path: str = "$") -> list[tuple[str, Any]]:
    documents = [(path, document)] if isinstance(document, dict | list) else []
    for here, container, key in places(document, path):
        if isinstance(container[key], dict | list):
            documents.append((here, container[key]))
    return documents


def absent(container: dict[str, Any], name: str) -> bool:
    return name not in container


@given(st.data())
def test_differences_change_a_document_as_a_model_does(data: st.DataObject) -> None:
    document = data.draw(st.lists(DOCUMENTS, min_size=1, max_size=3) | st.dictionaries(NAMES, DOCUMENTS, min_size=1))
    before, raw = copy.deepcopy(document), b""
    for _ in range(data.draw(st.integers(0, 5))):
        known = places(document)
        operation = data.draw(st.sampled_from(["replace", "insert", "remove"])) if known else "insert"
        if operation == "insert":
            path, container = data.draw(st.sampled_from(containers(document)))
            value = data.draw(DOCUMENTS)
            if isinstance(container, list):
                index = data.draw(st.integers(0, len(container) + 2))
                container.insert(index, value)
                raw += difference("insert", f"{path}[{index}]", value)
            else:
                name = data.draw(NAMES.filter(partial(absent, container)))
                container[name] = value
                raw += difference("insert", f"{path}.{json.dumps(name, ensure_ascii=False)}", value)
            continue
        path, container, key = data.draw(st.sampled_from(known))
        if operation == "replace":
            container[key] = value = data.draw(DOCUMENTS)
            raw += difference("replace", path, value)
        else:
            del container[key]
            raw += difference("remove", path)
    assert patched(binary(before), raw) == server_text(document)
    assert in_order(before) == json.loads(json_text(binary(before)))


@given(DOCUMENTS, st.binary(max_size=60) | DOCUMENTS.map(lambda value: difference("replace", "$.a", value)))
def test_any_differences_end_in_text_or_a_value_error(document: Any, differences: bytes) -> None:
    with suppress(ValueError):
        patched(binary({"a": document}), differences)
