"""Settings of Debezium's TimezoneConverter."""

from __future__ import annotations

import re
import zoneinfo
from typing import Literal, cast

from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.envelope.time_zones import offset_of
from incsnap.transforms.record_spec import ZoneRule
from incsnap.transforms.time_zones import TimezoneConverter

#: A list as Debezium allows it: only the first item can begin with `source:` or `topic:`.
_NAME = r"[\".\w\s]+"
_LIST = re.compile(rf"{_NAME}:{_NAME}(:{_NAME})?(,{_NAME}(:{_NAME})?)*")


def timezone_converter(reader: SettingsReader, name: str) -> TimezoneConverter | None:
    """Return the transform `name`, or None if there is a problem."""
    start = f"transforms.{name}."
    zone = reader.required(start + "converted.timezone", "a time zone, as Europe/Berlin, or an offset, as +05:30")
    if zone and offset_of(zone) is None and not _is_zone(zone):
        reader.problem(start + "converted.timezone", "a time zone, as Europe/Berlin, nor an offset, as +05:30")
        return None
    include, exclude = _rules(reader, start + "include.list"), _rules(reader, start + "exclude.list")
    if include and exclude:
        reader.problems.append(
            f"{start}include.list: {start}exclude.list is set too, and Debezium allows one of them alone"
        )
    return TimezoneConverter(zone, include, exclude) if zone else None


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _rules(reader: SettingsReader, setting: str) -> tuple[ZoneRule, ...]:
    """Return the items of a list. A prefix holds for the items behind it too, as in Debezium."""
    items = split_list(reader.text(setting))
    if items and _LIST.fullmatch(",".join(items)) is None:
        reader.problem(
            setting, "a list as Debezium allows it: source:TABLE, source:TABLE:FIELD, topic:TOPIC, topic:TOPIC:FIELD or"
            " NAME:FIELD, and behind the first item TABLE or TABLE:FIELD without source: or topic:",
        )  # fmt: skip
        return ()
    rules: list[ZoneRule] = []
    place = ""
    for item in items:
        first, *rest = item.split(":")
        if first.lower() in ("source", "topic") and rest:
            place, (first, *rest) = first.lower(), rest
        field = rest[0] if rest else ""
        if field.startswith(("source.", "before.", "after.")):
            reader.problem(setting, f"a list of fields of rows: {field} is a field of one part of the envelope")
        rules.append(ZoneRule(cast(Literal["source", "topic", ""], place), first, field))
    return tuple(rules)
