"""Proto files of Connect schemas, in the form that Confluent's ProtobufConverter registers them."""

from __future__ import annotations

import pytest

from incsnap.connect.proto_names import scrubbed
from incsnap.connect.proto_schema import ProtoStyle, proto_text
from incsnap.connect.schema import Schema, decimal_schema
from incsnap.envelope.connect_envelope import SOURCE, envelope_schema, key_schema
from incsnap.envelope.control_schemas import NOTIFICATION_VALUE, SCHEMA_CHANGE_VALUE
from incsnap.errors import ConfigError
from incsnap.transforms.record_spec import change_spec
from incsnap.types.modes import Modes
from tests.support.hand_made_view import hand_made_view
from tests.support.proto_reader import message_class

_DEFAULT = ProtoStyle()
_CONNECT = "org.apache.kafka.connect.data."
_TEXT_OR_NULL = Schema("string", optional=True)
POINT = Schema("struct", optional=True, name="io.debezium.data.geometry.Point", fields=(("x", Schema("float64")),))


def text(*fields: tuple[str, Schema], name: str | None = "shop.Row", style: ProtoStyle = _DEFAULT) -> str:
    return proto_text(Schema("struct", name=name, fields=fields), style)


def test_an_envelope_has_the_topic_as_its_package_and_each_struct_once() -> None:
    view = hand_made_view({"id": Schema("int32"), "at": POINT, "to": POINT}, key=["id"])
    written = proto_text(envelope_schema(view, change_spec("pre.shop.orders"), Modes()), _DEFAULT)

    assert written.startswith(
        """syntax = "proto3";
package pre.shop.orders;

message Envelope {
  Value before = 1;
  Value after = 2;
  Source source = 3;
  block transaction = 4;
  string op = 5;
  int64 ts_ms = 6;
  int64 ts_us = 7;
  int64 ts_ns = 8;

  message Value {
    int32 id = 1;
    Point at = 2;
    Point to = 3;
"""
        # The converter indents empty lines too.
        "  \n"
        """    message Point {
      double x = 1;
    }
  }
  message Source {
    string version = 1;
"""
    )
    assert written.endswith(
        """    string query = 17;
  }
  message block {
    string id = 1;
    int64 total_order = 2;
    int64 data_collection_order = 3;
  }
}
"""
    )
    assert message_class(written).DESCRIPTOR.full_name == "pre.shop.orders.Envelope"


def test_a_key_is_a_message_of_the_topics_package() -> None:
    view = hand_made_view({"id": Schema("int64")}, key=["id"])
    assert proto_text(key_schema(view, change_spec("pre.shop.orders"), Modes()), _DEFAULT) == (
        'syntax = "proto3";\npackage pre.shop.orders;\n\nmessage Key {\n  int64 id = 1;\n}\n'
    )


def test_numbers_of_a_byte_or_two_have_their_type_as_a_parameter() -> None:
    assert text(("n", Schema("int16")), ("m", Schema("int8"))) == (
        """syntax = "proto3";
package shop;

message Row {
  int32 n = 1 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int16"
      }
    ]
  }];
  int32 m = 2 [(confluent.field_meta) = {
    params: [
      {
        key: "connect.type",
        value: "int8"
      }
    ]
  }];
}
"""
    )


def test_connects_logical_types_are_messages_of_files_that_registries_know() -> None:
    names = ("Date", "Time", "Timestamp")
    fields = [(name, Schema("int32", optional=True, name=_CONNECT + name)) for name in names]
    written = text(("price", decimal_schema(10, 2, optional=False)), *fields, ("other", decimal_schema(5, 0, True)))

    assert written == (
        """syntax = "proto3";
package shop;

import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "google/protobuf/timestamp.proto";

message Row {
  confluent.type.Decimal price = 1 [(confluent.field_meta) = {
    params: [
      {
        value: "10",
        key: "precision"
      },
      {
        value: "2",
        key: "scale"
      }
    ]
  }];
  google.type.Date Date = 2;
  google.type.TimeOfDay Time = 3;
  google.protobuf.Timestamp Timestamp = 4;
  confluent.type.Decimal other = 5 [(confluent.field_meta) = {
    params: [
      {
        value: "5",
        key: "precision"
      },
      {
        value: "0",
        key: "scale"
      }
    ]
  }];
}
"""
    )
    options = message_class(written).DESCRIPTOR.fields_by_name["price"].GetOptions()
    assert b"precision" in options.SerializeToString()


def lines(style: ProtoStyle) -> list[str]:
    written = text(
        ("a", Schema("int32", optional=True)),
        ("b", _TEXT_OR_NULL),
        ("c", Schema("int64")),
        ("d", POINT),
        ("e", Schema("array", optional=True, items=Schema("float32"))),
        ("f", Schema("int32", optional=True, name=f"{_CONNECT}Date")),
        style=style,
    )
    message_class(written)
    return [line.strip() for line in written.splitlines() if " = " in line and "syntax" not in line][:6]


def test_what_takes_null_has_the_form_that_the_options_choose() -> None:
    assert lines(_DEFAULT) == [
        *("int32 a = 1;", "string b = 2;", "int64 c = 3;", "Point d = 4;", "repeated float e = 5;"),
        "google.type.Date f = 6;",
    ]
    assert lines(ProtoStyle(optional=True)) == [
        *("optional int32 a = 1;", "optional string b = 2;", "int64 c = 3;", "optional Point d = 4;"),
        *("repeated float e = 5;", "optional google.type.Date f = 6;"),
    ]
    assert lines(ProtoStyle(wrapped=True)) == [
        *("google.protobuf.Int32Value a = 1;", "google.protobuf.StringValue b = 2;", "int64 c = 3;", "Point d = 4;"),
        *("repeated float e = 5;", "google.type.Date f = 6;"),
    ]


def test_maps_and_structs_without_a_name_are_numbered() -> None:
    written = proto_text(NOTIFICATION_VALUE, _DEFAULT)
    assert "  repeated ConnectDefault1Entry additional_data = 4;\n" in written
    assert "  message ConnectDefault1Entry {\n    string key = 1;\n    string value = 2;\n  }\n" in written
    nameless = text(("m", Schema("map", items=Schema("int64"))), name=None)
    assert nameless.startswith(
        'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  repeated ConnectDefault2Entry m = 1;'
    )
    for whole in (written, nameless, proto_text(SCHEMA_CHANGE_VALUE, _DEFAULT), proto_text(SOURCE, _DEFAULT)):
        message_class(whole)


def test_a_field_that_has_the_name_of_its_message_gives_the_message_another_name() -> None:
    written = text(("Point", POINT))
    assert "  PointMessage Point = 1;\n" in written
    message_class(written)


@pytest.mark.parametrize(
    ("name", "field", "setting"),
    [
        ("pre-1.shop.t.Key", "id", "schema.name.adjustment.mode"),
        ("pre.2nd.t.Key", "id", "schema.name.adjustment.mode"),
        ("pre.shop.t.Key", "e-mail", "field.name.adjustment.mode"),
    ],
)
def test_names_that_protobuf_does_not_allow_are_refused_with_what_to_set(name: str, field: str, setting: str) -> None:
    with pytest.raises(ConfigError, match="no name that Protobuf allows") as caught:
        text((field, Schema("int32")), name=name)
    assert f"{setting}=avro" in caught.value.hint
    assert "scrub.invalid.names=true" in caught.value.hint
    message_class(text((field, Schema("int32")), name=name, style=ProtoStyle(scrubbed=True)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain_1", "plain_1"),
        ("e-mail", "e_mail"),
        ("a b.c*d", "a_b_c_d"),
        ("größe", "gr_C3_B6_C3_9Fe"),
        ("~", "_7E"),
        ("2nd", "x2nd"),
        ("_hidden", "x_hidden"),
        ("", ""),
    ],
)
def test_scrubbed_names_have_letters_digits_and_underscores(name: str, expected: str) -> None:
    assert scrubbed(name) == expected


def test_what_would_have_one_name_twice_is_refused() -> None:
    other = Schema("struct", name="other.Point", fields=(("y", Schema("int32")),))
    with pytest.raises(ConfigError, match="two different structs the name Point"):
        text(("a", POINT), ("b", other))
    with pytest.raises(ConfigError, match="would use the name Point twice"):
        text(("a", POINT), ("Point", Schema("int32")))
    with pytest.raises(ConfigError, match="would use the name a_b twice"):
        text(("a-b", Schema("int32")), ("a b", Schema("int32")), style=ProtoStyle(scrubbed=True))


def test_a_list_of_lists_is_refused() -> None:
    with pytest.raises(ConfigError, match="a list of lists"):
        text(("a", Schema("array", items=Schema("array", items=Schema("int32")))))
