"""The settings that decide which events, topics and keys a batch has. They are written down with the batch's plan.

Only values that differ from a setting's default are written. So a newer release, which has more settings, writes the
same text for the same file. A release that changes a default must write the new default too, not leave it out.

Releases before 2026-11-24 wrote other texts: `repr`s, and dumps of all fields. Each release that added a field wrote
another text for the same settings. So `older_forms` makes all texts that one of these releases may have written for the
settings of today. Fields that the releases added one by one may be missing if they have their defaults.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from itertools import chain, combinations
from typing import Any

from incsnap.checkpoint.planned_batch import PlannedWith
from incsnap.config.settings import Settings
from incsnap.tables import TableId
from incsnap.version import __version__

#: The setting that identifies a job.
PREFIX = "topic.prefix"
#: The setting of a job's topics that is in `choices` only if it has another value than its default.
NAMING = "topic.naming.strategy"
#: The setting by which keys show comments of columns.
COMMENTS = "include.schema.comments"
COLUMNS = "message.key.columns, column lists and masks"
KEYS = "key.converter, schema.name.adjustment.mode"
TABLES = "database, table include and exclude lists"
TRANSFORMS = "transforms, predicates"
MODES = "handling modes"
#: Characters. Longer values are written as digests, and so is each value that may hold a secret (the salt of a mask).
_SHOWN = 60
#: Fields of `ColumnRules` and `Modes` that move no record to another bucket: they decide what schemas of values show of
#: columns, and how JSON shows a decimal. Comments are in schemas of keys too: `_comments_of_keys` says when they count.
#: The releases before 2026-11-24 did not write these fields.
_OF_SCHEMAS = frozenset({"typed", "typed_as", "comments", "json_decimals"})
#: Tables were written as objects of two names at first, and as lists of two names later.
_AS_LIST = ("TableId", "")
#: Fields that the releases before 2026-11-24 added, as (class, field), and the change of tables to lists. A later
#: release adds its own fields here, except those of `_OF_SCHEMAS`.
_ADDED = (
    ("FormatChoice", "raw"),
    ("ColumnRules", "booleans"),
    ("ColumnRules", "narrow_booleans"),
    ("ExtractNewRecordState", "route"),
    ("Event", "expands"),
    ("Event", "keeps_nulls"),
    ("Modes", "debezium"),
    _AS_LIST,
)
#: Today's names of classes whose names were others in these releases.
_OLDER_NAMES = {"OutboxEvent": "Event", "PlacedColumn": "Placed", "EnvelopeField": "Reference"}
_Fields = frozenset[tuple[str, str]]


def planned_with(settings: Settings) -> PlannedWith:
    """Return the release and the settings that are written down with the plan of each batch."""
    return PlannedWith(__version__, _planned_values(settings))


def choices_digest(settings: Settings) -> str:
    """Return a digest of `choices`. A batch that was planned with another digest may have other records."""
    return digest_of(json.dumps(choices(settings), sort_keys=True))


def _planned_values(settings: Settings) -> dict[str, str]:
    """Return `choices` with two settings that earlier releases obeyed but did not write, also if they have defaults.

    So a plan without one of these settings comes from an earlier release, and its value is unknown.
    """
    own = choices(settings)
    return {**own, NAMING: own.get(NAMING, ""), COMMENTS: "in keys" if _comments_of_keys(settings) else ""}


def choices(settings: Settings) -> dict[str, str]:
    """Return the settings that decide which events, topics and keys a batch has: property names -> text."""
    source = "source" in settings.signals.channels
    notified = "sink" in settings.notifications.channels
    by_property = {
        PREFIX: settings.topic_prefix,
        "topic.delimiter": settings.topic_delimiter,
        **_not_default(NAMING, "unicode" if settings.unicode_topics else "", ""),
        "signal.data.collection": str(settings.signals.data_collection or "") if source else "",
        "provide.transaction.metadata, topic.transaction": (
            settings.transaction_topic if settings.transaction_metadata else ""
        ),
        "notification.sink.topic.name": (settings.notifications.sink_topic or "") if notified else "",
        KEYS: _keys(settings, _comments_of_keys(settings)),
        TABLES: _text(
            {
                **settings.tables.model_dump(mode="json", exclude_defaults=True),
                **_not_default("online_ddl", settings.online_ddl_tables, "ignore"),
            }
        ),
        TRANSFORMS: _text([_values(step) for step in settings.transforms]),
        MODES: _text(_values(settings.modes)),
        COLUMNS: _text(_values(settings.columns)),
    }
    return {name: _shown(name, text) for name, text in by_property.items()}


def changes_since(before: PlannedWith, settings: Settings) -> str:
    """Return which settings have changed since a batch was planned with `before`, as text; "" if none has changed."""
    now = _planned_values(settings)
    same = {name: {value} for name, value in now.items()}
    # Releases that did not count comments among the choices may have put them into keys.
    same[KEYS].add(_shown(KEYS, _keys(settings, {})))
    if not before.release:
        same |= older_forms(settings)
    return "; ".join(
        f"{name} (was {value or 'none'}, is {now.get(name) or 'none'})"
        for name, value in before.values.items()
        if value not in same.get(name, {""})
    )


def older_forms(settings: Settings) -> dict[str, set[str]]:
    """Return for each setting the texts that a release before 2026-11-24 may have written for today's value.

    The keys are names as in `choices`. Only settings whose text is written in another way now are in the result.
    """
    key = settings.formats.key
    numeric = " numeric" if key.decimals != "base64" else ""
    forms: dict[str, set[str]] = {}
    for missing in map(frozenset, chain.from_iterable(combinations(_ADDED, count) for count in range(len(_ADDED) + 1))):
        texts = {
            KEYS: f"{_printed(key, missing)} {settings.formats.schema_names}{numeric}",
            TABLES: _dumped(dict(settings.tables), missing),
            TRANSFORMS: ", ".join(_printed(step, missing) for step in settings.transforms),
            MODES: _dumped({"modes": settings.modes}, missing),
            COLUMNS: _dumped({"columns": settings.columns}, missing),
        }
        for name, text in texts.items():
            forms.setdefault(name, set()).add(_shown(name, text))
    return forms


def digest_of(text: str) -> str:
    """Return 12 hexadecimal digits for a text that is long or secret."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _shown(name: str, text: str) -> str:
    """Return the text of a property as it is written: a digest if the text is long or may hold a secret."""
    return text if len(text) <= _SHOWN and name != COLUMNS else digest_of(text)


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


def _keys(settings: Settings, comments: Mapping[str, bool]) -> str:
    """Return the text of the settings of keys. `comments` is the field of `_comments_of_keys`, or empty."""
    formats = settings.formats
    return _text({**_values(formats.key), **_not_default("names", formats.schema_names, "none"), **comments})


def _comments_of_keys(settings: Settings) -> dict[str, bool]:
    """Return a field if keys have a schema, or its id, and the schema shows comments of columns."""
    key = settings.formats.key
    return {"comments": True} if settings.columns.comments and (key.schemas or key.is_registered) else {}


def _not_default(name: str, value: str, default: str) -> dict[str, str]:
    return {} if value == default else {name: value}


def _text(content: Any) -> str:
    """Return JSON with sorted names; "" for empty content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if content else ""


def _printed(value: Any, missing: _Fields) -> str:
    """Return the value as `repr` printed it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        written = ", ".join(
            f"{name}={_printed(own, missing)}" for name, own in _written(value, missing, repr_only=True).items()
        )
        return f"{_older_name(value)}({written})"
    if isinstance(value, tuple):
        parts = [_printed(each, missing) for each in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    return repr(value)


def _dumped(content: Mapping[str, Any], missing: _Fields) -> str:
    """Return the content as pydantic dumped it. Characters that are not ASCII stay as they are."""

    def primitive(value: Any) -> Any:
        if isinstance(value, TableId) and _AS_LIST not in missing:
            return [value.database, value.table]
        return _written(value, missing)

    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, default=primitive)


def _written(value: Any, missing: _Fields, *, repr_only: bool = False) -> dict[str, Any]:
    """Return the fields of a dataclass that were written. A field of `missing` is left out if it has its default.

    `repr_only`: only the fields that `repr` shows.
    """
    return {
        each.name: own
        for each in dataclasses.fields(value)
        if (each.repr or not repr_only)
        and each.name not in _OF_SCHEMAS
        and ((own := getattr(value, each.name)) != each.default or (_older_name(value), each.name) not in missing)
    }


def _older_name(value: Any) -> str:
    return _OLDER_NAMES.get(type(value).__name__, type(value).__name__)
