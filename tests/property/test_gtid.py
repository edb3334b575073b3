"""A test of I1: GTID sets are sets. They are compared with Python's own sets of (uuid, tag, number)."""

from __future__ import annotations

from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from incsnap.gtid import GtidSet, Interval, Source

SOURCES: list[Source] = [
    ("3e11fa47-71ca-11e1-9e33-c80aa9429562", ""),
    ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "orders"),
    ("ffffffff-0000-4000-8000-000000000001", ""),
]
Plain = set[tuple[Source, int]]

intervals = st.tuples(st.integers(1, 12), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))
parts = st.dictionaries(st.sampled_from(SOURCES), st.lists(intervals, max_size=4))


def plain(by_source: dict[Source, list[Interval]]) -> Plain:
    return {
        (source, number)
        for source, spans in by_source.items()
        for first, last in spans
        for number in range(first, last + 1)
    }


def members(gtids: GtidSet) -> Plain:
    return plain({source: list(spans) for source, spans in gtids})


@given(a=parts, b=parts)
def test_union_difference_and_containment_are_those_of_sets(
    a: dict[Source, list[Interval]], b: dict[Source, list[Interval]]
) -> None:
    left, right = GtidSet(a), GtidSet(b)

    assert members(left | right) == plain(a) | plain(b)
    assert members(left - right) == plain(a) - plain(b)
    assert (left <= right) == (plain(a) <= plain(b))
    assert (left == right) == (plain(a) == plain(b))
    assert bool(left) == bool(plain(a))


@given(a=parts, b=parts)
def test_the_laws_that_watermarks_rely_on(a: dict[Source, list[Interval]], b: dict[Source, list[Interval]]) -> None:
    left, right = GtidSet(a), GtidSet(b)

    assert left <= left | right
    assert (left | right) - right <= left
    assert not members(left - right) & members(right)
    assert left | right == right | left
    assert (left - right) | (right - left) | (left - (left - right)) == left | right


@given(a=parts, upper=st.booleans(), separator=st.sampled_from([",", ",\n", ", ", ",\r\n"]))
def test_text_gives_the_same_set_whatever_its_case_order_and_line_breaks(
    a: dict[Source, list[Interval]], upper: bool, separator: str
) -> None:
    gtids = GtidSet(a)
    words = str(gtids).split(",")
    text = separator.join(reversed(words))

    assert GtidSet.parse(text.upper() if upper else text) == gtids
    assert hash(GtidSet.parse(text)) == hash(gtids)


@given(a=parts, b=parts)
def test_a_set_is_the_union_of_its_transactions_and_contains_each(
    a: dict[Source, list[Interval]], b: dict[Source, list[Interval]]
) -> None:
    added = sorted(plain(b))
    singly = [GtidSet({source: [(number, number)]}) for source, number in added]

    assert reduce(or_, singly, GtidSet(a)) == GtidSet(a) | GtidSet(b)
    assert all(gtid in GtidSet(a) | GtidSet(b) for gtid in added)
    assert all((gtid in GtidSet(a)) == (gtid in plain(a)) for gtid in added)
