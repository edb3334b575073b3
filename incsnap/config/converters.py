"""The setting `converters`.

Only Debezium's converter from TINYINT(1) to boolean exists here. Other converters are Java classes, which do not run
here. A table map of the binlog does not distinguish TINYINT(1) from TINYINT. If the length matters, the server is
asked.
"""

from __future__ import annotations

from incsnap.config.declarations.kinds import FLAG, REGEXES
from incsnap.config.listed import IGNORE
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader

_BOOLEAN = (
    "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
    "io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter",
)


def names(reader: SettingsReader) -> tuple[str, ...]:
    """Return the names of the converters. The settings of a converter begin with its name."""
    return split_list(reader["converters"])


def booleans(reader: SettingsReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two lists of patterns: columns of any TINYINT that become booleans, and columns that do only if their
    length is 1."""
    ignored = split_list(reader[IGNORE])
    if "converters" in ignored:
        return (), ()
    patterns: dict[bool, list[str]] = {False: [], True: []}
    for name in names(reader):
        type_ = reader.required(f"{name}.type", "the class of the converter")
        if type_ in _BOOLEAN:
            selected = reader.read(f"{name}.selector", REGEXES, ".*") or (".*",)
            patterns[reader.read(f"{name}.length.checker", FLAG, "true")] += selected
        elif type_:
            accepted = ",".join([*ignored, "converters"])
            reader.problems.append(
                f"{name}.type: {type_} is not supported, so no column would be converted. Remove it from converters,"
                f" or accept this with {IGNORE}={accepted}. Supported is {_BOOLEAN[0]}"
            )
    return tuple(dict.fromkeys(patterns[False])), tuple(dict.fromkeys(patterns[True]))
