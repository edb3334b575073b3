"""XA transactions in the binlog: their names as the server writes them, and the event that prepares a transaction.

https://dev.mysql.com/doc/refman/en/xa-statements.html
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STATEMENT = re.compile(r"XA\s+([A-Z]+)\s+(X'[0-9a-f]*',X'[0-9a-f]*',[0-9]+)", re.IGNORECASE)


class XaStatement(NamedTuple):
    """A statement about an XA transaction."""

    verb: str  #: START, END, COMMIT or ROLLBACK
    xid: str  #: the transaction's name, in a form that XA COMMIT accepts


def read_xa(sql: str) -> XaStatement | None:
    """Return the XA statement that `sql` is; None if it is another statement.

    The server writes the global and the branch part of the name as hexadecimal strings.
    """
    match = _STATEMENT.match(sql)
    return XaStatement(match[1].upper(), match[2]) if match else None


def is_one_phase(body: bytes) -> bool:
    """Return True if the body of an XA_PREPARE event (0x26) is of an XA COMMIT ... ONE PHASE.

    Then nothing was prepared, and this event is the commit.
    """
    return body[0] != 0


def xid_of(format_id: int, global_part: bytes, branch_part: bytes) -> str:
    """Return the name of an XA transaction in the form of `XaStatement.xid`, from the columns of XA RECOVER."""
    return f"X'{global_part.hex()}',X'{branch_part.hex()}',{format_id}"
