"""An encoder of MySQL's binary JSON, and of its partial updates, for tests. The product only decodes them."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.support.packets import lenenc_string

_LITERALS = {None: 0, True: 1, False: 2}


def in_order(document: Any) -> Any:
    """Return the document with the members of objects in the server's order: by length, then by bytes."""
    if isinstance(document, dict):
        names = sorted(document, key=lambda name: (len(name.encode()), name.encode()))
        return {name: in_order(document[name]) for name in names}
    return [in_order(value) for value in document] if isinstance(document, list) else document


def server_text(document: Any) -> str:
    """Return the server's text of a document, without blanks.

    The document may have strings, integers, booleans and null.
    """
    return json.dumps(in_order(document), separators=(",", ":"), ensure_ascii=False)


def binary(document: Any) -> bytes:
    """Return a document in binary: the type byte and the value."""
    kind, raw = _value(document)
    return bytes([kind]) + raw


def _value(value: Any) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return 4, bytes([_LITERALS[value]])
    if isinstance(value, int):
        for kind, form in ((5, "<h"), (7, "<i"), (9, "<q"), (10, "<Q")):
            try:
                return kind, struct.pack(form, value)
            except struct.error:
                continue
    if isinstance(value, str):
        return 0x0C, _length(len(value.encode())) + value.encode()
    for large in (False, True):
        try:
            return _container(value, large)
        except struct.error:
            continue
    raise ValueError(value)


def _length(size: int) -> bytes:
    out = b""
    while size > 0x7F:
        out += bytes([size & 0x7F | 0x80])
        size >>= 7
    return out + bytes([size])


def _container(document: Any, large: bool) -> tuple[int, bytes]:
    keyed = isinstance(document, dict)
    width, form = (4, "<I") if large else (2, "<H")
    members = in_order(document)
    names = [name.encode() for name in members] if keyed else []
    values = list(members.values()) if keyed else list(members)
    at = 2 * width + len(names) * (width + 2) + len(values) * (width + 1)
    keys, texts, table, behind = b"", b"".join(names), b"", b""
    for name in names:
        keys += struct.pack(form, at) + struct.pack("<H", len(name))
        at += len(name)
    for value in values:
        kind, raw = _value(value)
        if kind in (4, 5) or (kind == 7 and large):
            table += bytes([kind]) + raw.ljust(width, b"\0")
        else:
            table += bytes([kind]) + struct.pack(form, at + len(behind))
            behind += raw
    body = struct.pack(form, len(values)) + struct.pack(form, at + len(behind))
    return (0 if keyed else 2) + large, body + keys + table + texts + behind


def difference(operation: str, path: str, value: Any = None) -> bytes:
    """Return one operation of a partial update: `replace`, `insert` or `remove`."""
    made = bytes([("replace", "insert", "remove").index(operation)]) + lenenc_string(path.encode())
    return made if operation == "remove" else made + lenenc_string(binary(value))
