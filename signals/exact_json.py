"""JSON whose numbers keep all their digits.

A float has 53 bits, which is about 16 digits. A DECIMAL of MySQL has up to 65 digits. So a number becomes a float only
if the shortest text of this float has the same value. Any other number with a point or an exponent becomes a Decimal.
Numbers below the normal range of DOUBLE, such as 4.9E-324, become floats too: no DECIMAL is so small.
"""

from __future__ import annotations

import json
import math
import sys
from decimal import Decimal, InvalidOperation
from typing import Any

#: Writes blanks behind commas and colons, and ASCII alone.
SPACED = json.JSONEncoder()
#: Writes no blanks, and all characters as they are.
COMPACT = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
#: Most digits of a number before or behind its point. A DOUBLE has up to 324, and 1e999999999 would fill the memory.
_MOST_DIGITS = 400


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raise ValueError if the text is not JSON.

    >>> parsed('[0.10, 1e400, 12345678901234567890.1]')
    [0.1, Decimal('1E+400'), Decimal('12345678901234567890.1')]
    """
    return json.loads(text, parse_float=_number)


def written(value: object, encoder: json.JSONEncoder = SPACED) -> str:
    """Return the JSON of a value in which numbers may be Decimals.

    The encoder writes everything but Decimals. Raise TypeError for a value that JSON does not have.

    >>> written({"n": Decimal("12345678901234567890.1")})
    '{"n": 12345678901234567890.1}'
    """
    if isinstance(value, Decimal) and value.is_finite():
        # 1e400 stays short: `f"{value:f}"` would write all zeros of a number.
        return str(value)
    try:
        # The encoder takes a tenth of the time, and few values hold Decimals.
        return encoder.encode(value)
    except TypeError:
        if isinstance(value, dict):
            members = (
                f"{encoder.encode(name)}{encoder.key_separator}{written(each, encoder)}" for name, each in value.items()
            )
            return f"{{{encoder.item_separator.join(members)}}}"
        if isinstance(value, list | tuple):
            return f"[{encoder.item_separator.join(written(each, encoder) for each in value)}]"
        raise


def is_no_number_of_mysql(value: object) -> bool:
    """Whether `value` is a number that no column of MySQL has: NaN, infinite, or a Decimal of more than 400 digits.

    >>> is_no_number_of_mysql(Decimal("1e401")), is_no_number_of_mysql(Decimal("1e400"))
    (True, False)
    """
    if isinstance(value, Decimal):
        return not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS
    return isinstance(value, float) and not math.isfinite(value)


def _number(text: str) -> float | Decimal:
    number = float(text)
    # Most numbers are the shortest texts of floats: this test takes a fifth of the time. Java spells 5e-324 as
    # 4.9E-324, and no DECIMAL is so small.
    if repr(number) == text or 0 < abs(number) < sys.float_info.min:
        return number
    try:
        exact = Decimal(text)
    except InvalidOperation:  # its exponent has more than 18 digits
        return number
    return number if Decimal(repr(number)) == exact else exact
