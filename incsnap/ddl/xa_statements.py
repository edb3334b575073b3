"""What the log says of XA transactions: their names, as the server writes them, and the event that prepares one.

https://dev.mysql.com/doc/refman/en/xa-statements.html
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STATEMENT = re.compile(r"XA\s+([A-Z]+)\s+(X'[0-9a-f]*',X'[0-9a-f]*',[0-9]+)", re.IGNORECASE)


class XaStatement(NamedTuple):
    """``verb``: START, END, COMMIT or ROLLBACK. ``xid``: the transaction's name, in a form that XA COMMIT takes."""

    verb: str
    xid: str


def read_xa(sql: str) -> XaStatement | None:
    """None where the statement is none of XA. A server writes global and branch part as hexadecimal strings."""
    match = _STATEMENT.match(sql)
    return XaStatement(match[1].upper(), match[2]) if match else None


def is_one_phase(body: bytes) -> bool:
    """0x26, whose first byte says XA COMMIT ... ONE PHASE: nothing was prepared, this is the commit."""
    return body[0] != 0


def xid_of(format_id: int, global_part: bytes, branch_part: bytes) -> str:
    """The name as ``read_xa`` gives it."""
    return f"X'{global_part.hex()}',X'{branch_part.hex()}',{format_id}"
