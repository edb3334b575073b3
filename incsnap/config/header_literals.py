"""Texts of headers that InsertHeader adds, as Kafka Connect prints them.

Kafka Connect reads the literal as a value (a number, a list, a date, a text), and prints the value anew. So `1.50`
becomes 1.5, and a number with a colon or a comma behind it loses the rest.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from incsnap.connect.java_floats import java_text
from incsnap.transforms.headers import NUMBER

#: Lists and maps that are printed as they are written.
_AS_WRITTEN = re.compile(r"[\[{](?:(?!null\b|NaN\b)[A-Za-z_\"]+|(?:0|[1-9]\d{0,8})(?![\d.A-Za-z])|[,:])*[\]}]")


def header_text(literal: str) -> str:
    """Return the text of the header with this literal. Raise ValueError with the reason for one that is not understood.

    >>> header_text("1.50")
    '1.5'
    """
    if literal == "null":
        raise ValueError("null is no text")
    if number := NUMBER.fullmatch(literal):
        return _number_text(Decimal(number[1]))
    if literal[:1] in "[{" and _AS_WRITTEN.fullmatch(literal) is None:
        raise ValueError("Kafka Connect prints lists and maps in its own way; those of names and whole numbers alone,"
                         " without blanks, stay as they are")  # fmt: skip
    return literal


def _number_text(number: Decimal) -> str:
    """Return a number as Kafka Connect prints it: a whole one of 64 bits, else the first float that can hold it."""
    if number == number.to_integral_value() and -(1 << 63) <= number < 1 << 63:
        return str(int(number))
    exponent = number.as_tuple().exponent
    if exponent != 0:
        for type_, arrow in ((np.float32, pa.float32()), (np.float64, pa.float64())):
            with np.errstate(over="ignore"):
                value = type_(float(number))
            if np.isfinite(value):
                return str(java_text(pa.array([value], arrow))[0].as_py())
    return str(number)
