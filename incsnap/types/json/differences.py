"""Partial updates of JSON columns: differences of a document, applied to the document before.

A difference is an operation (0 replace, 1 insert, 2 remove), a path behind its packed length, and, except for remove, a
binary JSON value behind its packed length. The differences are applied in order, each to the result of the one before.
https://dev.mysql.com/doc/dev/mysql-server/latest/classJson__diff__vector.html

If a difference cannot be applied, document and differences do not belong together. This is an error; nothing is
guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from incsnap.columns.length_encoded import length_encoded
from incsnap.types.json.binary import Node, json_tree, tree_text

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG = re.compile(
    r"""\s* (?: \.\s* (?: "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<name>[^\s."\[*]+) )
              | \[\s* (?: (?P<index>\d{1,10}) | last (?:\s*-\s* (?P<back>\d{1,10}) )? ) \s*\] )""",
    re.VERBOSE | re.DOTALL,
)


def patched(document: bytes, differences: bytes) -> str:
    """Return the text of the binary JSON `document` after `differences`, as `json_text` would give it.

    Raise ValueError if one of them is damaged, or if they do not fit together.
    """
    holder: list[Node] = [json_tree(document)]
    for operation, path, value in _differences(differences):
        legs = _legs(path)
        if operation == _INSERT:
            _insert(holder, legs, json_tree(value))
            continue
        container, key = _find(holder, legs)
        if operation == _REPLACE:
            container[key] = json_tree(value)
        elif legs and container is not holder:
            del container[key]
        else:
            raise ValueError("damaged JSON difference: the document itself is removed")
    return tree_text(holder[0])


def _differences(raw: bytes) -> Iterator[tuple[int, str, bytes]]:
    at = 0
    while at < len(raw):
        operation = raw[at]
        if operation not in (_REPLACE, _INSERT, _REMOVE):
            raise ValueError(f"damaged JSON difference: operation {operation}")
        path, at = _sized(raw, at + 1)
        value = b""
        if operation != _REMOVE:
            value, at = _sized(raw, at)
            if not value:
                raise ValueError("damaged JSON difference: no value")
        yield operation, path.decode("utf-8"), value


def _sized(raw: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes behind a packed length, and the position behind them."""
    try:
        length, at = length_encoded(raw, at)
    except ValueError as error:
        raise ValueError(f"damaged JSON difference: {error}") from None
    if at + length > len(raw):
        raise ValueError("damaged JSON difference: ends too early")
    return raw[at : at + length], at + length


#: One step of a JSON path: the name of an object's member, or (whether to count from the end, index) of an array's
#: cell.
Leg = str | tuple[bool, int]


def _legs(path: str) -> list[Leg]:
    if not path.startswith("$"):
        raise ValueError(f"damaged JSON difference: path {path[:80]!r}")
    legs: list[Leg] = []
    at = 1
    while at < len(path):
        leg = _LEG.match(path, at)
        if leg is None:
            raise ValueError(f"damaged JSON difference: path {path[:80]!r}")
        if leg["quoted"] is not None:
            legs.append(str(json.loads(f'"{leg["quoted"]}"', strict=False)))
        elif leg["name"] is not None:
            legs.append(leg["name"])
        elif leg["index"] is not None:
            legs.append((False, int(leg["index"])))
        else:
            legs.append((True, int(leg["back"] or 0)))
        at = leg.end()
    return legs


def _find(holder: list[Node], legs: list[Leg]) -> tuple[Any, Any]:
    """Return the container of the value at the path, and the value's key or index in it."""
    container: Any = holder
    key: Any = 0
    for leg in legs:
        node = container[key]
        if isinstance(leg, str):
            if not isinstance(node, dict) or leg not in node:
                raise _misfit(leg)
            container, key = node, leg
        elif isinstance(node, list):
            place = len(node) - 1 - leg[1] if leg[0] else leg[1]
            if not 0 <= place < len(node):
                raise _misfit(leg)
            container, key = node, place
        elif leg[1]:  # a value that is no array counts as an array of itself
            raise _misfit(leg)
    return container, key


def _insert(holder: list[Node], legs: list[Leg], value: Node) -> None:
    if not legs:
        raise ValueError("damaged JSON difference: a second document")
    container, key = _find(holder, legs[:-1])
    node, leg = container[key], legs[-1]
    if isinstance(leg, str) and isinstance(node, dict) and leg not in node:
        node[leg] = value
    elif isinstance(leg, tuple) and isinstance(node, list):
        node.insert(max(len(node) - 1 - leg[1], 0) if leg[0] else leg[1], value)
    else:
        raise _misfit(leg)


def _misfit(leg: Leg) -> ValueError:
    return ValueError(f"damaged JSON difference: the document has nothing at {leg!r}"[:200])
