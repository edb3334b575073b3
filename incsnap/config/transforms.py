"""Settings of `transforms` and `predicates`: the chain of transforms that records go through.

An unsupported transform is refused by name. `incsnap.ignore` can leave it out instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from incsnap.config.changed_state import extract_changed_record_state
from incsnap.config.declarations.kinds import FLAG, one_of
from incsnap.config.declarations.records import ADJUSTMENTS
from incsnap.config.edits import EDITS
from incsnap.config.listed import IGNORE
from incsnap.config.older_names import TRANSFORMS
from incsnap.config.outbox import event_router
from incsnap.config.patterns import split_list
from incsnap.config.reader import SettingsReader
from incsnap.config.time_zones import timezone_converter
from incsnap.config.unwrap import extract_new_record_state
from incsnap.transforms.chain import Chain, Predicate, Step, Transform
from incsnap.transforms.condition_parser import GROOVY, JAVASCRIPT, choice_of, condition_of
from incsnap.transforms.conditions import NotUnderstoodError
from incsnap.transforms.content_router import ContentBasedRouter
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.read_to_insert import ReadToInsertEvent
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter


def chain(reader: SettingsReader) -> Chain:
    """Return the transforms in the order of `transforms`. A transform with a problem is left out."""
    ignored = split_list(reader[IGNORE])
    names = _names(reader, "transforms")
    known = [*(f"transforms.{name}" for name in names), *(["transforms"] if names else [])]
    unasked = [name for name in ignored if name.partition(".")[0] == "transforms" and name not in known]
    if unasked:
        reader.warnings.append(f"{IGNORE}: no need to ignore {', '.join(unasked)}")
    if "transforms" in ignored:
        return ()
    predicates = {name: _predicate(reader, name) for name in _names(reader, "predicates")}
    steps = [_step(reader, name, predicates) for name in names if f"transforms.{name}" not in ignored]
    _refuse_dropped_fields(reader, [name for name in names if f"transforms.{name}" not in ignored])
    _warn_of_unknown_options(reader, [name for name in names if f"transforms.{name}" not in ignored])
    _warn_of_unlisted(reader, "transforms", names)
    _warn_of_unlisted(reader, "predicates", list(predicates))
    return tuple(step for step in steps if step is not None)


def _names(reader: SettingsReader, setting: str) -> list[str]:
    """Return the names in the list `setting`, without duplicates. Add a problem if a name occurs twice."""
    names = split_list(reader[setting])
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        reader.problems.append(f"{setting}: {', '.join(twice)} is listed twice")
    return list(dict.fromkeys(names))


def _warn_of_unlisted(reader: SettingsReader, setting: str, names: list[str]) -> None:
    """Warn of settings whose transform or predicate is not listed in `setting`."""
    given = {name.partition(".")[0] for name in reader.prefixed(f"{setting}.")}
    # A name may have a dot in it.
    lost = sorted(each for each in given if not any(name.partition(".")[0] == each for name in names))
    if lost:
        reader.warnings.append(f"Settings without effect, because {setting} does not list {', '.join(lost)}")


#: Debezium's options that have no effect here: there is no cache and no OpenTelemetry. Headers that name fields come
#: only from an ExtractChangedRecordState, and `_refuse_dropped_fields` looks for these.
_IDLE = (
    *("logical.table.cache.size", "drop.fields.header.name", "drop.fields.from.key"),
    *("drop.fields.keep.schema.compatible", "tracing.span.context.field", "tracing.operation.name"),
    "tracing.with.context.field.only",
)


def _refuse_dropped_fields(reader: SettingsReader, names: list[str]) -> None:
    """Add a problem for each drop.fields.header.name that names a header of an earlier ExtractChangedRecordState."""
    listing: dict[str, str] = {}
    for name in names:
        start = f"transforms.{name}."
        made, dropped = _maker(reader.text(f"{start}type")), reader.prefixed(start).get("drop.fields.header.name", "")
        if made is extract_changed_record_state:
            headers = (reader.text(f"{start}header.{which}.name") for which in ("changed", "unchanged"))
            listing |= {header: name for header in headers if header}
        elif made is extract_new_record_state and dropped in listing:
            ignoring = ",".join([*split_list(reader[IGNORE]), f"transforms.{name}"])
            reader.problems.append(
                f"{start}drop.fields.header.name: not supported. Debezium would leave out the columns that the header"
                f" {dropped} of transforms.{listing[dropped]} lists. Remove the setting, and rows keep all columns; or"
                f" leave the transform out with {IGNORE}={ignoring}"
            )


def _warn_of_unknown_options(reader: SettingsReader, names: list[str]) -> None:
    """Warn of options that no transform has read. Kafka Connect ignores them silently."""
    starts = tuple(f"transforms.{name}." for name in names if _maker(reader.text(f"transforms.{name}.type")))
    refused = {problem.partition(":")[0] for problem in reader.problems}
    known = [name for name in reader.defaults if name.startswith(starts)]
    lost = [name for name in sorted(reader.names()) if name.startswith(starts) and is_unread(reader, name)]
    if idle := [name for name in lost if name.endswith(_IDLE)]:
        reader.warnings.append(
            f"Settings without effect, because incsnap has nothing that they act on: {', '.join(idle)}"
        )
    if unknown := [name for name in lost if name not in refused and name not in idle]:
        guesses = [(name, difflib.get_close_matches(name, known, n=1, cutoff=0.9)) for name in unknown]
        shown = [f"{name} (did you mean {near[0]}?)" if near else name for name, near in guesses]
        reader.warnings.append(f"Settings without effect, because no transform has this option: {', '.join(shown)}")


def is_unread(reader: SettingsReader, name: str) -> bool:
    """Return True if `name` is an option of a transform or predicate that nothing has read."""
    return name.startswith(("transforms.", "predicates.")) and reader.given(name) and name not in reader.defaults


def _step(reader: SettingsReader, name: str, predicates: dict[str, Predicate | None]) -> Step | None:
    """Return the transform `name` with its predicate, or None if there is a problem."""
    start = f"transforms.{name}."
    transform = _transform(reader, name)
    asked = reader.text(start + "predicate")
    negate = reader.read(start + "negate", FLAG, "false")
    if asked and asked not in predicates:
        reader.problem(start + "predicate", "listed in predicates")
    if negate and not asked:
        reader.problems.append(f"{start}negate: has no effect without {start}predicate")
    return None if transform is None else Step(transform, predicates.get(asked), negate)


def _predicate(reader: SettingsReader, name: str) -> Predicate | None:
    """Return the predicate `name`, or None if there is a problem."""
    start = f"predicates.{name}."
    type_ = reader.required(start + "type", "the class of the predicate")
    kind = type_.removeprefix("org.apache.kafka.connect.transforms.predicates.")
    if kind == "TopicNameMatches":
        return TopicNameMatches(reader.regex(start + "pattern"))
    if kind == "HasHeaderKey":
        return HasHeaderKey(reader.required(start + "name", "the header's name"))
    if kind == "RecordIsTombstone":
        return RecordIsTombstone()
    if type_:
        reader.problem(start + "type", "one of: TopicNameMatches, HasHeaderKey, RecordIsTombstone")
    return None


def _transform(reader: SettingsReader, name: str) -> Transform | None:
    """Return the transform `name`, or None if there is a problem."""
    setting = f"transforms.{name}.type"
    type_ = reader.required(setting, "the class of the transform")
    if not type_:
        return None
    if type_ == "Filter":
        filters = ", ".join(whole for whole in _MAKERS if whole.endswith(".Filter"))
        reader.problems.append(f"{setting}: two classes are called Filter; write one of {filters}")
        return None
    made = _maker(type_)
    if type_ in TRANSFORMS:
        reader.problem(setting, f"a class of Debezium 3. Write {TRANSFORMS[type_]}, its present name")
        return None
    if made is None and _maker(f"{type_}$Value"):
        reader.problems.append(
            f"{setting}: {type_} is not a class, but two: write {type_}$Value or {type_}$Key, for the value or the key"
        )
        return None
    if made is None:
        others = ",".join([*split_list(reader[IGNORE]), f"transforms.{name}"])
        reader.problems.append(
            f"{setting}: {type_} is not supported, so records would not pass it. Remove it from transforms, or accept"
            f" this with {IGNORE}={others}. Supported are {_supported()}"
        )
        return None
    return made(reader, name)


def _maker(type_: str) -> Callable[[SettingsReader, str], Transform | None] | None:
    """Return the function that reads a transform, by the name of its class with or without the package."""
    return _MAKERS.get(type_) or next((made for whole, made in _MAKERS.items() if whole.endswith(f".{type_}")), None)


def _supported() -> str:
    """Return the names of the supported classes for a message: without packages, $Key and $Value."""
    return ", ".join(dict.fromkeys(whole.rpartition(".")[2].partition("$")[0] for whole in _MAKERS))


def _regex_router(reader: SettingsReader, name: str) -> Transform:
    start = f"transforms.{name}."
    regex = reader.regex(start + "regex")
    return RegexRouter(regex, reader.replacement(start + "replacement", regex))


def _logical_router(reader: SettingsReader, name: str) -> Transform:
    start = f"transforms.{name}."
    regex = reader.regex(start + "topic.regex")
    key_regex, key_replacement = "", ""
    if reader.given(start + "key.field.regex"):
        key_regex = reader.regex(start + "key.field.regex")
        key_replacement = reader.replacement(start + "key.field.replacement", key_regex)
    key_field = reader.text(start + "key.field.name", ByLogicalTableRouter("", "").key_field)
    return ByLogicalTableRouter(
        regex,
        reader.replacement(start + "topic.replacement", regex),
        key_field=key_field if reader.read(start + "key.enforce.uniqueness", FLAG, "true") else "",
        key_regex=key_regex,
        key_replacement=key_replacement,
        schema_names=reader.read(start + "schema.name.adjustment.mode", one_of(*ADJUSTMENTS), "none"),
    )


def _filter(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    language = _language(reader, start)
    condition = reader.required(start + "condition", "a condition on value.op or columns")
    nulls = reader.read(start + "null.handling.mode", one_of("keep", "drop"), "keep")
    topic_regex = reader.regex(start + "topic.regex") if reader.given(start + "topic.regex") else ""
    if not language or not condition:
        return None
    try:
        return Filter(name, condition_of(condition, language), topic_regex, nulls == "keep")
    except NotUnderstoodError as error:
        _refuse_script(reader, f"{start}condition", condition, error, "value.op == 'c' || value.after.status == 'new'")
        return None


def _language(reader: SettingsReader, start: str) -> str:
    """Return the language of a script; "" if there is a problem."""
    languages = {"jsr223.groovy": GROOVY, "jsr223.graal.js": JAVASCRIPT}
    language = reader.required(start + "language", f"one of {', '.join(languages)}")
    if language and language not in languages:
        reader.problem(start + "language", f"one of: {', '.join(languages)}")
    return languages.get(language, "")


def _refuse_script(reader: SettingsReader, setting: str, script: str, error: Exception, example: str) -> None:
    reader.problems.append(
        f"{setting}: {script!r} asks for more than operations and columns: {error}. Write it with value.op, columns"
        f" (value.after.NAME, behind an unwrap value.NAME), texts, numbers, ==, !=, <, >, in, !, && and || alone, as"
        f" {example}. Or remove the transform, or accept that it has no effect with"
        f" {IGNORE}={setting.rpartition('.')[0].removesuffix('.topic')}"
    )


def _content_router(reader: SettingsReader, name: str) -> Transform | None:
    start = f"transforms.{name}."
    language = _language(reader, start)
    expression = reader.required(start + "topic.expression", "an expression that chooses a topic")
    nulls = reader.read(start + "null.handling.mode", one_of("keep", "drop"), "keep")
    topic_regex = reader.regex(start + "topic.regex") if reader.given(start + "topic.regex") else ""
    if not language or not expression:
        return None
    try:
        return ContentBasedRouter(name, choice_of(expression, language), topic_regex, nulls == "keep")
    except NotUnderstoodError as error:
        example = "value.after.kind == 'a' ? 'topic-a' : null"
        _refuse_script(reader, f"{start}topic.expression", expression, error, example)
        return None


_MAKERS: dict[str, Callable[[SettingsReader, str], Transform | None]] = {
    "io.debezium.transforms.ExtractNewRecordState": extract_new_record_state,
    "io.debezium.transforms.ExtractChangedRecordState": extract_changed_record_state,
    "io.debezium.transforms.TimezoneConverter": timezone_converter,
    "io.debezium.connector.mysql.transforms.ReadToInsertEvent": lambda reader, name: ReadToInsertEvent(),
    "io.debezium.transforms.ByLogicalTableRouter": _logical_router,
    "io.debezium.transforms.Filter": _filter,
    "io.debezium.transforms.ContentBasedRouter": _content_router,
    "io.debezium.transforms.outbox.EventRouter": event_router,
    "org.apache.kafka.connect.transforms.RegexRouter": _regex_router,
    "org.apache.kafka.connect.transforms.Filter": lambda reader, name: Drop(),
    **EDITS,
}
