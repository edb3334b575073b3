"""Settings that a file has or lacks by oversight: a job would start, and send something else than the user expects."""

from __future__ import annotations

from incsnap.config.reader import SettingsReader
from signals.regex import exact_name

_CONVERTERS = {"key.converter": "keys", "value.converter": "values"}
#: List of patterns -> what its patterns name, and how many dots such a name has at least.
_DOTS = {
    "table.include.list": ("database.table", 1),
    "table.exclude.list": ("database.table", 1),
    "column.include.list": ("database.table.column", 2),
    "column.exclude.list": ("database.table.column", 2),
}


def check(reader: SettingsReader, *, to_kafka: bool) -> None:
    """Add a problem to `reader` for each pattern that matches nothing.

    With `to_kafka` add a warning if the converters of the worker are missing.
    """
    lacking = [name for name in _CONVERTERS if not reader.given(name)]
    if to_kafka and reader.given("connector.class") and lacking:
        parts = " and ".join(_CONVERTERS[name] for name in lacking)
        reader.warnings.append(
            f"{' and '.join(lacking)}: not in this file, so {parts} are JSON without schemas. A worker of Kafka Connect"
            " has converters, with schemas by default: name its file with --worker, or set the converters"
        )
    for name, (form, dots) in _DOTS.items():
        for pattern in reader[name]:
            exact = exact_name(pattern)
            if exact is not None and exact.count(".") < dots:
                reader.problems.append(
                    f"{name}: {pattern} matches nothing, because patterns must match the whole of {form}. Write"
                    f" {'.'.join((*form.split('.')[: dots - exact.count('.')], pattern))}"
                )
