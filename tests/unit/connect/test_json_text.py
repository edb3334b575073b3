"""Escaping of whole columns."""

from __future__ import annotations

import json
import tracemalloc
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from incsnap.connect import json_text
from incsnap.connect.json_text import escape

texts = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])))


@given(texts, st.integers(0, 3))
def test_text_reads_back_as_it_was(values: list[str | None], slice_by: int) -> None:
    array = pa.array([*values[:1] * slice_by, *values], pa.string()).slice(slice_by if values else 0)
    escaped = json_text.strings(array).complete().to_pylist()
    assert [text if text is None else json.loads(text) for text in escaped] == values


def test_only_what_json_demands_is_escaped_and_as_jackson_does_it() -> None:
    text = '\x00\x01\x07\b\t\n\x0b\f\r\x1f "\\/\x7fé\u2028\U0001f600'
    expected = '\\u0000\\u0001\\u0007\\b\\t\\n\\u000B\\f\\r\\u001F \\"\\\\/\x7fé\u2028\\uD83D\\uDE00'
    assert escape(pa.array(["plain", text, None, "", text])).to_pylist() == ["plain", expected, None, "", expected]


@given(texts, st.integers(4, 12))
def test_a_text_is_escaped_alike_in_stretches_of_any_length(values: list[str | None], stretch: int) -> None:
    whole = escape(pa.array(values, pa.string())).to_pylist()
    with mock.patch.object(json_text, "_STRETCH", stretch):
        assert escape(pa.array(values, pa.string())).to_pylist() == whole


def test_escaping_a_long_text_takes_little_more_than_what_comes_of_it() -> None:
    text = pa.array(["\n" * (4 << 20)])
    tracemalloc.start()
    try:
        escaped = escape(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert escaped.nbytes > 2 * (4 << 20)
    # What NumPy holds: the 8 MB that come out, the 4 that go in, as a mask, and the vectors of one stretch (192 without
    # stretches).
    assert peak < 40 << 20
