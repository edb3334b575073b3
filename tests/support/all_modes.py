"""A few sets of modes in which each choice of each mode occurs once."""

from __future__ import annotations

from incsnap.types.modes import Modes

ALL_MODES = (
    Modes(),
    Modes(decimal_handling="string", binary_handling="base64", bigint_unsigned="precise"),
    Modes(decimal_handling="double", binary_handling="hex"),
    Modes(binary_handling="base64-url-safe", time_adjuster="false"),
    Modes(time_precision="connect"),
    Modes(time_precision="isostring"),
    Modes(time_precision="microseconds"),
    Modes(time_precision="nanoseconds"),
)
