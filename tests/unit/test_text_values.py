"""What the text protocol prints, parsed as whole columns, against slow, plain Python."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.errors import UnsupportedType
from incsnap.tables import Column, TableId
from incsnap.types.column_type import describe

TABLE = TableId("shop", "orders")
EPOCH = dt.date(1970, 1, 1)


def parsed(column: Column, texts: Sequence[str | None]) -> list[Any]:
    """Of a slice, with one value more before it, so that offsets do not begin at 0."""
    type_ = describe(column, TABLE)
    raw = pa.array([None if t is None else t.encode() for t in [*texts[:1], *texts]], pa.binary()).slice(
        1 if texts else 0
    )
    array = type_.from_text(raw)
    assert array.type == type_.arrow
    array.validate(full=True)
    values: list[Any] = array.to_pylist()
    return values


@given(st.lists(st.none() | st.dates(min_value=dt.date(1, 1, 1))))
def test_dates_are_days(values: list[dt.date | None]) -> None:
    texts = [None if v is None else v.isoformat() for v in values]
    assert parsed(Column("c", "date"), texts) == [None if v is None else (v - EPOCH).days for v in values]


@pytest.mark.parametrize("text", ["0000-00-00", "2024-00-10", "2024-10-00", "0000-10-10", "2023-02-29", "2024-04-31"])
def test_zero_partly_zero_and_impossible_dates_are_null(text: str) -> None:
    assert parsed(Column("c", "date"), [text, "2024-02-29"]) == [None, 19782]
    assert parsed(Column("c", "datetime", fraction=2), [text + " 00:00:00.00"]) == [None]


@given(st.lists(st.none() | st.datetimes()), st.integers(0, 6))
def test_datetimes_are_microseconds(values: list[dt.datetime | None], fraction: int) -> None:
    texts: list[str | None] = []
    expected: list[int | None] = []
    for value in values:
        if value is None:
            texts.append(None)
            expected.append(None)
            continue
        step = 10 ** (6 - fraction)
        value = value.replace(microsecond=value.microsecond // step * step)
        text = value.isoformat(sep=" ", timespec="microseconds")
        texts.append(text[: 20 + fraction] if fraction else text[:19])
        expected.append((value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1))
    for type_ in ("datetime", "timestamp"):
        assert parsed(Column("c", type_, fraction=fraction), texts) == expected


LONGEST = (838 * 3600 + 59 * 60 + 59) * 10**6


@given(st.lists(st.none() | st.integers(-LONGEST, LONGEST)), st.integers(0, 6))
def test_times_are_signed_microseconds(values: list[int | None], fraction: int) -> None:
    step = 10 ** (6 - fraction)
    values = [None if v is None else (abs(v) // step * step) * (1 if v >= 0 else -1) for v in values]
    texts: list[str | None] = []
    for value in values:
        if value is None:
            texts.append(None)
            continue
        seconds, micros = divmod(abs(value), 10**6)
        text = f"{'-' if value < 0 else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        texts.append(text + (f".{micros:06d}"[: fraction + 1] if fraction else ""))
    assert parsed(Column("c", "time", fraction=fraction), texts) == values


@pytest.mark.parametrize(("precision", "scale"), [(1, 0), (4, 4), (12, 2), (18, 6), (19, 3), (38, 0), (65, 30)])
def test_decimals_are_exact(precision: int, scale: int) -> None:
    most = 10**precision - 1

    @given(st.lists(st.none() | st.integers(-most, most)))
    def compare(values: list[int | None]) -> None:
        texts: list[str | None] = []
        for value in values:
            digits = None if value is None else str(abs(value)).rjust(scale + 1, "0")
            if digits is None or value is None:
                texts.append(None)
                continue
            sign = "-" if value < 0 else ""
            texts.append(sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits))
        with decimal.localcontext(decimal.Context(prec=80)):
            expected = [None if v is None else Decimal(v).scaleb(-scale) for v in values]
            assert parsed(Column("c", "decimal", precision=precision, scale=scale), texts) == expected

    compare()


def test_numbers_of_zerofill_columns_have_leading_zeros() -> None:
    assert parsed(Column("c", "int", unsigned=True), ["00042", "00000", None]) == [42, 0, None]
    assert parsed(Column("c", "decimal", precision=6, scale=2), ["0042.50"]) == [Decimal("42.50")]
    assert parsed(Column("c", "year"), ["0000", "2024"]) == [0, 2024]


def test_unsigned_bigints_use_all_64_bits() -> None:
    assert parsed(Column("c", "bigint", unsigned=True), [str(2**64 - 1), "0", None]) == [2**64 - 1, 0, None]


def test_floats_are_selected_as_doubles_so_that_no_digit_is_lost() -> None:
    type_ = describe(Column("c", "float"), TABLE)
    assert type_.select("`c`") == "(`c` * 1e0)"
    assert describe(Column("c", "int"), TABLE).select("`c`") == "`c`"
    assert parsed(Column("c", "float"), ["0.10000000149011612", "-0", "3.4028234663852886e38"]) == [
        0.10000000149011612,
        0.0,
        3.4028234663852886e38,
    ]


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab ,:"\\é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='k "\\'), inner),
    max_leaves=10,
)


@given(st.lists(documents))
def test_json_loses_the_blanks_outside_strings_only(values: list[Any]) -> None:
    printed = [json.dumps(v, ensure_ascii=False) for v in values]
    compact = [json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in values]
    assert parsed(Column("c", "json"), [*printed, None]) == [*compact, None]


CHARSETS = {"varchar": "utf8mb4", "blob": "binary"}
TYPES = [
    "int",
    "decimal",
    "float",
    "double",
    "varchar",
    "blob",
    "json",
    "date",
    "time",
    "datetime",
    "timestamp",
    "year",
]


@pytest.mark.parametrize(
    "column",
    [Column("c", type_, charset=CHARSETS.get(type_, ""), precision=10, scale=2, fraction=2) for type_ in TYPES],
    ids=lambda column: column.type,
)
def test_a_column_of_nulls_and_a_column_of_nothing(column: Column) -> None:
    assert parsed(column, [None, None]) == [None, None]
    assert parsed(column, []) == []


@pytest.mark.parametrize(
    "column",
    [
        Column("flags", "time (format before MySQL 5.6)"),
        Column("flags", "set"),
        Column("flags", "varchar", charset="x"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name_with_a_way_out(column: Column) -> None:
    with pytest.raises(UnsupportedType, match=r"shop\.orders: column flags") as caught:
        describe(column, TABLE)
    assert "table.exclude.list" in caught.value.hint
