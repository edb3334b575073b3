"""The modes of types: how values are written where Debezium leaves the choice to the user (`*.handling.mode` settings).

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-data-types
"""

from __future__ import annotations

from dataclasses import dataclass, fields

#: Field of `Modes` -> its known values; the first is Debezium's default.
CHOICES: dict[str, tuple[str, ...]] = {
    "decimal_handling": ("precise", "string", "double"),
    "time_precision": ("adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"),
    "binary_handling": ("bytes", "base64", "base64-url-safe", "hex"),
    "bigint_unsigned": ("long", "precise"),
    "time_adjuster": ("true", "false"),
    "converting": ("warn", "skip", "fail"),
    "json_decimals": ("base64", "numeric"),
    "debezium": ("3.6", "3.7"),
}


@dataclass(frozen=True, slots=True)
class Modes:
    """The chosen modes. The constructor raises ValueError for a value that is not in `CHOICES`."""

    decimal_handling: str = "precise"  #: decimal.handling.mode
    time_precision: str = "adaptive_time_microseconds"  #: time.precision.mode
    binary_handling: str = "bytes"  #: binary.handling.mode
    bigint_unsigned: str = "long"  #: bigint.unsigned.handling.mode
    #: enable.time.adjuster: the years 1 to 69 of DATE and DATETIME are 2001 to 2069, and 70 to 99 are 1970 to 1999.
    time_adjuster: str = "true"
    #: event.converting.failure.handling.mode, for a value that the modes cannot express: warn and skip write null.
    converting: str = "warn"
    #: decimal.format of the JSON converter. Each converter (keys, values) has its own, so this is set for each format.
    json_decimals: str = "base64"
    #: incsnap.debezium.version: the release whose types the records have. In 3.7 a signed TINYINT is an int8, the
    #: schemas of ENUM and SET escape backslashes, and a negative TINYINT(1) is true.
    debezium: str = "3.6"

    def __post_init__(self) -> None:
        for field in fields(self):
            value, known = getattr(self, field.name), CHOICES[field.name]
            if value not in known:
                raise ValueError(f"{field.name} is {value!r}, known values are {', '.join(known)}")
