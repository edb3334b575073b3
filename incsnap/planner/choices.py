"""The settings that decide which events, topics and keys a batch has. They are written down with the batch's plan.

Only values that differ from a setting's default are written. So a newer release, which has more settings, writes the
same text for the same file. A release that changes a default must write the new default too, not leave it out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from incsnap.checkpoint.planned_batch import PlannedWith
from incsnap.config.settings import Settings
from incsnap.planner.older_choices import older_forms
from incsnap.version import __version__

#: The setting that identifies a job.
PREFIX = "topic.prefix"
COLUMNS = "message.key.columns, column lists and masks"
KEYS = "key.converter, schema.name.adjustment.mode"
TABLES = "database, table include and exclude lists"
TRANSFORMS = "transforms, predicates"
MODES = "handling modes"
#: Characters. Longer values are written as digests, and so is each value that may hold a secret (the salt of a mask).
_SHOWN = 60
#: Fields of `ColumnRules` and `Modes` that move no record to another bucket: they decide what schemas show of columns,
#: and how JSON shows a decimal.
_OF_SCHEMAS = frozenset({"typed", "typed_as", "comments", "json_decimals"})


def planned_with(settings: Settings) -> PlannedWith:
    """Return the release and the settings that are written down with the plan of each batch."""
    return PlannedWith(__version__, choices(settings))


def choices_digest(settings: Settings) -> str:
    """Return a digest of `choices`. A batch that was planned with another digest may have other records."""
    return digest_of(json.dumps(choices(settings), sort_keys=True))


def choices(settings: Settings) -> dict[str, str]:
    """Return the settings that decide which events, topics and keys a batch has: property names -> text."""
    source = "source" in settings.signals.channels
    notified = "sink" in settings.notifications.channels
    formats = settings.formats
    by_property = {
        PREFIX: settings.topic_prefix,
        "topic.delimiter": settings.topic_delimiter,
        "signal.data.collection": str(settings.signals.data_collection or "") if source else "",
        "provide.transaction.metadata, topic.transaction": (
            settings.transaction_topic if settings.transaction_metadata else ""
        ),
        "notification.sink.topic.name": (settings.notifications.sink_topic or "") if notified else "",
        KEYS: _text({**_values(formats.key), **_not_default("names", formats.schema_names, "none")}),
        TABLES: _text(settings.tables.model_dump(mode="json", exclude_defaults=True)),
        TRANSFORMS: _text([_values(step) for step in settings.transforms]),
        MODES: _text(_values(settings.modes)),
    }
    shown = {name: value if len(value) <= _SHOWN else digest_of(value) for name, value in by_property.items()}
    return {**shown, COLUMNS: digest_of(_text(_values(settings.columns)))}


def changes_since(before: PlannedWith, settings: Settings) -> str:
    """Return which settings have changed since a batch was planned with `before`, as text; "" if none has changed."""
    if before.release:
        now = choices(settings)
        return _for_people(before.values, now, {name: {value} for name, value in now.items()})
    return _for_people(before.values, choices(settings), older_forms(settings))


def digest_of(text: str) -> str:
    """Return 12 hexadecimal digits for a text that is long or secret."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _for_people(before: Mapping[str, str], now: Mapping[str, str], same: Mapping[str, set[str]]) -> str:
    """Return the properties whose values have changed, as text.

    `same` has for each property all texts that mean the same as its text in `now`.
    """
    return "; ".join(
        f"{name} (was {value or 'none'}, is {now.get(name) or 'none'})"
        for name, value in before.items()
        if value not in same.get(name, {""})
    )


def _values(value: Any) -> Any:
    """Return the value as JSON primitives, without fields that have their defaults. A transform keeps its `kind`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: _values(own)
            for each in dataclasses.fields(value)
            if each.name not in _OF_SCHEMAS
            and ((own := getattr(value, each.name)) != each.default or each.name == "kind")
        }
    if isinstance(value, tuple):
        return [_values(each) for each in value]
    return value


def _not_default(name: str, value: str, default: str) -> dict[str, str]:
    return {} if value == default else {name: value}


def _text(content: Any) -> str:
    """Return JSON with sorted names; "" for empty content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if content else ""
