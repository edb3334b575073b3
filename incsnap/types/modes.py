"""How values are written where Debezium leaves the choice to the user: its ``*.handling.mode`` settings.

https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-data-types
"""

from __future__ import annotations

from dataclasses import dataclass, fields

#: setting -> the values this version knows; the first is Debezium's default.
CHOICES: dict[str, tuple[str, ...]] = {
    "decimal_handling": ("precise", "string", "double"),
    "time_precision": ("adaptive_time_microseconds",),
    "binary_handling": ("bytes", "base64", "base64-url-safe", "hex"),
    "bigint_unsigned": ("long", "precise"),
}


@dataclass(frozen=True, slots=True)
class Modes:
    """``decimal.handling.mode``, ``time.precision.mode``, ``binary.handling.mode``, ``bigint.unsigned.handling.mode``.

    Raises ``ValueError`` for a value that is not in ``CHOICES``.
    """

    decimal_handling: str = "precise"
    time_precision: str = "adaptive_time_microseconds"
    binary_handling: str = "bytes"
    bigint_unsigned: str = "long"

    def __post_init__(self) -> None:
        for field in fields(self):
            value, known = getattr(self, field.name), CHOICES[field.name]
            if value not in known:
                raise ValueError(f"{field.name} is {value!r}, known values are {', '.join(known)}")
