"""The form of records in the offset: other where settings shape records otherwise, and nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from incsnap.config.load import from_properties
from incsnap.config.record_form import record_form
from incsnap.planner.choices import choices, choices_digest
from tests.support.properties import NEEDED, dotted

_BASE = {
    **NEEDED,
    "column.mask.hash.SHA-256.with.salt.salty": "a.b.c",
    "skipped.operations": "c,u,d,t",
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://r:1",
}

_SHOWN = {
    "column.propagate.source.type": ".*",
    "datatype.propagate.source.type": "a",
    "include.schema.comments": "true",
}


def form(**options: str) -> str:
    return record_form(from_properties({**_BASE, **dotted(options)}).settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic__prefix", "q"),
        ("topic__delimiter", "-"),
        ("decimal__handling__mode", "string"),
        ("bigint__unsigned__handling__mode", "precise"),
        ("time__precision__mode", "connect"),
        ("binary__handling__mode", "hex"),
        ("enable__time__adjuster", "false"),
        ("event__converting__failure__handling__mode", "fail"),
        ("key__converter", "JsonConverter"),
        ("key__converter__decimal__format", "NUMERIC"),
        ("key__converter__schemas__enable", "true"),
        ("value__converter__schema__registry__url", "http://other:1"),
        ("value__converter__use__latest__version", "true"),
        ("schema__name__adjustment__mode", "avro"),
        ("field__name__adjustment__mode", "avro_unicode"),
        ("message__key__columns", "a.b:c"),
        ("column__exclude__list", "a.b.d"),
        ("column__include__list", "a.b.d"),
        ("column__truncate__to__5__chars", "a.b.d"),
        ("column__mask__with__5__chars", "a.b.d"),
        ("column__mask__hash__SHA-256__with__salt__another", "a.b.d"),
        ("skipped__operations", "none"),
        ("skip__messages__without__change", "true"),
        ("include__schema__comments", "true"),
        ("topic__naming__strategy", "DefaultUnicodeTopicNamingStrategy"),
        ("provide__transaction__metadata", "true"),
    ],
)
def test_what_shapes_records_makes_another_form(name: str, value: str) -> None:
    assert form(**{name: value}) != form()


def test_another_salt_makes_another_form_although_it_is_secret() -> None:
    salty = {name: text for name, text in _BASE.items() if "salt" not in name}
    other = from_properties({**salty, "column.mask.hash.SHA-256.with.salt.sweet": "a.b.c"}).settings
    assert record_form(other) != form()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("database__hostname", "elsewhere"),
        ("database__password", "new"),
        ("bootstrap__servers", "j:9092"),
        ("table__include__list", "a.b"),
        ("incremental__snapshot__chunk__size", "7"),
        ("max__batch__size", "7"),
        ("notification__enabled__channels", "log"),
        ("value__converter__basic__auth__user__info", "me:secret"),
        ("tombstones__on__delete", "false"),
        ("spark__master", "local[2]"),
    ],
)
def test_what_shapes_no_record_leaves_the_form_alone(name: str, value: str) -> None:
    changed = form(**{name: value})
    if name.startswith("value__converter__basic"):
        assert changed == form(**{name: "me:another"}), "a new password is no new form"
    else:
        assert changed == form()


def test_every_process_finds_the_same_form() -> None:
    """Sets of strings have another order in each."""
    command = [sys.executable, "-c", "from tests.unit.config.test_record_form import form; print(form())"]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert {each.stdout.strip() for each in runs} == {form()}


@pytest.mark.parametrize(
    "options",
    [
        {"regex": "a"},
        {"replacement": "b"},
        {"negate": "true", "predicate": "p"},
        {"type": "org.apache.kafka.connect.transforms.Filter", "predicate": "p"},
    ],
)
def test_each_setting_of_a_transform_makes_another_form(options: dict[str, str]) -> None:
    properties = {
        "transforms": "t",
        "transforms.t.type": "RegexRouter",
        "transforms.t.regex": "x",
        "transforms.t.replacement": "y",
        "predicates": "p",
        "predicates.p.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    changed = {**properties, **{f"transforms.t.{name}": value for name, value in options.items()}}
    assert len({form(), form(**properties), form(**changed)}) == 3


def test_what_schemas_show_of_columns_is_no_choice_that_a_batch_under_way_depends_on() -> None:
    """It is no such choice in the plans of older releases either."""
    shown = from_properties({**_BASE, **_SHOWN})
    assert choices(shown.settings) == choices(from_properties(_BASE).settings)


_OUTBOX = {"transforms": "t", "transforms.t.type": "io.debezium.transforms.outbox.EventRouter"}
_ROUTED = {
    "transforms": "t,u",
    "transforms.t.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.t.regex": "a",
    "transforms.t.replacement": "b",
    "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState",
    "message.key.columns": "a.b:c",
    "converters": "flags",
    "flags.type": "io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter",
}


@pytest.mark.parametrize(
    ("given", "form_text", "choices_text"),
    [
        ({}, "42fff11f14d41d5a", "e891499cb5e4"),
        (_OUTBOX, "3a466952d0240a08", "0363ba5003d6"),
        ({**_OUTBOX, "transforms.t.table.field.event.schema.version": "v"}, "2cdb9e16af073625", "e27372e39f81"),
        (_ROUTED, "eb563b648dc30d8a", "3d16938d60c3"),
    ],
)
def test_a_new_release_gives_the_same_digests_to_unchanged_settings(
    given: dict[str, str], form_text: str, choices_text: str
) -> None:
    """Hold digests that checkpoints of older releases have.

    Another record form makes a job read its windows in flight again. Other choices can refuse the start.
    """
    names = ("database.hostname", "database.user", "database.password", "database.server.id", "bootstrap.servers")
    job = {**dict(zip(names, ("db", "cdc", "s3cret", "7", "k:9092"), strict=True)), "name": "inventory"}
    settings = from_properties({**job, "topic.prefix": "shop", "checkpoint.location": "/x", **given}).settings
    assert (record_form(settings), choices_digest(settings)) == (form_text, choices_text)
