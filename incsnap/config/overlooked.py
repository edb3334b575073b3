"""Settings that a file has or lacks by oversight: a job would start, and send something else than the user expects."""

from __future__ import annotations

import re
from operator import attrgetter

from incsnap.config.reader import SettingsReader
from incsnap.config.settings import Formats
from signals.regex import exact_name

#: Setting -> what the converter writes, and the field of `Formats` that the setting decides.
_CONVERTERS = {
    "key.converter": ("keys", attrgetter("key")),
    "value.converter": ("values", attrgetter("value")),
}
#: List of patterns -> what its patterns name, and how many dots such a name has at least.
_DOTS = {
    "table.include.list": ("database.table", 1),
    "table.exclude.list": ("database.table", 1),
    "snapshot.include.collection.list": ("database.table", 1),
    "column.include.list": ("database.table.column", 2),
    "column.exclude.list": ("database.table.column", 2),
}

#: Setting of Debezium -> a regex of values by which Amazon's Java driver connects.
_AMAZON = {
    "database.protocol": "aws-wrapper",
    "database.jdbc.driver": r"software\.(amazon|aws)\.",
    "driver.wrapperPlugins": r"\biam\b",
}
_LOGIN = "incsnap.database.login"


def warn_of_amazons_driver(reader: SettingsReader) -> None:
    """Add a warning to `reader` if Amazon's Java driver may do the login to MySQL, and no login is chosen."""
    of_amazon = [name for name, regex in _AMAZON.items() if reader.given(name) and re.search(regex, reader.text(name))]
    if of_amazon and not reader.given(_LOGIN):
        note = f"Amazon's Java driver does not run here. For its login by IAM set {_LOGIN}=rds-iam"
        reader.idle |= dict.fromkeys(of_amazon, f"{note}.")
        reader.warnings.append(f"{', '.join(of_amazon)}: {note}")


def warn_of_converters(reader: SettingsReader, formats: Formats) -> None:
    """Add a warning to `reader` if a connector and its worker lack converters. It says what follows."""
    lacking = [name for name in _CONVERTERS if not reader.given(name)]
    if not reader.given("connector.class") or not lacking:
        return
    sides: dict[bool, list[str]] = {}
    for name in lacking:
        side, choice = _CONVERTERS[name]
        sides.setdefault(choice(formats).schemas, []).append(side)
    parts = " and ".join(
        f"{' and '.join(names)} are JSON {'with' if schemas else 'without'} schemas" for schemas, names in sides.items()
    )
    if reader.has_worker:
        place, repair = "in neither file", "A worker of Kafka Connect does not start without them: set the converters"
    else:
        place = "not in this file"
        repair = (
            "A worker of Kafka Connect has converters, with schemas by default: name its file with --worker, or set"
            " the converters"
        )
    reader.warnings.append(f"{' and '.join(lacking)}: {place}, so {parts}. {repair}")


def refuse_patterns(reader: SettingsReader) -> None:
    """Add a problem to `reader` for each pattern that matches nothing."""
    for name, (form, dots) in _DOTS.items():
        for pattern in reader[name]:
            exact = exact_name(pattern)
            if exact is not None and exact.count(".") < dots:
                reader.problems.append(
                    f"{name}: {pattern} matches nothing, because patterns must match the whole of {form}. Write"
                    f" {'.'.join((*form.split('.')[: dots - exact.count('.')], pattern))}"
                )
