"""Tests that our schemas of fields are those that Debezium wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest

from incsnap.connect.avro_schema import avro_schema
from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema
from incsnap.envelope.connect_envelope import envelope_schema, key_schema
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.golden.written_json import dump, parse
from tests.support.hand_made_view import hand_made_view

SCHEMAS = parse((Path(__file__).parent / "schemas.json").read_text(encoding="utf-8"))["schemas"]
#: Type of a number with a fraction, as Debezium writes it -> Connect's type.
_JAVA = {"float": "float32", "double": "float64"}


def schema_of(written: dict[str, Any]) -> Schema:
    inside = written.get("items", written.get("values"))
    default: Any = written.get("default")
    return Schema(
        _JAVA.get(written["type"], written["type"]),
        written["optional"],
        written.get("name"),
        written.get("version"),
        tuple(written.get("parameters", {}).items()),
        float(default) if type(default).__name__ == "Number" else default,
        written.get("doc"),
        tuple((field["field"], schema_of(field)) for field in written.get("fields", ())),
        schema_of(inside) if inside else None,
    )


def names(written: dict[str, Any]) -> str:
    return str(written["name"])


@pytest.mark.parametrize("written", SCHEMAS, ids=names)
def test_a_schema_is_written_in_the_words_and_order_of_connect(written: dict[str, Any]) -> None:
    assert schema_json(schema_of(written)) == dump(written)


@pytest.mark.parametrize("written", [each for each in SCHEMAS if each["name"].endswith(".Envelope")], ids=names)
def test_the_envelope_around_a_row_is_debeziums(written: dict[str, Any]) -> None:
    schema = schema_of(written)
    topic = names(written).removesuffix(".Envelope")
    view = hand_made_view(dict(dict(schema.fields)["after"].fields))

    assert schema_json(envelope_schema(view, change_spec(topic), Modes())) == dump(written)


@pytest.mark.parametrize("written", [each for each in SCHEMAS if each["name"].endswith(".Key")], ids=names)
def test_the_key_is_debeziums(written: dict[str, Any]) -> None:
    fields = dict(schema_of(written).fields)
    view = hand_made_view(fields, key=list(fields))
    topic = names(written).removesuffix(".Key")

    assert schema_json(key_schema(view, change_spec(topic), Modes())) == dump(written)


@pytest.mark.parametrize("written", [each for each in SCHEMAS if "odd-name" not in each["name"]], ids=names)
def test_a_schema_with_names_that_avro_takes_is_an_avro_schema(written: dict[str, Any]) -> None:
    fastavro.parse_schema(avro_schema(schema_of(written)))
