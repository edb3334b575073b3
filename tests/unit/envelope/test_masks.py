"""Values changed on their way out: cut, replaced by asterisks, hashed."""

from __future__ import annotations

import hashlib
from typing import Any

import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.masks import Transform, cut, declared_length, masked
from incsnap.errors import IncsnapError
from incsnap.tables import Column

NAME = Column("name", "varchar", length=400, charset="utf8mb4")


def _texts(*values: str | None) -> Any:
    return pa.array(values, pa.string())


def _apply(column: Column, transform: Transform, *values: str | None) -> list[str | None]:
    mask = masked(column, transform)
    assert mask is not None
    result: list[str | None] = mask.apply(_texts(*values)).to_pylist()
    return result


@pytest.mark.parametrize(
    ("kind", "algorithm", "hello", "world"),
    [
        # What MaskStringsTest of Debezium 3.6.1 expects of these inputs.
        (
            "hash",
            "SHA-256",
            "af5843a0f0e728ab0332c8888b6e1190bfb79e584f0d40538de8f10df6ef29c6",
            "4588e1f2dcdc7fefc1515d3acd5acb9033478eace68286f383c337b9ff4464a3",
        ),
        ("hash", "MD5", "46f48a7a5ea32efba87cbff49d46d35a", "030f632140d9c9591b0d8c21098024b8"),
        (
            "hash_v2",
            "SHA-256",
            "cd31b3b98ece60cb739c0bf770b2de892ae0ad133f645513c3d83f08757a843a",
            "e84ac3142870113ddc6710c06f76421befc8e8ca6de64e98d2993ed8d41f4085",
        ),
        ("hash_v2", "MD5", "06decc8b095724f80103712c235586be", "172c8e95398cc72ab5358ead6981e7e5"),
    ],
)
def test_both_versions_of_the_hash_are_debeziums(kind: str, algorithm: str, hello: str, world: str) -> None:
    transform = Transform(kind, algorithm=algorithm, salt="salt")

    assert _apply(NAME, transform, "hello", None, "world", "hello") == [hello, None, world, hello]


@pytest.mark.parametrize(
    ("text", "serialized"),
    [
        # AC ED 00 05, then 74 and the length in two bytes, or 7C and in eight, then modified UTF-8.
        ("a\0b", b"\xac\xed\x00\x05t\x00\x04a\xc0\x80b"),
        ("é", b"\xac\xed\x00\x05t\x00\x02\xc3\xa9"),
        ("😀", b"\xac\xed\x00\x05t\x00\x06\xed\xa0\xbd\xed\xb8\x80"),
        ("", b"\xac\xed\x00\x05t\x00\x00"),
        ("x" * 65535, b"\xac\xed\x00\x05t\xff\xff" + b"x" * 65535),
        ("x" * 65536, b"\xac\xed\x00\x05|\x00\x00\x00\x00\x00\x01\x00\x00" + b"x" * 65536),
    ],
)
def test_the_first_hash_goes_over_a_serialized_java_string(text: str, serialized: bytes) -> None:
    column = Column("note", "longtext", charset="utf8mb4")
    expected = hashlib.sha256(b"s" + serialized).hexdigest()

    assert _apply(column, Transform("hash", algorithm="SHA-256", salt="s"), text) == [expected]


def test_a_hash_is_cut_to_the_characters_of_its_column() -> None:
    transform = Transform("hash_v2", algorithm="MD5", salt="salt")
    whole = "06decc8b095724f80103712c235586be"

    assert _apply(Column("c", "varchar", length=48, charset="utf8mb4"), transform, "hello") == [whole[:12]]
    assert _apply(Column("c", "varchar", length=12, charset="latin1"), transform, "hello") == [whole[:12]]
    assert _apply(Column("c", "text", charset="utf8mb4"), transform, "hello") == [whole]
    assert _apply(Column("c", "enum", values=("hello", "a")), transform, "hello") == ["0"]
    assert _apply(Column("c", "set", values=("hello", "a")), transform, "hello") == ["06d"]


def test_asterisks_replace_null_too() -> None:
    assert _apply(NAME, Transform("mask", 3), "secret", None, "") == ["***", "***", "***"]
    assert _apply(NAME, Transform("mask", 0), "secret", None) == ["", ""]


def test_more_asterisks_than_fit_a_column_are_an_error_and_no_crash() -> None:
    with pytest.raises(IncsnapError, match="2 GiB"):
        _apply(NAME, Transform("mask", 2**31 - 1), "a", "b")


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (0, ["", "", None, ""]),
        (1, ["a", "é", None, "a"]),
        (2, ["ab", "éü", None, "a"]),
        (3, ["abc", "éü", None, "a😀"]),
        (9, ["abcdef", "éü", None, "a😀b"]),
    ],
)
def test_texts_are_cut_by_utf16_units_and_never_within_a_character(length: int, expected: list[str | None]) -> None:
    assert cut(_texts("abcdef", "éü", None, "a😀b"), length).to_pylist() == expected


def test_texts_of_the_basic_plane_and_slices_are_cut_alike() -> None:
    whole = _texts("zzzz", "größe", None, "x", "zzzz")

    assert cut(whole.slice(1, 3), 3).to_pylist() == ["grö", None, "x"]
    assert cut(whole.slice(1, 3), 50).to_pylist() == ["größe", None, "x"]
    assert cut(pa.nulls(2, pa.string()), 1).to_pylist() == [None, None]


def test_bytes_are_cut_by_bytes() -> None:
    assert cut(pa.array([b"\xff\x00\x01", None, b"a"], pa.binary()), 2).to_pylist() == [b"\xff\x00", None, b"a"]


def test_a_column_that_is_never_too_long_is_not_cut() -> None:
    assert masked(NAME, Transform("truncate", 100)) is None
    mask = masked(NAME, Transform("truncate", 99))
    assert mask is not None
    assert mask.parameter == ("truncateLength", "99")


def test_masks_change_characters_only_but_mark_every_schema() -> None:
    for kind, changed in (("char", True), ("longtext", True), ("enum", True), ("set", True), ("json", False)):
        mask = masked(Column("c", kind, charset="utf8mb4"), Transform("mask", 3))
        assert mask is not None
        assert mask.parameter == ("masked", "true")
        assert mask.touches(Schema("string")) is changed
    number = masked(Column("c", "int"), Transform("hash", algorithm="MD5", salt="s"))
    assert number is not None
    assert not number.touches(Schema("int32"))


def test_cutting_touches_strings_and_bytes_whatever_their_column() -> None:
    mask = masked(Column("c", "decimal", precision=10, scale=2), Transform("truncate", 3))
    assert mask is not None
    assert mask.touches(Schema("string"))
    assert mask.touches(Schema("bytes"))
    assert not mask.touches(Schema("bytes", name="org.apache.kafka.connect.data.Decimal"))
    assert not mask.touches(Schema("float64"))


@pytest.mark.parametrize(
    ("column", "length"),
    [
        (Column("c", "varchar", length=40, charset="utf8mb4"), 10),
        (Column("c", "char", length=30, charset="utf8mb3"), 10),
        (Column("c", "varchar", length=20, charset="gbk"), 10),
        (Column("c", "varchar", length=7, charset="koi8r"), 7),
        (Column("c", "char", length=0, charset="latin1"), 10),
        (Column("c", "varbinary", length=16, charset="binary"), 16),
        (Column("c", "enum", values=("a", "b")), 1),
        (Column("c", "set", values=("a", "b", "c")), 5),
        (Column("c", "decimal", precision=12, scale=2), 12),
        (Column("c", "datetime", fraction=6), 6),
        (Column("c", "datetime"), -1),
        (Column("c", "int"), -1),
        (Column("c", "json"), -1),
        (Column("c", "longblob", charset="binary"), -1),
    ],
)
def test_the_length_of_a_column_is_what_debezium_reads_from_its_definition(column: Column, length: int) -> None:
    assert declared_length(column) == length
