"""``converters``: of Debezium's own, the one that makes booleans of TINYINT(1). Others are classes that cannot be run.

A table map does not tell TINYINT(1) from TINYINT: where the length is to be looked at, the server is asked for it.
"""

from __future__ import annotations

from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.unsupported import IGNORE

_BOOLEAN = (
    "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
    "io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter",
)


def names(reading: SettingsReader) -> tuple[str, ...]:
    """Each converter's settings begin with its name."""
    return split_list(reading.text("converters"))


def booleans(reading: SettingsReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Patterns of the TINYINTs that become booleans, and of those that do where their length is 1."""
    ignored = split_list(reading.text(IGNORE))
    if "converters" in ignored:
        return (), ()
    patterns: dict[bool, list[str]] = {False: [], True: []}
    for name in names(reading):
        type_ = reading.required(f"{name}.type", "the class of the converter")
        if type_ in _BOOLEAN:
            patterns[reading.flag(f"{name}.length.checker", True)] += _selected(reading, name)
        elif type_:
            accepted = ",".join([*ignored, "converters"])
            reading.problems.append(
                f"{name}.type: {type_} is not supported, columns would not be converted by it; take it out of"
                f" converters, or accept that with {IGNORE}={accepted} (supported is {_BOOLEAN[0]})"
            )
    return tuple(dict.fromkeys(patterns[False])), tuple(dict.fromkeys(patterns[True]))


def _selected(reading: SettingsReader, name: str) -> tuple[str, ...]:
    selector = f"{name}.selector"
    patterns = split_list(reading.text(selector)) or (".*",)
    return tuple(pattern for pattern in patterns if reading.sound(selector, pattern))
