"""Tests of `column.*` and `message.key.columns`: names and values of a properties file become rules."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.config.columns import column_rules
from incsnap.config.reader import SettingsReader
from incsnap.config.record_settings import formats
from incsnap.config.settings import Formats
from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.masks import Transform

AVRO = "io.confluent.connect.avro.AvroConverter"


def _formats(properties: dict[str, str]) -> Formats:
    urls = {f"{side}.converter.schema.registry.url": "http://registry" for side in ("key", "value")}
    return formats(SettingsReader({**properties, **urls}, {}))


def _rules(properties: dict[str, str]) -> ColumnRules:
    reader = SettingsReader(properties, {})
    rules = column_rules(reader, _formats(properties))
    assert reader.problems == []
    return rules


def _problem(properties: dict[str, str]) -> str:
    reader = SettingsReader(properties, {})
    column_rules(reader, _formats(properties))
    (problem,) = reader.problems
    return problem


def test_nothing_given_is_no_rule() -> None:
    assert _rules({"column.mask.with.3.chars": "", "column.include.list": ""}) == ColumnRules()


def test_lists_of_patterns_are_split_at_commas_that_are_not_escaped() -> None:
    assert _rules({"column.include.list": r"a\.b\.c , a.d.e{1\,2},"}).include == (r"a\.b\.c", "a.d.e{1,2}")
    assert _rules({"column.exclude.list": ".*secret"}).exclude == (".*secret",)


def test_columns_and_types_whose_definition_is_shown_are_patterns() -> None:
    name, other = "column.propagate.source.type", "datatype.propagate.source.type"
    rules = _rules({name: r"a\.b\.c,a.d.e{1\,2}", other: r".*\.VARCHAR"})
    assert (rules.typed, rules.typed_as) == ((r"a\.b\.c", "a.d.e{1,2}"), (r".*\.VARCHAR",))
    assert rules.needs_definitions
    assert not _rules({}).needs_definitions
    assert _problem({other: "(", name: ".*"}).startswith("datatype.propagate.source.type: '(' is not a regular")


def test_comments_are_shown_where_that_is_wanted() -> None:
    assert _rules({"include.schema.comments": "true"}) == ColumnRules(comments=True)
    assert ColumnRules(comments=True).needs_definitions


def test_masks_are_read_from_the_names_of_settings() -> None:
    rules = _rules(
        {
            "column.truncate.to.20.chars": "a.b.c",
            "column.mask.with.0.chars": "a.b.d",
            "column.mask.hash.sha-512/256.with.salt.s.a.l.t": "a.b.e,a.b.f",
            "column.mask.hash.v2.MD5.with.salt.x": "a.b.g",
        }
    )
    assert set(rules.transforms) == {
        TransformRule("column.truncate.to.20.chars", ("a.b.c",), Transform("truncate", 20)),
        TransformRule("column.mask.with.0.chars", ("a.b.d",), Transform("mask", 0)),
        TransformRule(
            "column.mask.hash.sha-512/256.with.salt.*",
            ("a.b.e", "a.b.f"),
            Transform("hash", algorithm="SHA-512/256", salt="s.a.l.t"),
        ),
        TransformRule(
            "column.mask.hash.v2.MD5.with.salt.*", ("a.b.g",), Transform("hash_v2", algorithm="MD5", salt="x")
        ),
    }


def test_the_order_of_the_file_does_not_matter() -> None:
    first = {"column.mask.with.1.chars": "a", "column.mask.with.2.chars": "b"}

    assert _rules(first) == _rules(dict(reversed(first.items())))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("column.mask.with.many.chars", "'many' is not a whole number from 0 to 2147483647"),
        ("column.mask.with.-1.chars", "'-1' is not a whole number"),
        ("column.truncate.to.2147483648.chars", "is not a whole number"),
        ("column.truncate.to.².chars", "is not a whole number"),
        ("column.mask.hash.MD2.with.salt.x", "MD2 is not one of: MD5, SHA, SHA1, SHA-1"),
        ("column.mask.hash.v2.CRC32.with.salt.x", "CRC32 is not one of"),
        ("column.mask.hash.v3.MD5.with.salt.x", "unknown setting; known are"),
        ("column.mask.hash.MD5.salt.x", "unknown setting"),
        ("column.mask.hash.MD5.with.salt.", "unknown setting"),
        ("column.mask.with.3", "unknown setting"),
        ("column.truncate.3.chars", "unknown setting; known are column.truncate.to.N.chars"),
    ],
)
def test_a_name_that_says_nothing_is_a_problem(name: str, message: str) -> None:
    problem = _problem({name: "a.b.c"})

    assert problem.startswith(name.removesuffix("x"))
    assert message in problem


@pytest.mark.parametrize(
    "name",
    [
        "column.include.list",
        "column.exclude.list",
        "column.mask.with.3.chars",
        "column.truncate.to.3.chars",
        "column.mask.hash.MD5.with.salt.s3cret",
    ],
)
def test_a_pattern_that_is_none_is_a_problem_of_its_setting(name: str) -> None:
    problem = _problem({name: "a.b.c,a.(b"})

    assert problem.startswith(f"{name.replace('s3cret', '*')}: 'a.(b' is not a regular expression")


def test_only_one_of_the_two_lists_may_be_given() -> None:
    assert "not both" in _problem({"column.include.list": "a.b.c", "column.exclude.list": "a.b.d"})


def test_message_keys_keep_the_order_of_their_columns() -> None:
    rules = _rules({"message.key.columns": r"inventory.customers:pk2,pk1; (.*).orders{1\,2} : id , at ;"})

    assert rules.keys == (("inventory.customers", ("pk2", "pk1")), ("(.*).orders{1,2}", ("id", "at")))
    assert rules.key_patterns()[0] == "inventory.customers.pk2"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a.b", "'a.b' is not of the form database.table:column,column"),
        ("a.b:", "is not of the form"),
        (":c", "is not of the form"),
        ("a.b:c,,d", "is not of the form"),
        ("a.b:c:d", "is not of the form"),
        ("a.b:c;;a.d:e", "'' is not of the form"),
        ("a.b:c,d,C", "'a.b:c,d,C' names a column twice"),
        ("a.b,a.c:d", "'a.b,a.c' is not one pattern"),
        ("a.(b:c", "'a.(b.c' is not a regular expression"),
    ],
)
def test_a_message_key_that_is_none_is_a_problem(value: str, message: str) -> None:
    problem = _problem({"message.key.columns": value})

    assert problem.startswith("message.key.columns: ")
    assert message in problem


@pytest.mark.parametrize(
    ("properties", "mode"),
    [
        ({}, "none"),
        ({"field.name.adjustment.mode": "avro_unicode"}, "avro_unicode"),
        ({"sanitize.field.names": "true"}, "avro"),
        ({"key.converter": AVRO}, "avro"),
        ({"value.converter": AVRO, "field.name.adjustment.mode": "none"}, "avro"),
        ({"value.converter": AVRO, "field.name.adjustment.mode": "avro_unicode"}, "avro_unicode"),
        ({"value.converter": "org.apache.kafka.connect.json.JsonConverter"}, "none"),
    ],
)
def test_names_of_fields_are_adjusted_when_told_or_when_avro_needs_it(properties: dict[str, Any], mode: str) -> None:
    assert _rules(properties).field_names == mode
