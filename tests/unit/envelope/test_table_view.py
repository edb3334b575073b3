"""Tests of the view of a table: the columns, names and keys that are written, and contradicting settings."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.masks import Transform
from incsnap.envelope.table_view import ViewField, view_of
from incsnap.errors import ConfigError
from incsnap.tables import Column, Declared, SourceType, TableId, TableShape
from incsnap.types.modes import Modes

TABLE = TableId("shop", "People")
SHAPE = TableShape(
    TABLE,
    (
        Column("id", "int", nullable=False),
        Column("name", "varchar", length=80, charset="utf8mb4"),
        Column("photo", "blob", charset="binary"),
        Column("e-mail", "varchar", length=240, charset="utf8mb4"),
        Column("place", "polar_coordinates"),
    ),
    key=(0,),
)
COLUMNS: list[Any] = [
    pa.array([1, 2], pa.int64()),
    pa.array(['Ann "A"', None], pa.string()),
    pa.array([b"\x00\x01\x02\x03", b""], pa.binary()),
    pa.array(["a@x", "b@x"], pa.string()),
    None,
]
NO_PLACE = (r".*\.place",)


def _names(fields: tuple[ViewField, ...]) -> list[str]:
    return [field.name for field in fields]


def _rules(*rules: tuple[str, str, Transform], **others: Any) -> ColumnRules:
    transforms = tuple(TransformRule(setting, (pattern,), transform) for setting, pattern, transform in rules)
    return ColumnRules(transforms=transforms, **others)


def _field(rules: ColumnRules, name: str) -> ViewField:
    return next(field for field in view_of(SHAPE, rules).fields if field.name == name)


def test_without_rules_all_is_written_as_it_is() -> None:
    view = view_of(SHAPE, ColumnRules())

    assert _names(view.fields) == ["id", "name", "photo", "e-mail", "place"]
    assert _names(view.key) == ["id"]
    assert view.needed == {0, 1, 2, 3, 4}
    assert view.key_is_identity
    assert all(field.masked is None for field in (*view.fields, *view.key))


def test_patterns_match_whole_names_in_any_letter_case() -> None:
    assert _names(view_of(SHAPE, ColumnRules(include=("SHOP.people.(ID|name)", "shop.People.pho"))).fields) == [
        "id",
        "name",
    ]
    assert _names(view_of(SHAPE, ColumnRules(exclude=(r".*\.PEOPLE\.p.*",))).fields) == ["id", "name", "e-mail"]


def test_a_key_column_that_is_left_out_of_the_row_stays_in_the_key() -> None:
    view = view_of(SHAPE, ColumnRules(include=("shop.people.name",)))

    assert _names(view.fields) == ["name"]
    assert _names(view.key) == ["id"]
    assert view.needed == {0, 1}
    assert view.key_is_identity


def test_a_column_left_out_is_not_read_and_may_be_of_any_type() -> None:
    view = view_of(SHAPE, ColumnRules(exclude=NO_PLACE))

    assert view.needed == {0, 1, 2, 3}
    assert [len(field.encode(COLUMNS, Modes()).text) for field in view.fields] == [2, 2, 2, 2]


def test_a_view_may_be_empty() -> None:
    view = view_of(replace(SHAPE, key=()), ColumnRules(exclude=(".*",)))

    assert view.fields == view.key == ()
    assert view.needed == {0}, "one column tells how many rows there are"


def test_the_message_key_has_the_order_of_its_setting() -> None:
    rules = ColumnRules(keys=(("shop.people", ("name", "ID")), (r"shop\.P.*", ("e.mail",)), ("x.y", ("z",))))
    view = view_of(SHAPE, rules)

    assert _names(view.key) == ["name", "id", "e-mail"]
    assert view.identity == (0,)
    assert not view.key_is_identity


def test_a_part_of_a_message_key_may_match_several_columns_in_the_order_of_the_table() -> None:
    assert _names(view_of(SHAPE, ColumnRules(keys=(("(.*).people", ("e-mail", "p.*|name")),))).key) == [
        "e-mail",
        "photo",
        "place",
    ]


def test_a_message_key_of_which_no_column_is_there_leaves_the_primary_key() -> None:
    assert _names(view_of(SHAPE, ColumnRules(keys=(("shop.people", ("nobody",)),))).key) == ["id"]


def test_a_message_key_stands_outside_filters_and_masks() -> None:
    rules = _rules(
        ("column.mask.with.3.chars", ".*name", Transform("mask", 3)),
        exclude=(r".*\.e-mail", *NO_PLACE),
        keys=(("shop.people", ("e-mail", "name")),),
    )
    view = view_of(SHAPE, rules)

    assert _names(view.fields) == ["id", "name", "photo"]
    assert [field.connect(COLUMNS, Modes()).to_pylist() for field in view.key] == [["a@x", "b@x"], ['Ann "A"', None]]
    assert view.needed == {0, 1, 2, 3}


def test_a_message_key_that_names_a_column_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"message\.key\.columns puts shop\.People\.name into the key twice"):
        view_of(SHAPE, ColumnRules(keys=(("shop.people", ("name", "n.*")),)))


@pytest.mark.parametrize(
    ("column", "serves"),
    [
        (Column("k", "bigint", unsigned=True), True),
        (Column("k", "varchar", length=40, charset="utf8mb4"), True),
        (Column("k", "timestamp", fraction=6), True),
        (Column("k", "time", fraction=3), True),
        (Column("k", "time", fraction=4), False),
        (Column("k", "decimal", precision=20), False),
        (Column("k", "datetime"), False),
        (Column("k", "date"), False),
    ],
)
def test_a_key_that_a_mode_may_round_does_not_serve_de_duplication(column: Column, serves: bool) -> None:
    shape = TableShape(TABLE, (Column("a", "int"), column), key=(1, 0))

    assert view_of(shape, ColumnRules()).key_is_identity is serves


def test_a_message_key_of_the_primary_keys_columns_identifies_rows_in_any_order() -> None:
    shape = TableShape(TABLE, (Column("a", "int"), Column("b", "int"), Column("c", "int")), key=(0, 1))

    assert view_of(shape, ColumnRules(keys=(("shop.people", ("b", "a")),))).key_is_identity
    assert not view_of(shape, ColumnRules(keys=(("shop.people", ("a",)),))).key_is_identity
    assert not view_of(shape, ColumnRules(keys=(("shop.people", ("a", "b", "c")),))).key_is_identity


def test_names_of_fields_are_adjusted_in_keys_too_and_keep_the_key_an_identity() -> None:
    shape = replace(SHAPE, key=(3,))
    view = view_of(shape, ColumnRules(field_names="avro_unicode", exclude=NO_PLACE))

    assert _names(view.fields) == ["id", "name", "photo", "e_u002dmail"]
    assert _names(view.key) == ["e_u002dmail"]
    assert view.key_is_identity


def test_two_columns_that_would_get_one_name_are_refused() -> None:
    shape = TableShape(TABLE, (Column("a-b", "int"), Column("a_b", "int"), Column("a b", "int")))

    with pytest.raises(ConfigError, match=r"the columns a-b and a_b of shop\.People the same name a_b"):
        view_of(shape, ColumnRules(field_names="avro"))
    assert _names(
        view_of(shape, ColumnRules(field_names="avro", exclude=(".*a.b",), keys=(("s.*", ("a_b",)),))).key
    ) == ["a_b"]
    with pytest.raises(ConfigError, match="a_b and a b"):
        view_of(shape, ColumnRules(field_names="avro", exclude=(".*a.b",), keys=(("s.*", ("a_b", "a b")),)))


def test_masked_text_is_written_as_asterisks_and_marked_in_its_schema() -> None:
    field = _field(_rules(("column.mask.with.3.chars", ".*name", Transform("mask", 3))), "name")

    assert field.encode(COLUMNS, Modes()).complete().to_pylist() == ['"***"', '"***"']
    assert field.connect(COLUMNS, Modes()).to_pylist() == ["***", "***"]
    schema = field.schema(Modes())
    assert (schema.type, schema.optional, schema.parameters) == ("string", True, (("masked", "true"),))


def test_hashed_text_keeps_its_nulls() -> None:
    transform = Transform("hash_v2", algorithm="MD5", salt="salt")
    field = _field(_rules(("column.mask.hash.v2.MD5.with.salt.*", ".*name", transform)), "name")

    first, second = field.encode(COLUMNS, Modes()).complete().to_pylist()
    assert second is None
    assert len(first) == 22


@pytest.mark.parametrize(
    ("handling", "texts"), [("bytes", ['"AAE="', '""']), ("hex", ['"00"', '""']), ("base64", ['"AA"', '""'])]
)
def test_bytes_are_cut_after_the_mode_has_written_them(handling: str, texts: list[str]) -> None:
    field = _field(_rules(("column.truncate.to.2.chars", ".*photo", Transform("truncate", 2))), "photo")

    assert field.encode(COLUMNS, Modes(binary_handling=handling)).complete().to_pylist() == texts
    assert ("truncateLength", "2") in field.schema(Modes()).parameters


def test_numbers_are_marked_and_not_changed() -> None:
    field = _field(_rules(("column.mask.with.3.chars", ".*id", Transform("mask", 3))), "id")

    assert field.encode(COLUMNS, Modes()).text.to_pylist() == ["1", "2"]
    assert field.connect(COLUMNS, Modes()).to_pylist() == [1, 2]
    assert field.schema(Modes()).parameters == (("masked", "true"),)


def test_a_text_cut_is_escaped_after_cutting() -> None:
    field = _field(_rules(("column.truncate.to.5.chars", ".*name", Transform("truncate", 5))), "name")

    assert field.encode(COLUMNS, Modes()).complete().to_pylist() == ['"Ann \\""', None]


def test_two_settings_for_one_column_are_refused_by_name_without_the_salt() -> None:
    rules = _rules(
        ("column.mask.hash.MD5.with.salt.*", ".*name", Transform("hash", algorithm="MD5", salt="s3cret")),
        ("column.truncate.to.5.chars", "shop.*", Transform("truncate", 5)),
    )
    with pytest.raises(ConfigError) as raised:
        view_of(SHAPE, rules)
    assert "column.mask.hash.MD5.with.salt.* and column.truncate.to.5.chars both match shop.People.name" in str(
        raised.value
    )
    assert "s3cret" not in raised.value.message + raised.value.hint + repr(rules) + repr(
        rules.without_salts().transforms[0].transform.salt
    )


def test_a_column_that_is_left_out_may_be_matched_twice() -> None:
    rules = _rules(
        ("column.mask.with.3.chars", ".*name", Transform("mask", 3)),
        ("column.truncate.to.5.chars", ".*name", Transform("truncate", 5)),
        exclude=(".*name",),
    )
    assert "name" not in _names(view_of(SHAPE, rules).fields)


def test_views_are_made_once_and_pickle() -> None:
    rules = _rules(("column.mask.with.3.chars", ".*name", Transform("mask", 3)))

    assert view_of(SHAPE, rules) is view_of(SHAPE, pickle.loads(pickle.dumps(rules)))
    assert pickle.loads(pickle.dumps(view_of(SHAPE, rules))) == view_of(SHAPE, rules)


def test_in_a_table_without_a_key_the_message_key_tells_rows_apart() -> None:
    shape = TableShape(
        TableId("shop", "keyless"), (Column("a", "int"), Column("b", "decimal", precision=9), Column("c", "int"))
    )
    view = view_of(shape, ColumnRules(keys=(("shop.keyless", ("c", "b")),)))

    assert view.identity == (2, 1)
    assert not view.key_is_identity, "a DECIMAL may be rounded in the key"
    assert view_of(shape, ColumnRules()).identity == ()


TYPED = SHAPE.with_defaults(
    (
        Declared("id", "int", None, SourceType("INT UNSIGNED")),
        Declared("name", "varchar", "x", SourceType("VARCHAR", 20)),
        Declared("e-mail", "varchar", None, SourceType("VARCHAR", 60)),
        Declared("photo", "longblob", None, SourceType("LONGBLOB")),
    )
)

COMMENTED = replace(SHAPE, columns=(*SHAPE.columns[:4], Column("place", "point"))).with_defaults(
    (
        Declared("id", "int", None, SourceType("INT UNSIGNED"), "the key"),
        Declared("name", "varchar", "x", SourceType("VARCHAR", 20)),
        Declared("e-mail", "varchar", None, SourceType("VARCHAR", 60), "it''s"),
        Declared("place", "point", None, SourceType("POINT"), "where"),
    )
)


def _shown(rules: ColumnRules) -> dict[str, list[str]]:
    """The parameters of each field of a row that has any, their values in order."""
    modes = Modes()
    parameters = {
        field.name: dict(field.schema(modes).parameters)
        for field in view_of(TYPED, rules).fields
        if field.name != "place"
    }
    assert all(name.startswith("__debezium.source.column.") for each in parameters.values() for name in each)
    return {name: [*parameter.values()] for name, parameter in parameters.items() if parameter}


def test_schemas_of_columns_that_a_pattern_matches_show_how_they_were_defined() -> None:
    everything = _shown(ColumnRules(typed=(".*",)))
    assert everything == {
        "id": ["INT UNSIGNED", "id"],
        "name": ["VARCHAR", "20", "name"],
        "e-mail": ["VARCHAR", "60", "e-mail"],
    }
    assert _shown(ColumnRules(typed=(r"shop\.people\.NAME",))) == {"name": everything["name"]}
    assert _shown(ColumnRules(typed_as=(r"shop\.people\.int unsigned",))) == {"id": everything["id"]}
    assert _shown(ColumnRules(typed_as=(r".*\.INT",))) == {}
    assert _shown(ColumnRules(typed=(".*e-mail",), field_names="avro")) == {"e_mail": everything["e-mail"]}


def _documented(rules: ColumnRules) -> dict[str, str | None]:
    return {field.name: field.schema(Modes()).doc for field in view_of(COMMENTED, rules).fields}


def test_comments_of_columns_are_shown_where_they_are_wanted_and_of_keys_too() -> None:
    rules = ColumnRules(comments=True)
    assert _documented(rules) == {
        "id": "the key",
        "name": None,
        "e-mail": "it''s",
        "photo": None,
        "place": "Geometry (POINT)",
    }
    assert set(_documented(ColumnRules(typed=(".*",))).values()) == {None, "Geometry (POINT)"}
    assert [field.schema(Modes()).doc for field in view_of(COMMENTED, rules).key] == ["the key"]


def test_a_comment_stands_before_the_name_among_what_shows_how_a_column_was_defined() -> None:
    rules = ColumnRules(comments=True, typed=(".*",))
    fields = {field.name: dict(field.schema(Modes()).parameters) for field in view_of(COMMENTED, rules).fields}
    assert [*fields["e-mail"].values()] == ["VARCHAR", "60", "it''s", "e-mail"]
    assert [*fields["name"].values()] == ["VARCHAR", "20", "name"]


def test_a_column_whose_type_has_changed_is_not_shown() -> None:
    assert "photo" not in _shown(ColumnRules(typed=(".*photo",)))


def test_keys_do_not_show_how_their_columns_were_defined() -> None:
    [key] = view_of(TYPED, ColumnRules(typed=(".*",))).key
    assert key.schema(Modes()).parameters == ()


def test_a_mask_takes_the_place_of_the_definition_and_is_applied() -> None:
    hashed = ("column.mask.hash", ".*name", Transform("hash", algorithm="MD5", salt="s"))
    field = next(each for each in view_of(TYPED, _rules(hashed, typed=(".*",))).fields if each.name == "name")
    assert field.masked is not None
    assert not any("source.column" in name for name, _ in field.schema(Modes()).parameters)
