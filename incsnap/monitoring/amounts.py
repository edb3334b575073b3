"""Numbers as text for people: counts, sizes, durations and times."""

from __future__ import annotations

import time


def count(number: float) -> str:
    """Return `number` as text, for example `1,234,567`. From ten million on, use three digits and a unit: `12.3 M`."""
    if abs(number) < 10_000_000:
        return f"{number:,.0f}"
    return f"{number / 1e9:.3g} G" if abs(number) >= 999.5e6 else f"{number / 1e6:.3g} M"


def size(number: float) -> str:
    """Return a number of bytes as text with a unit, for example `12 B` or `1.5 MB`.

    The largest unit, `TB`, takes every larger number, so the AssertionError at the end is never raised.
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 999.5 or unit == "TB":
            return f"{number:.0f} {unit}" if number >= 99.5 or unit == "B" else f"{number:.2g} {unit}"
        number /= 1000
    raise AssertionError("the last unit takes all")


def duration(seconds: float) -> str:
    """Return `seconds` as text in at most two units: `0.06 s`, `12 s`, `3 min 20 s`, `5 h 12 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    for unit, name, next_unit, next_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // next_unit
            return f"{whole // unit} {name}" + (f" {rest} {next_name}" if rest else "")
    return f"{whole} s"


def moment(ms: int) -> str:
    """Return `ms` (milliseconds since 1970) as date and time in the time zone of this machine."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))
