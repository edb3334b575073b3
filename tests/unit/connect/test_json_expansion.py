"""Tests of JSON texts as structs. The golden tests (`outbox-expanded`) compare most cases with Debezium."""

from __future__ import annotations

import pytest

from incsnap.connect.json_expansion import NotExpandedError, expanded
from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema


def written(text: str, *, keep_nulls: bool = False) -> str:
    return expanded(text, "p", keep_nulls=keep_nulls)[1]


def test_fields_are_structs_by_their_path_and_all_are_optional() -> None:
    schema, _ = expanded('{"a": {"b": [{"c": 1}]}, "n": null}', "p", keep_nulls=True)
    leaf = Schema("struct", True, "p.a.b", fields=(("c", Schema("int32", True)),))
    inner = Schema("struct", True, "p.a", fields=(("b", Schema("array", True, items=leaf)),))
    assert schema == Schema("struct", True, "p", fields=(("a", inner), ("n", Schema("bytes", True))))


def test_numbers_are_of_the_smallest_type_that_debezium_gives_them() -> None:
    schema, text = expanded('{"i": -2147483648, "l": 2147483648, "d": 1e2}', "p", keep_nulls=False)
    assert [inner.type for _, inner in schema.fields] == ["int32", "int64", "float64"]
    assert text == '{"i":-2147483648,"l":2147483648,"d":100.0}'


def test_a_field_that_nothing_tells_the_type_of_is_left_out() -> None:
    assert written('{"a": null, "b": [], "c": {}}') == '{"c":{}}'
    assert written('{"a": null, "b": [], "c": {}}', keep_nulls=True) == '{"a":null,"c":{}}'


def test_objects_of_one_array_have_the_fields_of_all() -> None:
    assert written('{"a": [{"x": 1}, null, {"y": {"z": []}}]}') == '{"a":[{"x":1,"y":null},null,{"x":null,"y":{}}]}'
    # Debezium keeps the fields of whichever object its hash set gives it first.
    assert written('{"a": [{"x": {"y": 1}}, {"x": {"z": [{}]}}, {"x": {"z": [{"w": 2}]}}]}') == (
        '{"a":[{"x":{"y":1,"z":null}},{"x":{"y":null,"z":[{"w":null}]}},{"x":{"y":null,"z":[{"w":2}]}}]}'
    )


def test_structs_that_differ_are_required_as_debezium_has_it_unless_there_is_a_null() -> None:
    def items(text: str) -> bool:
        [(_, array)] = expanded(text, "p", keep_nulls=False)[0].fields
        assert array.items is not None
        return array.items.optional

    assert items('{"a": [{"x": 1}, {"x": 2}]}')
    assert not items('{"a": [{"x": 1}, {}]}')
    assert items('{"a": [{"x": 1}, {}, null]}')


def test_texts_are_escaped_as_jackson_does_it_and_half_a_character_is_kept() -> None:
    assert written(r'{"a": "\u001f\u0000\/\"\\ é😀\ud83d"}') == r'{"a":"\u001F\u0000/\"\\ é\uD83D\uDE00\uD83D"}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        " {}",
        "[]",
        '[{"a": 1}]',
        "{",
        '{"a": NaN}',
        '{"a": 1e400}',
        '{"a": 9223372036854775808}',
        '{"": 1}',
        r'{"\ud83d": 1}',
        '{"a": [1, 2.5]}',
        '{"a": [null]}',
        '{"a": [[1], ["x"]]}',
        '{"a": [{"x": 1}, {"x": "s"}]}',
        '{"a": [{"x": 1}, {"x": 3000000000}]}',
        '{"a": [{"x": [1]}, {"x": {}}]}',
        '{"a":' * 5000 + "1" + "}" * 5000,
    ],
    ids=lambda text: text[:30],
)
def test_what_has_no_form_as_a_struct_says_so(text: str) -> None:
    with pytest.raises(NotExpandedError):
        expanded(text, "p", keep_nulls=False)


def test_schemas_of_payloads_are_written() -> None:
    schema, _ = expanded('{"é\\"": 1}', "p", keep_nulls=False)
    assert schema_json(schema) == (
        r'{"type":"struct","fields":[{"type":"int32","optional":true,"field":"é\""}],"optional":true,"name":"p"}'
    )
