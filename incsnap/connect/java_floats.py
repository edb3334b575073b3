"""Floating-point numbers as Java and Connect's JsonConverter write them: `0.1`, `100.0`, `1.0E10`.

The digits are the fewest that read back as the same number, but at least two. From 10^-3 up to 10^7 the notation is
decimal; otherwise it is one digit, the point, the other digits, and the exponent.

Arrow finds the digits (60 ns a value). This module only changes the notation: whole numbers get `.0` (30 ns more), and
numbers with an exponent are rebuilt (550 ns more).
https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/lang/Double.html#toString(double)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LEAST, _MOST = 1e-3, 1e7
_PARTS = r"^(?P<whole>\d+)\.?(?P<fraction>\d*)(?:e(?P<exponent>[+-]\d+))?$"
#: The least normal number. For a smaller one Arrow may give one digit (5e-324), but Java gives the nearest number with
#: two digits (4.9E-324).
_NORMAL_SINGLE = float(np.finfo(np.float32).tiny)
_NORMAL = {pa.float32(): _NORMAL_SINGLE, pa.float64(): float(np.finfo(np.float64).tiny)}


def java_text(values: Any) -> Any:
    """Return the text of float32 or float64 values, null for null.

    NaN and infinity are not supported: MySQL has neither.
    """
    texts = values.cast(pa.string())
    numbers = np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False))
    size = np.abs(numbers)
    plain = (size == 0) | ((size >= _LEAST) & (size < _MOST))
    whole = plain & (np.trunc(numbers) == numbers)
    if whole.any():
        endings = pa.DictionaryArray.from_arrays(pa.array(whole.astype(np.int8)), pa.array(["", ".0"])).cast(
            pa.string()
        )
        texts = pc.binary_join_element_wise(texts, endings, "")
    if plain.all():
        return texts
    places = np.flatnonzero(~plain)
    written = _scientific(values.take(pa.array(places)))
    return pc.replace_with_mask(texts, pa.array(~plain), written)


def single_as_double(number: float) -> float:
    """Return the DOUBLE that has the digits of a number in single precision.

    >>> single_as_double(0.10000000149011612)
    0.1
    """
    if 0 < abs(number) < _NORMAL_SINGLE:
        return float(java_text(pa.array([number], pa.float32()))[0].as_py())
    # NumPy finds the same digits in 1 us. A column of one value takes 40 us.
    return float(str(np.float32(number)))


def _scientific(values: Any) -> Any:
    texts = values.cast(pa.string())
    negative = pc.starts_with(texts, "-")
    whole, fraction, exponent = pc.extract_regex(pc.utf8_ltrim(texts, "-"), _PARTS).flatten()
    digits = pc.binary_join_element_wise(whole, fraction, "")
    significant = pc.utf8_ltrim(digits, "0")
    # The point stands behind the first significant digit.
    zeros = pc.subtract(pc.utf8_length(digits), pc.utf8_length(significant))
    power = pc.subtract(pc.subtract(pc.utf8_length(whole), zeros), 1)
    written = pc.if_else(pc.equal(exponent, ""), "0", pc.utf8_ltrim(exponent, "+")).cast(pa.int32())
    significant = pc.utf8_rtrim(significant, "0")
    rest = pc.utf8_slice_codeunits(significant, 1)
    scientific = pc.binary_join_element_wise(
        pc.if_else(negative, "-", ""),
        pc.utf8_slice_codeunits(significant, 0, 1),
        ".",
        pc.if_else(pc.equal(rest, ""), "0", rest),
        "E",
        pc.add(power, written).cast(pa.string()),
        "",
    )
    numbers = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    short = (np.abs(numbers) < _NORMAL[values.type]) & np.asarray(pc.equal(rest, ""))
    if not short.any():
        return scientific
    return pc.replace_with_mask(
        scientific, pa.array(short), pa.array([_two_digits(n) for n in numbers[short]], pa.string())
    )


def _two_digits(number: float) -> str:
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"
