"""``transforms`` and ``predicates``: the chain that records go through, each transform from its own settings.

What is not supported is refused by name, and may be left out by ``incsnap.ignore``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from incsnap.config.outbox import event_router
from incsnap.config.patterns import split_list
from incsnap.config.reading import SettingsReader
from incsnap.config.unsupported import IGNORE
from incsnap.config.unwrap import extract_new_record_state
from incsnap.transforms.chain import Chain, Predicate, Step, Transform
from incsnap.transforms.conditions import GROOVY, JAVASCRIPT, NotUnderstoodError, operations
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.replacement import parsed
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter


def chain(reading: SettingsReader) -> Chain:
    """In the order of ``transforms``. A problem of any of them leaves it out."""
    ignored = split_list(reading.text(IGNORE))
    names = _names(reading, "transforms")
    known = [*(f"transforms.{name}" for name in names), *(["transforms"] if names else [])]
    unasked = [name for name in ignored if name.partition(".")[0] == "transforms" and name not in known]
    if unasked:
        reading.warnings.append(f"{IGNORE}: nothing is to be ignored of {', '.join(unasked)}")
    if "transforms" in ignored:
        return ()
    predicates = {name: _predicate(reading, name) for name in _names(reading, "predicates")}
    steps = [_step(reading, name, predicates) for name in names if f"transforms.{name}" not in ignored]
    _say_what_is_unknown(reading, [name for name in names if f"transforms.{name}" not in ignored])
    _say_what_is_idle(reading, "transforms", names)
    _say_what_is_idle(reading, "predicates", list(predicates))
    return tuple(step for step in steps if step is not None)


def _names(reading: SettingsReader, setting: str) -> list[str]:
    names = split_list(reading.text(setting))
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        reading.problems.append(f"{setting}: {', '.join(twice)} is there twice")
    return list(dict.fromkeys(names))


def _say_what_is_idle(reading: SettingsReader, setting: str, names: list[str]) -> None:
    given = {name.partition(".")[0] for name in reading.prefixed(f"{setting}.")}
    # A name may have a dot in it.
    lost = sorted(each for each in given if not any(name.partition(".")[0] == each for name in names))
    if lost:
        reading.warnings.append(f"Settings without effect: {setting} does not name {', '.join(lost)}")


#: Debezium's options that have nothing to act on here: no cache, no OpenTelemetry, no header that names fields.
_IDLE = (
    *("logical.table.cache.size", "drop.fields.header.name", "drop.fields.from.key"),
    *("drop.fields.keep.schema.compatible", "tracing.span.context.field", "tracing.operation.name"),
    "tracing.with.context.field.only",
)


def _say_what_is_unknown(reading: SettingsReader, names: list[str]) -> None:
    """Options that no transform has asked for. Kafka Connect says nothing of them."""
    starts = tuple(f"transforms.{name}." for name in names if _maker(reading.text(f"transforms.{name}.type")))
    refused = {problem.partition(":")[0] for problem in reading.problems}
    known = [name for name in reading.defaults if name.startswith(starts)]
    lost = [name for name in sorted(reading.names()) if name.startswith(starts) and is_unasked(reading, name)]
    if idle := [name for name in lost if name.endswith(_IDLE)]:
        reading.warnings.append(
            f"Settings without effect, for there is nothing here that they could act on: {', '.join(idle)}"
        )
    if unknown := [name for name in lost if name not in refused and name not in idle]:
        guesses = [(name, difflib.get_close_matches(name, known, n=1, cutoff=0.9)) for name in unknown]
        shown = [f"{name} (did you mean {near[0]}?)" if near else name for name, near in guesses]
        reading.warnings.append(f"Settings without effect, of which their transforms know nothing: {', '.join(shown)}")


def is_unasked(reading: SettingsReader, name: str) -> bool:
    """Is it a transform's or predicate's option that has not been looked at?"""
    return name.startswith(("transforms.", "predicates.")) and reading.given(name) and name not in reading.defaults


def _step(reading: SettingsReader, name: str, predicates: dict[str, Predicate | None]) -> Step | None:
    start = f"transforms.{name}."
    transform = _transform(reading, name)
    asked = reading.text(start + "predicate")
    negate = reading.flag(start + "negate", False)
    if asked and asked not in predicates:
        reading.problem(start + "predicate", "named in predicates")
    if negate and not asked:
        reading.problems.append(f"{start}negate: there is no {start}predicate that it could be of")
    return None if transform is None else Step(transform, predicates.get(asked), negate)


def _predicate(reading: SettingsReader, name: str) -> Predicate | None:
    start = f"predicates.{name}."
    type_ = reading.required(start + "type", "the class of the predicate")
    kind = type_.removeprefix("org.apache.kafka.connect.transforms.predicates.")
    if kind == "TopicNameMatches":
        return TopicNameMatches(_regex(reading, start + "pattern"))
    if kind == "HasHeaderKey":
        return HasHeaderKey(reading.required(start + "name", "the header's name"))
    if kind == "RecordIsTombstone":
        return RecordIsTombstone()
    if type_:
        reading.problem(start + "type", "supported; TopicNameMatches, HasHeaderKey and RecordIsTombstone are")
    return None


def _transform(reading: SettingsReader, name: str) -> Transform | None:
    setting = f"transforms.{name}.type"
    type_ = reading.required(setting, "the class of the transform")
    if not type_:
        return None
    if type_ == "Filter":
        reading.problems.append(f"{setting}: 'Filter' is two classes; write one of {', '.join(_filters())}")
        return None
    made = _maker(type_)
    if made is None:
        others = ",".join([*split_list(reading.text(IGNORE)), f"transforms.{name}"])
        reading.problems.append(
            f"{setting}: {type_} is not supported, records would not go through it; take it out of transforms, or"
            f" accept that with {IGNORE}={others} (supported are {', '.join(_MAKERS)})"
        )
        return None
    return made(reading, name)


def _maker(type_: str) -> Callable[[SettingsReader, str], Transform | None] | None:
    """By the name of the class, or its last part."""
    return _MAKERS.get(type_) or next((made for whole, made in _MAKERS.items() if whole.endswith(f".{type_}")), None)


def _filters() -> list[str]:
    return [whole for whole in _MAKERS if whole.endswith(".Filter")]


def _regex(reading: SettingsReader, name: str) -> str:
    """``.*`` where there is a problem."""
    regex = reading.required(name, "a regular expression of Java's")
    return regex if regex and reading.sound(name, regex) else ".*"


def _replacement(reading: SettingsReader, name: str, regex: str) -> str:
    """ "" where there is a problem."""
    replacement = reading.required(name, "what is written for what the regular expression matches, with $1 for groups")
    try:
        parsed(regex, replacement)
    except ValueError as error:
        reading.problems.append(f"{name}: {replacement!r} is no replacement: {error}")
        return ""
    return replacement


def _regex_router(reading: SettingsReader, name: str) -> Transform:
    start = f"transforms.{name}."
    regex = _regex(reading, start + "regex")
    return RegexRouter(regex, _replacement(reading, start + "replacement", regex))


def _logical_router(reading: SettingsReader, name: str) -> Transform:
    start = f"transforms.{name}."
    regex = _regex(reading, start + "topic.regex")
    key_regex, key_replacement = "", ""
    if reading.given(start + "key.field.regex"):
        key_regex = _regex(reading, start + "key.field.regex")
        key_replacement = _replacement(reading, start + "key.field.replacement", key_regex)
    default = ByLogicalTableRouter("", "")
    key_field = reading.text(start + "key.field.name", default.key_field)
    return ByLogicalTableRouter(
        regex,
        _replacement(reading, start + "topic.replacement", regex),
        key_field=key_field if reading.flag(start + "key.enforce.uniqueness", True) else "",
        key_regex=key_regex,
        key_replacement=key_replacement,
        schema_names=reading.choice(start + "schema.name.adjustment.mode", "none", ("none", "avro", "avro_unicode")),
    )


def _filter(reading: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    languages = {"jsr223.groovy": GROOVY, "jsr223.graal.js": JAVASCRIPT}
    language = reading.required(start + "language", f"one of {', '.join(languages)}")
    condition = reading.required(start + "condition", "a condition on value.op")
    if not language or not condition:
        return None
    if language not in languages:
        reading.problem(start + "language", f"supported; {' and '.join(languages)} are")
        return None
    nulls = reading.choice(start + "null.handling.mode", "keep", ("keep", "drop"), ("evaluate",))
    topic_regex = _regex(reading, start + "topic.regex") if reading.given(start + "topic.regex") else ""
    try:
        kept = operations(condition, languages[language])
    except NotUnderstoodError as error:
        reading.problems.append(
            f"{start}condition: {condition!r} asks for more than the operation of a change: {error}; write it with"
            " value.op, texts, ==, !=, in, !, && and || alone, as value.op == 'c' || value.op == 'r', or take the"
            f" transform out, or accept that it is not asked with {IGNORE}=transforms.{name}"
        )
        return None
    return Filter(name, kept, topic_regex, nulls == "keep")


_MAKERS: dict[str, Callable[[SettingsReader, str], Transform | None]] = {
    "io.debezium.transforms.ExtractNewRecordState": extract_new_record_state,
    "io.debezium.transforms.ByLogicalTableRouter": _logical_router,
    "io.debezium.transforms.Filter": _filter,
    "io.debezium.transforms.outbox.EventRouter": lambda reading, name: event_router(
        reading, name, _regex, _replacement
    ),
    "org.apache.kafka.connect.transforms.RegexRouter": _regex_router,
    "org.apache.kafka.connect.transforms.Filter": lambda reading, name: Drop(),
}
