"""Texts that a TimestampConverter reads, as Java's SimpleDateFormat reads them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incsnap.connect.schema import Schema
from incsnap.envelope.timestamps import convert, converted_schema
from incsnap.errors import ConfigError, ValueRefused
from incsnap.transforms.record_spec import ConvertTimestamp

_TEXT = Schema("string", optional=True)


def _read(text: str, pattern: str) -> str:
    """Return the time that the text means, in one form."""
    to_unix = ConvertTimestamp("f", "unix", pattern)
    to_text = ConvertTimestamp("f", "string", "yyyy-MM-dd HH:mm:ss.SSS")
    millis = convert(pa.array([text, None]), _TEXT, to_unix)
    written, null = convert(millis, Schema("int64", optional=True), to_text).to_pylist()
    assert null is None
    return str(written)


@pytest.mark.parametrize(
    ("text", "pattern", "time"),
    [
        ("2020-01-02", "yyyy-MM-dd", "2020-01-02 00:00:00.000"),
        ("2020-01-02T03:04:05Z", "yyyy-MM-dd", "2020-01-02 00:00:00.000"),
        ("2020-1-2", "yyyy-MM-dd", "2020-01-02 00:00:00.000"),
        ("2020-01-02 3:4:5.6", "yyyy-MM-dd HH:mm:ss.SSS", "2020-01-02 03:04:05.006"),
        ("2020-01-02 03:04:05.123456", "yyyy-MM-dd HH:mm:ss", "2020-01-02 03:04:05.000"),
        ("20200102", "yyyyMMdd", "2020-01-02 00:00:00.000"),
        ("202001021", "yyyyMMdd", "2020-01-21 00:00:00.000"),
        ("2020-01-02T03:04:05Z", "yyyy-MM-dd'T'HH:mm:ssX", "2020-01-02 03:04:05.000"),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, pattern: str, time: str) -> None:
    assert _read(text, pattern) == time


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("02.01.2020", "yyyy-MM-dd"), (" at 2020-01-02", "yyyy-MM-dd"), ("202011", "yyyyMMdd"), ("2020", "yyyy-MM-dd")],
)
def test_a_text_of_another_form_is_refused(text: str, pattern: str) -> None:
    with pytest.raises(ValueRefused, match="cannot read"):
        _read(text, pattern)


@pytest.mark.parametrize("pattern", ["yy-MM-dd", "d.M.y"])
def test_years_of_two_digits_are_written_and_not_read(pattern: str) -> None:
    edit = ConvertTimestamp("f", "Timestamp", pattern)
    with pytest.raises(ConfigError, match="the century of two digits") as refused:
        converted_schema(_TEXT, edit, "d.t.f")
    assert "Write yyyy" in refused.value.hint
    assert converted_schema(Schema("int64"), ConvertTimestamp("f", "string", pattern), "d.t.f").type == "string"
