"""The key of a record, for people."""

from __future__ import annotations

import json
from typing import Any

from incsnap.errors import shorten


def key_text(key: bytes | None) -> str:
    """Return the values of a record's key, joined with commas; the bytes of a key that is not JSON, as hexadecimal.

    >>> key_text(b'{"schema":{"type":"struct"},"payload":{"id":5,"name":"x"}}'), key_text(bytes([0, 1, 255]))
    ('5,x', '0x0001ff')
    """
    if not key:
        return "<none>"
    try:
        content = json.loads(key)
    except ValueError:
        return shorten(f"0x{key.hex()}")
    if isinstance(content, dict) and content.keys() == {"schema", "payload"}:
        content = content["payload"]
    values = content.values() if isinstance(content, dict) else (content,)
    return shorten(",".join(map(_value_text, values)))


def _value_text(value: Any) -> str:
    if value is None:
        return "<null>"
    return value if isinstance(value, str) else json.dumps(value)
