"""The settings of the outbox's EventRouter."""

from __future__ import annotations

import pytest

from incsnap.config.load import from_properties
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.errors import ConfigError
from incsnap.transforms.outbox import EventRouter
from incsnap.transforms.record_spec import OutboxEvent, PlacedColumn
from tests.support.properties import QUIET, dotted

JSON = "org.apache.kafka.connect.json.JsonConverter"


def router(converters: dict[str, str] | None = None, **options: str) -> EventRouter:
    """Load settings with an outbox router. `options` are the transform's, with `__` for each dot in their names."""
    type_ = {"transforms": "out", "transforms.out.type": "io.debezium.transforms.outbox.EventRouter"}
    loaded = from_properties({**QUIET, **(converters or {}), **type_, **dotted(options, "transforms.out.")}, {})
    assert loaded.warnings == ()
    [step] = loaded.settings.transforms
    assert isinstance(step.transform, EventRouter)
    return step.transform


def refused(converters: dict[str, str] | None = None, **options: str) -> str:
    with pytest.raises(ConfigError) as error:
        router(converters, **options)
    [_, problem] = error.value.message.splitlines()
    return problem.strip()


def test_the_defaults_are_those_of_debezium() -> None:
    event = OutboxEvent(
        "out",
        id="id",
        key="aggregateid",
        payload="payload",
        timestamp="",
        route="aggregatetype",
        regex="(?<routedByValue>.*)",
        replacement="outbox.event.${routedByValue}",
    )
    assert router() == EventRouter(event, "warn")


def test_every_setting_is_obeyed() -> None:
    event_router = router(
        table__field__event__id="i",
        table__field__event__key="k",
        table__field__event__type="t",
        table__field__event__payload="p",
        table__field__event__timestamp="at",
        table__field__event__schema__version="v",
        table__fields__additional__placement="a:header, b:envelope:B ,c:HEADER:d,e:partition",
        table__field__additional__missing="ignore",
        route__by__field="r",
        route__topic__regex="(.*)",
        route__topic__replacement="to.$1",
        route__tombstone__on__empty__payload="true",
        table__op__invalid__behavior="fatal",
    )
    placed = (
        PlacedColumn("a", "header", "a", True),
        PlacedColumn("b", "envelope", "B", True),
        PlacedColumn("c", "header", "d", True),
        PlacedColumn("e", "partition", "e", True),
    )
    assert event_router == EventRouter(
        OutboxEvent("out", "i", "k", "p", "at", "r", "(.*)", "to.$1", placed, "v", tombstones=True), "fatal"
    )


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("table__json__payload__null__behavior", "keep", "is not one of: ignore, optional_bytes"),
        ("table__fields__additional__placement", "a:key", "unknown place key; known are header, envelope, partition"),
        ("table__fields__additional__placement", "a", "is not of the form column:place or column:place:name"),
        ("table__fields__additional__placement", "a:envelope:payload", "two fields are called payload"),
        ("table__op__invalid__behavior", "skip", "is not one of: warn, error, fatal"),
        ("route__topic__replacement", "${nobody}", "the regular expression has no group 'nobody'"),
        ("route__topic__regex", "(.*)", "transforms.out.route.topic.replacement: missing"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(setting: str, value: str, why: str) -> None:
    assert why in refused(None, **{setting: value})


def test_payloads_of_json_are_expanded_where_that_is_wanted() -> None:
    assert not router(table__json__payload__null__behavior="optional_bytes").event.expands
    event = router(table__expand__json__payload="true").event
    assert (event.expands, event.keeps_nulls) == (True, False)
    event = router(table__expand__json__payload="true", table__json__payload__null__behavior="OPTIONAL_BYTES").event
    assert (event.expands, event.keeps_nulls) == (True, True)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("field__name__adjustment__mode", "avro"), ("table__json__payload__empty__array__behavior", "optional_string")],
)
def test_what_debezium_does_not_do_to_expanded_payloads_either_is_refused(setting: str, value: str) -> None:
    assert "not supported" in refused(None, table__expand__json__payload="true", **{setting: value})
    assert not router(None, **{setting: value}).event.expands


def test_formats_that_events_cannot_have_are_refused() -> None:
    avro = {"key.converter": "AvroConverter", "key.converter.schema.registry.url": "http://r"}
    assert refused(avro).startswith("key.converter: events of transforms.out are written as JSON, text or bytes")
    text = {"value.converter": "StringConverter"}
    assert router(text)
    assert "an envelope is no text" in refused(text, table__fields__additional__placement="a:envelope")
    assert "a struct is no text" in refused(text, table__expand__json__payload="true")
    schemas = {"value.converter": JSON}
    assert router(schemas, table__expand__json__payload="true")
    assert router(schemas)
    assert "Set value.converter.schemas.enable=false" in refused(
        schemas, table__fields__additional__placement="a:envelope"
    )


_BINARY = "io.debezium.converters.BinaryDataConverter"
_DELEGATE = "value.converter.delegate.converter.type"


def _value(**options: str) -> FormatChoice:
    """Load `value.converter` and its settings, and return the format of values. `__` stands for a dot in a name."""
    router_ = {"transforms": "out", "transforms.out.type": "io.debezium.transforms.outbox.EventRouter"}
    loaded = from_properties({**QUIET, **router_, **dotted(options, "value.")}, {})
    assert loaded.warnings == ()
    return loaded.settings.formats.value


def test_payloads_of_bytes_have_converters_of_their_own() -> None:
    assert _value(converter=_BINARY) == FormatChoice("bytes")
    assert _value(converter="org.apache.kafka.connect.converters.ByteArrayConverter") == FormatChoice("bytes")
    schemas = "converter__delegate__converter__type__schemas__enable"
    delegated = _value(converter=_BINARY, converter__delegate__converter__type=JSON, **{schemas: "false"})
    assert delegated == FormatChoice("json", raw=True)
    assert _value(converter=_BINARY, converter__delegate__converter__type=JSON).schemas


def test_what_is_no_bytes_takes_a_delegate_that_writes_json() -> None:
    binary = {"value.converter": _BINARY}
    avro = "io.confluent.connect.avro.AvroConverter"
    assert refused({**binary, _DELEGATE: avro}).startswith(f"{_DELEGATE}: '{avro}' is not")
    assert "an envelope is no bytes" in refused(binary, table__fields__additional__placement="a:envelope")
    assert "a struct is no bytes" in refused(binary, table__expand__json__payload="true")
    assert router({**binary, _DELEGATE: JSON}, table__expand__json__payload="true").event.expands
    with pytest.raises(ConfigError, match="a converter for bytes writes only the events of an outbox's EventRouter"):
        from_properties({**QUIET, **binary}, {})
