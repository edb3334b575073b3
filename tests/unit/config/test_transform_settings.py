"""Tests of `transforms` and `predicates`: settings as people write them, and errors for those not obeyed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from incsnap.config.load import Loaded, explain, from_properties
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.transforms.chain import Step
from incsnap.transforms.changed_state import ExtractChangedRecordState
from incsnap.transforms.conditions import Not, OneOf
from incsnap.transforms.filter import Drop, Filter
from incsnap.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from incsnap.transforms.read_to_insert import ReadToInsertEvent
from incsnap.transforms.record_spec import EnvelopeField, Route, TimeZone, ZoneRule
from incsnap.transforms.routers import ByLogicalTableRouter, RegexRouter
from incsnap.transforms.time_zones import TimezoneConverter
from incsnap.transforms.unwrap import ExtractNewRecordState
from tests.support.properties import QUIET, dotted

_UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
_REGEX = "org.apache.kafka.connect.transforms.RegexRouter"
_LOGICAL = "io.debezium.transforms.ByLogicalTableRouter"
_FILTER = "io.debezium.transforms.Filter"
_KAFKA = "org.apache.kafka.connect.transforms."
_PREDICATES = "org.apache.kafka.connect.transforms.predicates."


def loaded(type_: str, others: dict[str, str] | None = None, /, **options: str) -> Loaded:
    """Load settings with one transform `t` and its `options`. `others` are further properties."""
    own = {"transforms": "t", "transforms.t.type": type_, **dotted(options, "transforms.t.")}
    return from_properties({**QUIET, **own, **(others or {})}, {})


def problem(type_: str, others: dict[str, str] | None = None, /, **options: str) -> str:
    with pytest.raises(ConfigError) as raised:
        loaded(type_, others, **options)
    return raised.value.message


def test_unwrap_is_read_with_its_fields_and_headers() -> None:
    read = loaded(
        _UNWRAP,
        delete__tombstone__handling__mode="Rewrite",
        add__fields="op, table ,source.ts_ms,lsn,transaction.id,total_order:nth,source.op",
        add__headers="ts_ms:when,db",
        add__headers__prefix="",
    )
    fields = (
        EnvelopeField("", "op", "__op"),
        EnvelopeField("source", "table", "__table"),
        EnvelopeField("source", "ts_ms", "__source_ts_ms"),
        EnvelopeField("transaction", "id", "__transaction_id"),
        EnvelopeField("transaction", "total_order", "__nth"),
        EnvelopeField("", "op", "__source_op"),
    )
    headers = (EnvelopeField("", "ts_ms", "when"), EnvelopeField("source", "db", "db"))
    assert read.settings.transforms == (Step(ExtractNewRecordState("rewrite", fields, headers)),)
    assert [warning for warning in read.warnings if "transforms.t.add.fields" in warning and "no lsn" in warning]


def test_rows_may_say_which_topic_they_go_to() -> None:
    read = loaded(_UNWRAP, route__by__field="lane")
    assert read.settings.transforms == (Step(ExtractNewRecordState(route=Route("t", "lane"))),)
    avro = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://r"}
    assert "transforms.t.route.by.field: schemas are registered by topic" in problem(
        _UNWRAP, avro, route__by__field="lane"
    )


def test_routers_and_predicates_are_read() -> None:
    properties = {
        "transforms": "one, two,three",
        "transforms.one.type": _REGEX,
        "transforms.one.regex": "(a.*)",
        "transforms.one.replacement": "$1-b",
        "transforms.one.predicate": "mine",
        "transforms.two.type": "ByLogicalTableRouter",
        "transforms.two.topic.regex": "(a.*)",
        "transforms.two.topic.replacement": "all",
        "transforms.two.key.field.name": "shard",
        "transforms.two.key.field.regex": "(a).*",
        "transforms.two.key.field.replacement": "$1",
        "transforms.two.predicate": "moved",
        "transforms.two.negate": "true",
        "transforms.three.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.three.predicate": "empty",
        "predicates": "mine,moved,empty",
        "predicates.mine.type": f"{_PREDICATES}TopicNameMatches",
        "predicates.mine.pattern": "a.*",
        "predicates.moved.type": f"{_PREDICATES}HasHeaderKey",
        "predicates.moved.name": "__debezium.newkey",
        "predicates.empty.type": f"{_PREDICATES}RecordIsTombstone",
    }
    assert from_properties({**QUIET, **properties}, {}).settings.transforms == (
        Step(RegexRouter("(a.*)", "$1-b"), TopicNameMatches("a.*")),
        Step(ByLogicalTableRouter("(a.*)", "all", "shard", "(a).*", "$1"), HasHeaderKey("__debezium.newkey"), True),
        Step(Drop(), RecordIsTombstone()),
    )


def test_a_filter_that_would_also_see_schema_changes_is_refused() -> None:
    options = {"language": "jsr223.groovy", "condition": "value.op != 'd'"}
    assert re.search("records of topic shop do not have; Set transforms.t.topic.regex", problem(_FILTER, **options))
    assert loaded(_FILTER, {"include.schema.changes": "false"}, **options).settings.transforms


def test_a_filter_is_read_by_the_operations_it_keeps() -> None:
    read = loaded(_FILTER, language="jsr223.groovy", condition="value.op != 'd'", topic__regex="p\\..*")
    assert read.settings.transforms == (Step(Filter("t", Not(OneOf(("op",), ("d",))), "p\\..*")),)


def test_workers_get_the_same_transforms() -> None:
    """Classes that have fields in common are still told apart."""
    properties = {
        "transforms": "a,b,c,d,e",
        "transforms.a.type": _UNWRAP,
        "transforms.a.add.fields": "op",
        "transforms.b.type": _REGEX,
        "transforms.b.regex": "x",
        "transforms.b.replacement": "y",
        "transforms.c.type": _LOGICAL,
        "transforms.c.topic.regex": "x",
        "transforms.c.topic.replacement": "y",
        "transforms.d.type": _FILTER,
        "transforms.d.language": "jsr223.groovy",
        "transforms.d.condition": "true",
        "include.schema.changes": "false",
        "transforms.e.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.e.predicate": "p",
        "predicates": "p,q,r",
        "predicates.p.type": f"{_PREDICATES}TopicNameMatches",
        "predicates.p.pattern": "x",
        "predicates.q.type": f"{_PREDICATES}RecordIsTombstone",
        "transforms.b.predicate": "q",
        "predicates.r.type": f"{_PREDICATES}HasHeaderKey",
        "predicates.r.name": "x",
        "transforms.c.predicate": "r",
    }
    settings = from_properties({**QUIET, **properties}, {}).settings
    assert len(settings.transforms) == 5
    again = Settings.from_json(settings.to_json())
    assert again.transforms == settings.transforms
    assert hash(again.transforms) == hash(settings.transforms)


def test_workers_get_the_same_edits_conditions_and_choices() -> None:
    connect = "org.apache.kafka.connect.transforms."
    steps = {
        "unwrap": {"type": _UNWRAP},
        "a": {"type": f"{connect}InsertField$Value", "static.field": "f!", "static.value": "x", "topic.field": "t"},
        "b": {"type": f"{connect}ReplaceField$Value", "exclude": "x", "renames": "a:b"},
        "c": {"type": f"{connect}MaskField$Value", "fields": "m"},
        "d": {"type": f"{connect}Cast$Value", "spec": "i : string, j: INT32"},
        "e": {"type": f"{connect}TimestampConverter$Value", "field": "d", "target.type": "Date"},
        "g": {"type": f"{connect}HoistField$Key", "field": "k"},
        "h": {"type": f"{connect}ExtractField$Key", "field": "k"},
        "i": {"type": f"{connect}Flatten$Value"},
        "j": {"type": f"{connect}ValueToKey", "fields": "a,b"},
        "k": {"type": f"{connect}SetSchemaMetadata$Value", "schema.name": "n", "schema.version": "3"},
        "l": {"type": f"{connect}InsertHeader", "header": "h", "value.literal": "007"},
        "m": {"type": f"{connect}DropHeaders", "headers": "h"},
        "n": {"type": "io.debezium.transforms.HeaderToValue", "headers": "h", "fields": "f", "operation": "move"},
        "o": {
            "type": _FILTER,
            "language": "jsr223.groovy",
            "condition": "value.a == 1 && (value.b < 2.5 || !(value.c in ['x', null]))",
            "topic.regex": "x",
        },
        "p": {
            "type": "io.debezium.transforms.ContentBasedRouter",
            "language": "jsr223.groovy",
            "topic.expression": "value.a == 1 || true ? 'x' : null",
            "topic.regex": "x",
        },
    }
    properties = {f"transforms.{name}.{option}": text for name, each in steps.items() for option, text in each.items()}
    settings = from_properties({**QUIET, "transforms": ",".join(steps), **properties}, {}).settings
    assert len(settings.transforms) == len(steps)
    again = Settings.from_json(settings.to_json())
    assert again.transforms == settings.transforms
    assert hash(again.transforms) == hash(settings.transforms)


@pytest.mark.parametrize(
    ("type_", "options", "message"),
    [
        (f"{_KAFKA}InsertField$Value", {"offset.field": "o"}, "a record has no offset before it is sent"),
        (f"{_KAFKA}InsertField$Value", {"static.field": "o"}, "set both or none"),
        (f"{_KAFKA}InsertField$Value", {}, "no field to insert is named"),
        (f"{_KAFKA}InsertField$Value", {"partition.field": "p!"}, "Remove the !"),
        (f"{_KAFKA}ReplaceField$Value", {"renames": "a"}, "a list of old:new"),
        (f"{_KAFKA}Cast$Value", {"spec": "a:date"}, "a list of field:type with types"),
        (f"{_KAFKA}Cast$Value", {"spec": "a:string,string"}, "or one type for a value that is no struct"),
        (f"{_KAFKA}MaskField$Value", {"fields": "a", "replacement": ""}, "a text that is not empty"),
        (f"{_KAFKA}SetSchemaMetadata$Value", {"schemaname": "n"}, "neither schema.name nor schema.version is set"),
        (f"{_KAFKA}TimestampConverter$Value", {"target.type": "string"}, "format: needed"),
        (f"{_KAFKA}TimestampConverter$Value", {"target.type": "string", "format": "MMM"}, "of the letters"),
        (f"{_KAFKA}TimestampConverter$Value", {"target.type": "date"}, "one of: string, unix, Date"),
        (f"{_KAFKA}DropHeaders", {"headers": "__debezium.oldkey"}, "always stay"),
        (f"{_KAFKA}ValueToKey", {}, "the names of the fields"),
        (
            "io.debezium.transforms.HeaderToValue",
            {"headers": "a,b", "fields": "c", "operation": "copy"},
            "as many names as",
        ),
        (
            "io.debezium.transforms.ContentBasedRouter",
            {"language": "jsr223.groovy", "topic.expression": "value.after.a + 'x'"},
            "asks for more than operations and columns.*incsnap.ignore=transforms.t",
        ),
        ("", {}, "transforms.t.type: missing"),
        ("com.acme.Mine", {}, "com.acme.Mine is not supported.*incsnap.ignore=transforms.t\\. "),
        ("Filter", {}, "two classes"),
        (f"{_KAFKA}InsertField", {}, f"two: write {_KAFKA}InsertField\\$Value or {_KAFKA}InsertField\\$Key, for"),
        ("Cast", {}, r"Cast is not a class, but two: write Cast\$Value or Cast\$Key"),
        (_UNWRAP, {"delete__tombstone__handling__mode": "none"}, "transforms.t.delete.tombstone.handling.mode: 'none'"),
        (_UNWRAP, {"drop__tombstones": "false"}, "Set transforms.t.delete.tombstone.handling.mode"),
        (_UNWRAP, {"delete__handling__mode": "rewrite"}, "Set transforms.t.delete.tombstone.handling.mode"),
        (_UNWRAP, {"add__fields": "before"}, "'before' cannot be added"),
        (_UNWRAP, {"add__fields": "after.name"}, "'after.name' cannot be added"),
        (_UNWRAP, {"add__headers": "source"}, "'source' cannot be added"),
        (_UNWRAP, {"add__fields": "nobody.x"}, "unknown struct nobody"),
        (_UNWRAP, {"add__fields": "op:a:b"}, "is not of the form"),
        (_UNWRAP, {"add__fields": "op,table:op"}, "two fields are called __op"),
        (_REGEX, {"regex": "("}, "transforms.t.regex: .* is not a regular expression"),
        (_REGEX, {"regex": "a", "replacement": "$1"}, "transforms.t.replacement: .* no group 1"),
        (_REGEX, {"replacement": "a"}, "transforms.t.regex: missing"),
        (_LOGICAL, {"topic__regex": "a"}, "transforms.t.topic.replacement: missing"),
        (
            _LOGICAL,
            {"topic__regex": "a", "topic__replacement": "b", "key__field__regex": "c"},
            "transforms.t.key.field.replacement: missing",
        ),
        (_FILTER, {"language": "jsr223.groovy"}, "transforms.t.condition: missing"),
        (_FILTER, {"language": "jsr223.python", "condition": "true"}, "transforms.t.language: .*jsr223.groovy"),
        (
            _FILTER,
            {"language": "jsr223.groovy", "condition": "value.after.id > 1"},
            "transforms.t.condition: the script asks for value.op or columns",
        ),
        (
            _FILTER,
            {"language": "jsr223.groovy", "condition": "true", "null__handling__mode": "evaluate"},
            "transforms.t.null.handling.mode: 'evaluate'",
        ),
        (_UNWRAP, {"predicate": "p"}, "transforms.t.predicate: 'p' is not listed in predicates"),
        (_UNWRAP, {"negate": "true"}, "transforms.t.negate: has no effect without transforms.t.predicate"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_by_name(type_: str, options: dict[str, str], message: str) -> None:
    assert re.search(message, problem(type_, **options))


@pytest.mark.parametrize(
    ("type_", "options", "advice"),
    [
        ("ExtractField$Value", {"field": "after"}, "Write transforms.t.type=io.debezium.transforms.ExtractNewRecord"),
        ("ExtractField$Value", {"field": "op"}, "Let transforms.t stand behind an ExtractNewRecordState"),
        ("Flatten$Value", {}, "Let transforms.t stand behind an ExtractNewRecordState"),
        ("ValueToKey", {"fields": "id"}, "Let transforms.t stand behind an ExtractNewRecordState"),
    ],
)
def test_a_transform_that_no_record_of_a_table_can_pass_is_refused(
    type_: str, options: dict[str, str], advice: str
) -> None:
    message = problem(_KAFKA + type_, **options)
    assert "the settings has one problem" in message
    assert f"the records of topic shop.DATABASE.TABLE are envelopes with before and after; {advice}" in message
    behind = {"transforms": "u,t", "transforms.u.type": _UNWRAP}
    assert len(loaded(_KAFKA + type_, behind, **options).settings.transforms) == 2
    some = {
        "transforms.t.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "TopicNameMatches",
        "predicates.p.pattern": "x",
    }
    assert len(loaded(_KAFKA + type_, some, **options).settings.transforms) == 1


def test_a_refused_transform_is_the_only_problem_of_its_chain() -> None:
    behind = {"transforms": "u,t", "transforms.u.type": "com.acme.Unwrap"}
    assert "has one problem" in problem(f"{_KAFKA}Flatten$Value", behind)


def test_a_predicate_that_is_not_supported_is_refused_by_name() -> None:
    others = {"predicates": "p", "predicates.p.type": "com.acme.Mine"}
    assert "predicates.p.type: 'com.acme.Mine' is not one of" in problem(_UNWRAP, others, predicate="p")


def test_a_name_that_is_there_twice_is_refused() -> None:
    assert "transforms: t is listed twice" in problem(_UNWRAP, {"transforms": "t,t"})


def test_what_is_ignored_is_left_out_one_by_one_or_altogether() -> None:
    others = {"transforms": "t,u", "transforms.u.type": "com.acme.Mine"}
    steps = loaded(_UNWRAP, {**others, "incsnap.ignore": "transforms.u"}).settings.transforms
    assert steps == (Step(ExtractNewRecordState()),)
    assert loaded(_UNWRAP, {**others, "incsnap.ignore": "transforms"}).settings.transforms == ()
    idle = loaded(_UNWRAP, {"incsnap.ignore": "transforms.x"}).warnings
    assert any("no need to ignore transforms.x" in warning for warning in idle)


def test_settings_of_a_transform_that_is_not_named_are_told() -> None:
    warnings = loaded(_UNWRAP, {"transforms.old.type": "x", "predicates.q.type": "y"}).warnings
    assert "Settings without effect, because transforms does not list old" in warnings
    assert "Settings without effect, because predicates does not list q" in warnings


def test_options_that_a_transform_does_not_know_are_told_and_not_called_obeyed(tmp_path: Path) -> None:
    given = {
        **QUIET,
        "transforms": "unwrap,out",
        "transforms.unwrap.type": "ExtractNewRecordState",
        "transforms.unwrap.add.field": "op",
        "transforms.unwrap.replace.null.with.default": "false",
        "transforms.out.type": "EventRouter",
        "transforms.out.tracing.operation.name": "x",
        "transforms.unwrap.drop.fields.header.name": "dropped",
        "transforms.out.table.json.payload.empty.array.behavior": "ignore",
    }
    warnings = (
        "Settings without effect, because incsnap has nothing that they act on:"
        " transforms.out.tracing.operation.name, transforms.unwrap.drop.fields.header.name",
        "Settings without effect, because no transform has this option: transforms.unwrap.add.field (did you mean"
        " transforms.unwrap.add.fields?)",
    )
    assert from_properties(given, {}).warnings == warnings
    (tmp_path / "job.json").write_text(json.dumps(given))
    fates = {each.name: each.fate for each in explain(tmp_path / "job.json").settings}
    assert fates["transforms.unwrap.add.field"] == "without effect"
    assert fates["transforms.unwrap.replace.null.with.default"] == "obeyed"


_ZONES = "io.debezium.transforms.TimezoneConverter"
_STATE = "io.debezium.transforms.ExtractChangedRecordState"


def test_fields_that_a_header_lists_cannot_be_dropped() -> None:
    state = {"transforms.s.type": "ExtractChangedRecordState", "transforms.s.header.unchanged.name": "Unchanged"}
    before, behind = {"transforms": "s,t", **state}, {"transforms": "t,s", **state}
    message = problem(_UNWRAP, before, drop__fields__header__name="Unchanged")
    assert "transforms.t.drop.fields.header.name: not supported" in message
    assert "the header Unchanged of transforms.s" in message
    assert "incsnap.ignore=transforms.t" in message
    for others, header in ((before, "Other"), (behind, "Unchanged"), ({}, "Unchanged")):
        (warning,) = loaded(_UNWRAP, others, drop__fields__header__name=header).warnings
        assert "transforms.t.drop.fields.header.name" in warning
        assert "Settings without effect" in warning
    left_out = loaded(_UNWRAP, {**before, "incsnap.ignore": "transforms.t"}, drop__fields__header__name="Unchanged")
    assert [type(step.transform) for step in left_out.settings.transforms] == [ExtractChangedRecordState]


def test_changed_columns_are_named_in_headers() -> None:
    read = loaded(_STATE, header__changed__name="c", header__unchanged__name="u")
    assert read.settings.transforms == (Step(ExtractChangedRecordState("c", "u")),)
    assert any("the transform adds nothing" in warning for warning in loaded(_STATE).warnings)


@pytest.mark.parametrize("package", ["io.debezium.connector.mysql.transforms.", ""])
def test_rows_of_snapshots_become_insertions_without_options(package: str) -> None:
    read = loaded(f"{package}ReadToInsertEvent")
    assert read.settings.transforms == (Step(ReadToInsertEvent()),)
    assert Settings.model_validate_json(read.settings.model_dump_json()).transforms == read.settings.transforms
    (warning,) = loaded(f"{package}ReadToInsertEvent", some__option="x").warnings
    assert "no transform has this option: transforms.t.some.option" in warning


def test_a_time_zone_is_read_with_its_lists() -> None:
    read = loaded(_ZONES, converted__timezone="Europe/Berlin", include__list="source:orders:at,items,lines:seen")
    rules = (ZoneRule("source", "orders", "at"), ZoneRule("source", "items"), ZoneRule("source", "lines", "seen"))
    assert read.settings.transforms == (Step(TimezoneConverter("Europe/Berlin", rules)),)
    written = read.settings.model_dump_json()
    assert Settings.model_validate_json(written).transforms == read.settings.transforms


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "converted.timezone: missing"),
        ({"converted.timezone": "Mars/Phobos"}, "is not a time zone"),
        ({"include.list": "orders"}, "is not a list as Debezium allows it"),
        ({"include.list": "source:a,source:b:c"}, "is not a list as Debezium allows it"),
        ({"include.list": "a:b", "exclude.list": "a:b"}, "allows one of them alone"),
        ({"exclude.list": "source:a:before.b"}, "is a field of one part of the envelope"),
    ],
)
def test_time_zones_that_cannot_be_obeyed_are_refused(options: dict[str, str], message: str) -> None:
    given = {"converted.timezone": "+01:00", **options} if options else {}
    assert message in problem(_ZONES, {f"transforms.t.{name}": value for name, value in given.items()})


def test_rules_of_time_zones_count_in_the_order_of_debezium() -> None:
    rules = (ZoneRule("topic", "p.d.t", "a"), ZoneRule("source", "t"), ZoneRule("", "u", "b"))
    includes, excludes = (TimeZone("UTC", "p.d.t", rules, includes) for includes in (True, False))
    assert [includes.converts("t", name) for name in "ab"] == [True, False]
    assert [excludes.converts("t", name) for name in "ab"] == [False, True]
    other = TimeZone("UTC", "p.d.other", rules, includes=False)
    assert [other.converts(table, name) for table, name in ("ta", "ub", "uc", "xa")] == [False, False, True, True]


@pytest.mark.parametrize("literal", ["null", "[1, 2]", '{"a": 1}', "[1.50]", "[01]"])
def test_a_literal_that_connect_prints_in_its_own_way_is_refused(literal: str) -> None:
    own = {"transforms.t.header": "h", "transforms.t.value.literal": literal}
    assert "is not a text that stays as it is" in problem("org.apache.kafka.connect.transforms.InsertHeader", own)
