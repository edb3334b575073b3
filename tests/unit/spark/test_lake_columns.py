"""The steps by which a lake's table follows the columns of a MySQL table."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    TimestampNTZType,
)

from incsnap.spark.common_types import holds
from incsnap.spark.lake_columns import NamesSwapped, NotFollowed, Steps, StreamColumns, steps
from incsnap.tasks.described_rows import Alteration


def columns(**types: DataType) -> StreamColumns:
    return StreamColumns(tuple(StructField(name, type_) for name, type_ in types.items()))


def lake(*names: str) -> dict[str, StructField]:
    return {name.lower(): StructField(name, IntegerType()) for name in names}


def of(names: str, present: str, brought: str, origins: dict[str, str | None] | None) -> Steps:
    """Return the steps for columns of one type. Names have blanks between them."""
    stream = columns(**dict.fromkeys(names.split(), IntegerType()))
    return steps(stream, lake(*present.split()), tuple(brought.split()), Alteration("id", "ALTER", origins))


def test_columns_come_and_go_and_are_renamed() -> None:
    needed = of("id cost x", "id price raw mine", "id price raw", {"cost": "price", "x": None})

    assert needed.dropped == ["raw"]
    assert needed.renamed == [("price", "cost")]
    assert [each.name for each in needed.added] == ["x"]
    assert [each.name for each in needed.new] == ["x"]
    assert needed.columns == ("id", "cost", "x")


@pytest.mark.parametrize(
    ("present", "dropped", "renamed", "added"),
    [
        ("id a b", ["b"], [("a", "b")], ["x"]),
        ("id a", [], [("a", "b")], ["x"]),
        ("id b", [], [], ["x"]),
        ("id b x", [], [], []),
    ],
)
def test_steps_that_were_done_before_a_crash_are_left_out(
    present: str, dropped: list[str], renamed: list[tuple[str, str]], added: list[str]
) -> None:
    needed = of("id b x", present, "id a b", {"b": "a", "x": None})

    assert (needed.dropped, needed.renamed, [each.name for each in needed.added]) == (dropped, renamed, added)
    # The DEFAULT is written again: the crash may have been before it.
    assert [each.name for each in needed.new] == ["x"]


EMAIL: dict[str, str | None] = {"old_email": "email", "email": "new_email"}


@pytest.mark.parametrize("present", ["id email new_email", "id new_email email"])
@pytest.mark.parametrize("names", ["id email old_email", "id old_email email"])
def test_a_column_is_renamed_once_its_new_name_is_free(names: str, present: str) -> None:
    needed = of(names, present, present, EMAIL)

    assert needed.renamed == [("email", "old_email"), ("new_email", "email")]
    assert (needed.dropped, needed.added, needed.new) == ([], [], [])


def test_a_column_that_was_renamed_before_a_crash_is_told_apart_from_a_new_one_of_its_name() -> None:
    done: list[tuple[str, str, dict[str, str | None]]] = [
        # What the crash has kept from being recorded is seen from the names in the lake.
        ("id old_email new_email", "id email new_email", EMAIL),
        ("id old_email email", "id new_email old_email", {"email": "new_email"}),
    ]
    for present, brought, origins in done:
        needed = of("id old_email email", present, brought, origins)
        assert len([*needed.were_renamed, *needed.renamed]) == len(origins)
        assert len(needed.were_renamed) == 1
        assert (needed.dropped, needed.added, needed.new) == ([], [], [])
    needed = of("id b a", "id b a", "id b", {"a": None})
    assert (needed.dropped, needed.renamed, [each.name for each in needed.new]) == ([], [], ["a"])


def test_a_column_that_is_dropped_and_added_again_begins_anew() -> None:
    needed = of("id x", "id x", "id x", {"x": None})

    assert (needed.dropped, [each.name for each in needed.added], [each.name for each in needed.new]) == (
        ["x"],
        ["x"],
        ["x"],
    )


def test_without_a_statement_no_column_is_dropped() -> None:
    needed = steps(columns(id=IntegerType(), y=IntegerType()), lake("id", "x"), ("id", "x"), None)

    assert needed.dropped == []
    assert [each.name for each in needed.added] == ["y"]
    assert needed.columns == ("id", "y", "x")


def test_letter_case_makes_no_difference() -> None:
    needed = of("ID Price", "id price", "id price", {})

    assert (needed.dropped, needed.renamed, needed.added, needed.new) == ([], [], [], [])


def test_columns_that_may_be_renamed_are_refused() -> None:
    with pytest.raises(NotFollowed, match="columns a may be b under new names"):
        of("id b", "id a", "id a", None)

    assert of("id", "id a", "id a", None).dropped == ["a"]
    assert [each.name for each in of("id a b", "id a", "id a", None).added] == ["b"]
    # The user has changed the lake's table by hand.
    assert of("id b", "id b", "id a", None).dropped == []


def test_an_unknown_alteration_keeps_a_column_of_the_same_name() -> None:
    """pt-online-schema-change copies the values of a column that is dropped and added again."""
    anew = Alteration("id", "ALTER TABLE t DROP a, ADD a INT DEFAULT 5", None, {"a": "5"})
    needed = steps(columns(id=IntegerType(), a=IntegerType()), lake("id", "a"), ("id", "a"), anew)

    assert (needed.dropped, needed.added, needed.new) == ([], [], [])


def test_behind_an_unknown_alteration_only_a_column_with_a_default_of_a_statement_is_new() -> None:
    stream = columns(**dict.fromkeys(("id", "x", "y", "z"), IntegerType()))
    unknown = Alteration("id", "ALTER", None, {"y": "6", "z": "7"})

    needed = steps(stream, lake("id", "z"), ("id", "z"), unknown)

    assert [each.name for each in needed.added] == ["x", "y"]
    assert [each.name for each in needed.new] == ["y"]


def test_a_swap_of_two_names_is_refused() -> None:
    with pytest.raises(NotFollowed, match="another column has in the lake"):
        of("id a b", "id a b", "id a b", {"a": "b", "b": "a"})


def test_only_a_name_that_a_column_of_the_users_has_can_be_freed_by_hand() -> None:
    cases: list[tuple[str, str, str, dict[str, str | None], type[NotFollowed]]] = [
        ("id a b", "id a b", "id a b", {"a": "b", "b": "a"}, NamesSwapped),
        ("id a b c", "id a b c", "id a b c", {"a": "b", "b": "c", "c": "a"}, NamesSwapped),
        ("id a", "id b a", "id b", {"a": "b"}, NotFollowed),
        ("id a c", "id a b c", "id a b", {"a": "b", "c": "a"}, NotFollowed),
    ]
    for names, present, brought, origins, error in cases:
        with pytest.raises(NotFollowed) as refused:
            of(names, present, brought, origins)
        assert type(refused.value) is error


@pytest.mark.parametrize(
    ("present", "target", "expected"),
    [
        (IntegerType(), ShortType(), True),
        (IntegerType(), LongType(), False),
        (ByteType(), ByteType(), True),
        (DoubleType(), FloatType(), True),
        (FloatType(), DoubleType(), False),
        (DecimalType(9, 2), DecimalType(8, 2), True),
        (DecimalType(9, 2), DecimalType(9, 3), False),
        (DecimalType(12, 2), IntegerType(), True),
        (DecimalType(11, 2), IntegerType(), False),
        (DecimalType(38, 2), DoubleType(), False),
        (StringType(), IntegerType(), False),
        (DateType(), TimestampNTZType(), False),
    ],
)
def test_a_type_holds_another(present: DataType, target: DataType, expected: bool) -> None:
    assert holds(present, target) == expected
