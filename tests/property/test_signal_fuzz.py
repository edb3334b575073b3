"""A test of I10: whatever arrives as a signal, reading it never raises, and a bad signal changes nothing."""

from __future__ import annotations

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from signals.channels.file import record_of
from signals.condition import condition_problem
from signals.parse import parse
from signals.records import InvalidSignal, Signal, SignalRecord
from signals.regex import java_pattern
from signals.resolve import resolve

_TYPES = st.sampled_from(
    ["execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "incsnap-throttle", "log", "x"]
)
_KEYS = st.sampled_from(
    [
        "type",
        "data-collections",
        "additional-conditions",
        "data-collection",
        "filter",
        "surrogate-key",
        "message",
        "rows-per-second",
    ]
)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("incremental")
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)


@given(_TYPES | st.text() | st.none(), _VALUES | st.text() | st.binary(), st.text() | st.none())
@example("execute-snapshot", '{"data-collections":["(?P<a>x)(?P<a>y)"]}', None)
@example("execute-snapshot", '{"data-collections":["a{4294967296}"]}', None)
@example("execute-snapshot", '{"data-collections":["(?u)a"]}', None)
@example("execute-snapshot", '{"data-collections":["(?iu)größe"]}', None)
@example("execute-snapshot", '{"data-collections":["\\ud800"]}', None)
def test_no_record_makes_parse_raise(kind: str | None, data: object, name: str | None) -> None:
    signal = parse(SignalRecord(name, kind, data, "kafka", "1"))
    assert signal.id
    if isinstance(signal, InvalidSignal):
        assert signal.reason
        assert signal.hint
    if isinstance(signal, Signal):
        resolve(signal.data_collections, ["a.b", "c.d"])


@given(st.binary(max_size=80) | _VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_message_makes_the_channel_raise(value: bytes) -> None:
    signal = parse(record_of(value, "7", "kafka"))
    assert signal.id


@given(st.text(alphabet="ab'\"`()\\-#/*; ", max_size=30))
def test_an_accepted_filter_never_closes_a_parenthesis_it_did_not_open(sql: str) -> None:
    if condition_problem(sql) is None:
        rest = re.sub(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`", "", sql, flags=re.S)
        depth = 0
        for mark in rest:
            depth += (mark == "(") - (mark == ")")
            assert depth >= 0
        assert depth == 0
        assert not set(rest) & set("'\"`;#")


@given(st.text(max_size=30))
def test_a_quoted_literal_matches_itself_alone(text: str) -> None:
    if "\\E" not in text:
        assert java_pattern(f"\\Q{text}\\E").fullmatch(text)
