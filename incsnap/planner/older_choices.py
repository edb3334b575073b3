"""The texts that releases before 2026-11-24 wrote for settings with a plan: `repr`s, and dumps of all fields.

Each release that added a field wrote another text for the same settings. So this module makes all texts that one of
these releases may have written for the settings of today. Fields that the releases added one by one may be missing if
they have their defaults. Fields that are newer than all these releases are missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

from incsnap.config.settings import Settings
from incsnap.tables import TableId

#: Characters. Longer texts were written as digests.
_SHOWN = 60
#: The fields that the last of these releases wrote, by class.
_FIELDS = {
    "FormatChoice": ("kind", "schemas", "raw"),
    "Modes": (
        "decimal_handling", "time_precision", "binary_handling", "bigint_unsigned", "time_adjuster", "converting",
    ),
    "TableFilter": ("database_include", "database_exclude", "table_include", "table_exclude", "signal_table"),
    "ColumnRules": ("include", "exclude", "transforms", "keys", "field_names", "booleans", "narrow_booleans"),
    "Step": ("transform", "predicate", "negate"),
    "ExtractNewRecordState": ("mode", "fields", "headers", "route", "kind"),
    "RegexRouter": ("regex", "replacement", "kind"),
    "ByLogicalTableRouter": (
        "regex", "replacement", "key_field", "key_regex", "key_replacement", "schema_names", "kind",
    ),
    "Drop": ("kind",),
    "Filter": ("name", "operations", "topic_regex", "keeps_empty", "kind"),
    "EventRouter": ("event", "updates", "kind"),
    "Event": (
        "name", "id", "key", "payload", "timestamp", "route", "regex", "replacement", "placed", "version", "tombstones",
        "expands", "keeps_nulls",
    ),
    "Placed": ("column", "place", "name", "optional"),
    "Reference": ("struct", "field", "name"),
    "Constant": ("name", "text"),
    "Route": ("name", "column"),
    "TopicNameMatches": ("pattern", "kind"),
    "RecordIsTombstone": ("kind",),
    "HasHeaderKey": ("name", "kind"),
}  # fmt: skip
#: Tables were written as objects of two names at first, and as lists of two names later.
_AS_LIST = ("TableId", "")
#: Fields that these releases added, as (class, field), and the change of tables to lists.
_ADDED = (
    ("FormatChoice", "raw"),
    ("ColumnRules", "booleans"),
    ("ColumnRules", "narrow_booleans"),
    ("ExtractNewRecordState", "route"),
    ("Event", "expands"),
    ("Event", "keeps_nulls"),
    _AS_LIST,
)
#: Today's names of classes whose names were others in these releases.
_OLDER_NAMES = {"OutboxEvent": "Event", "PlacedColumn": "Placed", "EnvelopeField": "Reference"}
_Fields = frozenset[tuple[str, str]]


def older_forms(settings: Settings) -> dict[str, set[str]]:
    """Return for each property all texts that one of these releases may have written for the settings."""
    source = "source" in settings.signals.channels
    notified = "sink" in settings.notifications.channels
    forms: dict[str, set[str]] = {}
    for missing in map(frozenset, chain.from_iterable(combinations(_ADDED, count) for count in range(len(_ADDED) + 1))):
        texts = {
            "topic.prefix": settings.topic_prefix,
            "topic.delimiter": settings.topic_delimiter,
            "signal.data.collection": str(settings.signals.data_collection or "") if source else "",
            "provide.transaction.metadata, topic.transaction": (
                settings.transaction_topic if settings.transaction_metadata else ""
            ),
            "notification.sink.topic.name": (settings.notifications.sink_topic or "") if notified else "",
            "key.converter, schema.name.adjustment.mode": _keys(settings, missing),
            "database, table include and exclude lists": _dumped(settings.tables, missing),
            "transforms, predicates": ", ".join(_printed(step, missing) for step in settings.transforms),
            "handling modes": json_text({"modes": json.loads(_dumped(settings.modes, missing))}),
        }
        for name, text in texts.items():
            if _UNKNOWN not in text:
                forms.setdefault(name, set()).add(text if len(text) <= _SHOWN else _digest(text))
        columns = json_text({"columns": json.loads(_dumped(settings.columns, missing))})
        if _UNKNOWN not in columns:
            forms.setdefault("message.key.columns, column lists and masks", set()).add(_digest(columns))
    return forms


#: The text for a value that none of these releases knew.
_UNKNOWN = "\x00unknown"


def _keys(settings: Settings, missing: _Fields) -> str:
    key = settings.formats.key
    numeric = " numeric" if key.decimals != "base64" else ""
    return f"{_printed(key, missing)} {settings.formats.schema_names}{numeric}"


def _printed(value: Any, missing: _Fields) -> str:
    """Return the value as `repr` printed it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = _OLDER_NAMES.get(type(value).__name__, type(value).__name__)
        written = ", ".join(f"{name}={_printed(own, missing)}" for name, own in _written(value, kind, missing))
        return f"{kind}({written})"
    if isinstance(value, tuple):
        parts = [_printed(each, missing) for each in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    return _UNKNOWN if value is _UNKNOWN else repr(value)


def _dumped(value: Any, missing: _Fields) -> str:
    """Return the value as pydantic dumped it."""
    return json_text(dict(_written(value, type(value).__name__, missing, as_json=True)))


def json_text(content: Any) -> str:
    """Return the content as compact JSON, as pydantic writes it. Characters that are not ASCII stay as they are."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def _written(value: Any, kind: str, missing: _Fields, *, as_json: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each field that was written.

    Yield `_UNKNOWN` as the value of a missing field that does not have its default.
    """
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    defaults = {each.name: each.default for each in fields if each.repr or as_json}
    if not fields:
        defaults = {name: each.default for name, each in type(value).model_fields.items()}
    known = _FIELDS.get(kind, tuple(defaults))
    for name, default in defaults.items():
        own = getattr(value, name)
        if name in known and (kind, name) not in missing:
            yield name, _primitive(own, missing) if as_json else own
        elif own != default and not (as_json and name in _LEFT_OUT):
            yield name, _UNKNOWN


#: Fields that these releases left out of the dumps on purpose.
_LEFT_OUT = frozenset({"typed", "typed_as", "comments", "json_decimals"})


def _primitive(value: Any, missing: _Fields) -> Any:
    """Return dataclasses and tuples as JSON primitives, with all their fields."""
    if isinstance(value, TableId) and _AS_LIST not in missing:
        return [value.database, value.table]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _primitive(getattr(value, each.name), missing) for each in dataclasses.fields(value)}
    return [_primitive(each, missing) for each in value] if isinstance(value, tuple) else value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
