"""Tests of I7: an offset survives dump and load, and anything else is refused with its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incsnap.errors import OffsetError
from incsnap.events import PreparedXa, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Range, Release, Request, Scan, SnapshotContext
from incsnap.snapshot.dataclass_json import to_json
from incsnap.snapshot.notifications import Notification
from incsnap.snapshot.offset import VERSION, Offset, TopicLayout
from incsnap.snapshot.throttle import Bound, Throttle
from incsnap.snapshot.window import ChunkResult, Window
from incsnap.tables import TableId

text = st.text(max_size=6)
count = st.integers(0, 2**63 - 1)
keys = st.lists(st.none() | text, min_size=1, max_size=3).map(tuple)
tables = st.builds(TableId, text, text)
results = st.builds(ChunkResult, count, count, st.floats(0, 1e6), text, count, text, text, text, count, count)
windows = st.builds(
    Window,
    *(text, count, tables, text, st.none() | keys, keys, count, count, count, count, count),
    *(st.none() | results, count, count, st.booleans(), count),
)
releases = st.builds(Release, windows, count)
requests = st.builds(Request, text, st.builds(DataCollection, tables, text, text))
ranges = st.builds(Range, st.none() | keys, keys, count, count, count, count, count, st.booleans())


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


scans = st.builds(
    Scan,
    number=count,
    request=requests,
    chunk_rows=count,
    columns=some(text),
    index=text,
    fingerprint=text,
    described=st.booleans(),
    maximum=st.none() | keys,
    boundary=st.none() | keys,
    again=some(ranges),
    quarantine=some(ranges),
    rows_read=count,
    failures=count,
    attempt=count,
    not_before_ms=count,
)
notifications = st.builds(Notification, text, text, count, some(st.tuples(text, text)))
contexts = st.builds(
    SnapshotContext,
    queue=some(requests),
    scans=some(scans),
    planned=some(windows),
    held=some(windows),
    released=some(releases),
    dropped=some(text),
    notifications=some(notifications),
    paused=st.booleans(),
    recent=some(text),
    scans_begun=count,
    paused_by=text,
    throttle=st.builds(Throttle, some(st.builds(Bound, text, count, text)), count),
)
streams = st.builds(
    StreamPosition,
    st.just(GtidSet.parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tag:3")),
    text,
    count,
    st.sampled_from(["", "3e11fa47-71ca-11e1-9e33-c80aa9429562:6"]),
    count,
    text,
)
offsets = st.builds(
    Offset,
    text,
    count,
    streams,
    st.builds(TopicLayout, count, st.dictionaries(text, count, max_size=3)),
    contexts,
    st.dictionaries(text, st.none() | count | text | st.dictionaries(text, count, max_size=2), max_size=2),
    prepared=some(st.builds(PreparedXa, text, text, text, some(text), text)),
    form=text,
    defaults=text,
)


@given(offset=offsets)
def test_an_offset_survives_dump_json_and_load(offset: Offset) -> None:
    assert Offset.load(json.loads(json.dumps(offset.dump()))) == offset


@given(offset=offsets, version=st.integers(VERSION + 1, 99) | st.none() | st.just("1") | st.just(True) | st.just(0))
def test_another_version_is_refused_by_name(offset: Offset, version: object) -> None:
    with pytest.raises(OffsetError, match="version"):
        Offset.load({**offset.dump(), "version": version})


@given(offset=offsets, data=st.data())
def test_a_damaged_offset_is_refused_and_never_guessed(offset: Offset, data: st.DataObject) -> None:
    document = json.loads(json.dumps(offset.dump()))
    name = data.draw(st.sampled_from(["job_id", "batch", "stream", "layout", "snapshot", "signal_positions"]))
    document[name] = data.draw(st.sampled_from([None, [], "x" if name != "job_id" else 3, {"unknown": 1}]))
    if name == "signal_positions" and isinstance(document[name], dict):
        return

    with pytest.raises(OffsetError):
        Offset.load(document)


def test_an_offset_of_another_program_is_refused() -> None:
    with pytest.raises(OffsetError, match="not an offset of incsnap"):
        Offset.load({"version": 1, "file": "binlog.000001"})


def _asked(*conditions: str) -> Offset:
    collections = [DataCollection(TableId("db", f"t{number}"), text) for number, text in enumerate(conditions)]
    requests = tuple(Request("s", collection) for collection in collections)
    context = SnapshotContext(queue=requests[1:], scans=(Scan(1, requests[0], 100),))
    return Offset("job", 1, StreamPosition(GtidSet.parse(""), "", 0), TopicLayout(1), context)


def test_a_condition_of_many_tables_is_written_once() -> None:
    condition = "x = '" + "long " * 1_000 + "'"
    dumped = json.dumps(_asked(*[condition] * 500, "y = 1").dump())

    assert dumped.count("long long") == 1_000 // 2
    assert Offset.load(json.loads(dumped)) == _asked(*[condition] * 500, "y = 1")


def test_an_offset_of_version_2_has_its_conditions_where_they_are_used() -> None:
    offset = _asked("x = 1", "", "x = 1")
    older = {**offset.dump(), "version": 2, "snapshot": to_json(SnapshotContext, offset.snapshot)}

    assert Offset.load(json.loads(json.dumps(older))) == offset


def test_an_offset_of_version_3_has_no_limit_and_no_name_of_who_paused_it() -> None:
    offset = _asked("", "x = 1")

    assert Offset.load(json.loads(json.dumps({**offset.dump(), "version": 3}))) == offset
