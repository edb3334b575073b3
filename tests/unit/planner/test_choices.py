"""Tests of the settings written down with a plan: equal for the same settings, whichever release wrote them.

`older_choices.json` has what five releases wrote for some settings, by commit. The first is the last release with
offsets of version 3. The next three brought versions 4, 5 and 6. The last one is the last that wrote this form.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incsnap.checkpoint.planned_batch import PlannedWith
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.planner.choices import COMMENTS, NAMING, changes_since, choices, older_forms, planned_with
from incsnap.tables import Column, SourceType, TableId, TableShape
from incsnap.tasks.formats import format_of
from tests.support.properties import NEEDED

KEPT: Any = json.loads(Path(__file__).with_name("older_choices.json").read_text())
RECORDED = [(release, case) for release, cases in KEPT["releases"].items() for case in cases]


def settings(case: str, **others: str) -> Settings:
    """Return the settings of a case, with `others` added. In the names of `others` each _ stands for a dot."""
    more = {name.replace("_", "."): value for name, value in others.items()}
    return from_properties({**KEPT["settings"][case], **more}, {}).settings


@pytest.mark.parametrize(("release", "case"), RECORDED)
def test_settings_that_did_not_change_are_the_same_to_a_newer_release(release: str, case: str) -> None:
    assert changes_since(PlannedWith("", KEPT["releases"][release][case]), settings(case)) == ""


@pytest.mark.parametrize(("release", "case"), RECORDED)
@pytest.mark.parametrize(
    ("property_name", "others"),
    [
        ("topic.delimiter", {"topic_delimiter": "-"}),
        ("include and exclude lists", {"table_include_list": "shop\\.other"}),
        ("message.key.columns", {"message_key_columns": "shop.other:a"}),
        ("key.converter", {"key_converter": "JsonConverter", "key_converter_decimal_format": "numeric"}),
        ("handling modes", {"decimal_handling_mode": "double"}),
    ],
)
def test_settings_that_changed_are_named(release: str, case: str, property_name: str, others: dict[str, str]) -> None:
    if case == "avro" and property_name == "key.converter":
        others = {"key_converter": "JsonConverter"}
    assert property_name in changes_since(PlannedWith("", KEPT["releases"][release][case]), settings(case, **others))


@pytest.mark.parametrize("case", KEPT["settings"])
def test_this_release_goes_on_with_what_it_has_planned(case: str) -> None:
    assert changes_since(planned_with(settings(case)), settings(case)) == ""
    other = settings(case, decimal_handling_mode="double")
    assert "handling modes" in changes_since(planned_with(settings(case)), other)


_UNICODE = {"topic_naming_strategy": "io.debezium.schema.DefaultUnicodeTopicNamingStrategy"}
_COMMENTS = {
    "include_schema_comments": "true",
    "key_converter": "JsonConverter",
    "key_converter_schemas_enable": "true",
}


@pytest.mark.parametrize("others", [_UNICODE, _COMMENTS])
@pytest.mark.parametrize("release", ["", "0.1.0"])
def test_a_plan_without_a_setting_tells_nothing_about_it(release: str, others: dict[str, str]) -> None:
    plain = settings("plain", **{**others, "include_schema_comments": "false", "topic_naming_strategy": ""})
    values = {name: value for name, value in choices(plain).items() if name not in (NAMING, COMMENTS)}
    if not release:
        values |= {name: min(texts) for name, texts in older_forms(plain).items()}

    assert changes_since(PlannedWith(release, values), settings("plain", **others)) == ""
    other = settings("plain", **others, topic_delimiter="-")
    assert "topic.delimiter" in changes_since(PlannedWith(release, values), other)


@pytest.mark.parametrize(("name", "others"), [(NAMING, _UNICODE), (COMMENTS, _COMMENTS)])
def test_a_setting_that_a_plan_has_must_be_the_same(name: str, others: dict[str, str]) -> None:
    without = settings("plain", **{**others, "include_schema_comments": "false", "topic_naming_strategy": ""})
    shaped = settings("plain", **others)

    assert name in changes_since(planned_with(without), shaped)
    assert name in changes_since(planned_with(shaped), without)
    assert changes_since(planned_with(shaped), shaped) == ""
    # Earlier code wrote these two settings only if they had other values than their defaults.
    assert changes_since(PlannedWith("0.1.0", choices(shaped)), shaped) == ""
    assert changes_since(PlannedWith("0.1.0", choices(shaped)), without)


def test_missing_fields_of_an_older_release_get_their_defaults() -> None:
    written = planned_with(settings("plain"))
    older = replace(written, release="0.0.9", values={"topic.prefix": "p"})
    newer = replace(written, release="9.9", values={**written.values, "setting.of.the.future": ""})
    assert changes_since(older, settings("plain")) == ""
    assert changes_since(newer, settings("plain")) == ""
    changed = replace(newer, values={**newer.values, "setting.of.the.future": "on"})
    assert changes_since(changed, settings("plain")) == "setting.of.the.future (was on, is none)"


def test_a_value_that_no_older_release_knew_has_no_older_form() -> None:
    outbox = settings("outbox", transforms_outbox_table_expand_json_payload="true")
    without = [release for release in ("64a108f", "568dff9") if "outbox" in KEPT["releases"][release]]
    for release in without:
        assert "transforms" in changes_since(PlannedWith("", KEPT["releases"][release]["outbox"]), outbox)
    assert older_forms(outbox)["transforms, predicates"]


def test_secrets_are_written_as_digests() -> None:
    assert "pepper" not in str(planned_with(settings("tables")))


_WITH_SCHEMAS = {
    **NEEDED,
    "key.converter": "JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter": "JsonConverter",
}
#: Settings that shape records in some way. Which of them reach topics or keys is for the test to see.
_SHAPING = {
    "bigint.unsigned.handling.mode": "precise",
    "binary.handling.mode": "hex",
    "column.mask.with.3.chars": r"shop\.my_t\.v",
    "column.propagate.source.type": ".*",
    "decimal.handling.mode": "double",
    "enable.time.adjuster": "false",
    "extended.headers.enabled": "true",
    "field.name.adjustment.mode": "avro",
    "include.query": "true",
    "include.schema.comments": "true",
    "incsnap.debezium.version": "3.7",
    "key.converter.decimal.format": "numeric",
    "key.converter.schemas.enable": "false",
    "message.key.columns": "shop.my_t:v",
    "schema.name.adjustment.mode": "avro",
    "time.precision.mode": "connect",
    "tombstones.on.delete": "false",
    "topic.delimiter": "-",
    "topic.naming.strategy": "io.debezium.schema.DefaultUnicodeTopicNamingStrategy",
    "value.converter.schemas.enable": "false",
}
_SHAPE = TableShape(
    TableId("shop", "my_t"),
    (
        Column("id", "int", nullable=False),
        Column("a b", "decimal", nullable=False, precision=5, scale=2),
        Column("small", "tinyint", nullable=False),
        Column("at", "datetime", nullable=False, fraction=6),
        Column("large", "bigint", nullable=False, unsigned=True),
        Column("raw", "binary", nullable=False, length=2, charset="binary"),
        Column("v", "varchar", length=40, charset="utf8mb4"),
    ),
    key=(0, 1, 2, 3, 4, 5),
    sources=((0, SourceType("INT", 11)),),
    comments=((0, "the number"),),
)
_ROW = [
    pa.array([7]),
    pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
    pa.array([1]),
    pa.array([1_700_000_000_000_000]),
    pa.array([9], pa.uint64()),
    pa.array([b"ab"]),
    pa.array(["x"]),
]


@pytest.mark.parametrize("name", _SHAPING)
def test_a_setting_that_changes_the_topic_or_the_key_is_a_choice(name: str) -> None:
    """A repeated batch would send such records to other buckets, some of which have been committed."""
    base, shaped = (from_properties({**_WITH_SCHEMAS, **more}, {}).settings for more in ({}, {name: _SHAPING[name]}))
    one, other = (format_of(each, _SHAPE) for each in (base, shaped))
    if (one.topic, one.keys(_ROW)) != (other.topic, other.keys(_ROW)):
        assert changes_since(planned_with(base), shaped)
        assert changes_since(planned_with(shaped), base)


def test_some_of_these_settings_change_topics_and_keys() -> None:
    base = from_properties(_WITH_SCHEMAS, {}).settings
    changing = {
        name
        for name, value in _SHAPING.items()
        if changes_since(planned_with(base), from_properties({**_WITH_SCHEMAS, name: value}, {}).settings)
    }
    assert {"include.schema.comments", "topic.naming.strategy", "decimal.handling.mode"} <= changing
