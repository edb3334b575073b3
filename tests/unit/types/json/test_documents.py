"""JSON columns: both sources give the same compact text, which goes out as a string."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.tables import Column
from tests.support.binary_json import binary
from tests.support.column_values import decoded, default_of, encoded, parsed, schema_of

JSON = Column("c", "json")
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab ,:"\\é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='k "\\'), inner),
    max_leaves=10,
)


@given(st.lists(documents))
def test_json_loses_the_blanks_outside_strings_only(values: list[Any]) -> None:
    printed = [json.dumps(v, ensure_ascii=False) for v in values]
    compact = [json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in values]
    assert parsed(JSON, [*printed, None]) == [*compact, None]


def test_the_binlogs_document_is_the_same_text() -> None:
    assert decoded(JSON, [binary({"a": [1, "x y"]}), None, b""], meta=4) == ['{"a":[1,"x y"]}', None, "null"]
    with pytest.raises(ValueError, match="damaged JSON"):
        decoded(JSON, [b"\x0d"], meta=4)


def test_a_json_document_is_a_string_that_holds_it() -> None:
    document = '{"a":"x y","b":[1,2.50]}'
    assert encoded(JSON, [document, None]) == [document, None]
    assert schema_of(JSON) == ("string", "Json", {})
    assert default_of(JSON, '{"a": 1}') == '{"a":1}'
