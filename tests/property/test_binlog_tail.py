"""Tests of the binlog's way to slices: for any blocks, cuts and broken connections, each event comes out once.

Three mutants must fail. One does not repeat the table maps after a cut. One does not skip the known events of the open
transaction. One puts the open transaction's GTID into the delivered set before its end. Mutants of the rules for XA
transactions are tests, at the end of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from incsnap.binlog.buffer_position import Cut
from incsnap.binlog.prepared import NotPrepared, PreparedTransactions
from incsnap.binlog.protocol import control_events as kinds
from incsnap.binlog.segments import Segment
from incsnap.binlog.slices import Slice
from incsnap.binlog.xa_transactions import XaTransactions
from incsnap.checkpoint import prepared_transactions as prepared_files
from incsnap.events import BinlogPosition, PreparedXa, StreamPosition
from incsnap.gtid import GtidSet, Interval, Source
from tests.property.hypothesis_random import RANDOMS
from tests.support.binlog_bytes import (
    BEGIN,
    DELETE,
    UPDATE,
    WRITE,
    XID,
    Binlog,
    Logged,
    compressed,
    map_body,
    query_body,
    rows_body,
    xa,
    xa_prepare,
)
from tests.support.parts_in_memory import Parts
from tests.support.stream_in_memory import START, Stream, contents_of, rows_of

Event = tuple[int, bytes]
#: Half as many again as for other properties, because there are many restarts, cuts and failovers.
_EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples * 3 // 2


def a_log(random: Random) -> tuple[Binlog, list[bytes]]:
    """Return a binlog with transactions of every kind, and the bodies of the rows events that must come out, in
    order."""
    log, expected = Binlog(checksum=random.random() < 0.8), list[bytes]()
    prepared: dict[str, list[bytes]] = {}
    for nth in range(random.randint(1, 12)):
        bodies: list[bytes] = []
        events: list[Event] = []
        for statement in range(random.randint(0, 4)):
            tables = random.sample([(80, "t"), (81, "u"), (82, "x1"), (83, "v")], random.randint(1, 3))
            events += [(kinds.TABLE_MAP, map_body(table_id, name, version=nth)) for table_id, name in tables]
            for row in range(random.randint(0, 4)):
                table_id, name = random.choice(tables)
                content = f"{nth} {statement} {row} ".encode() + bytes(random.randint(0, 300))
                body = rows_body(table_id, content)
                events.append((random.choice([WRITE, UPDATE, DELETE]), body))
                if name != "x1":
                    bodies.append(body)
        xid = f"{nth % 3:02}"
        if random.random() < 0.3 and xid not in prepared:
            one_phase = random.random() < 0.3
            events = [xa("START", xid), *events, xa("END", xid), xa_prepare(xid, one_phase=one_phase)]
            if one_phase:
                expected += bodies
            else:
                prepared[xid] = bodies
        else:
            events = [BEGIN, *events, random.choice([XID, (kinds.QUERY, query_body("COMMIT"))])]
            expected += bodies
        tag = random.choice(["", "", "", "app"])
        choice = random.random()
        if choice < 0.2:
            log.add([compressed(events, zstd=random.random() < 0.7)], tag)
        else:
            log.add(events, tag)
        if choice > 0.8:
            log.add(
                [(kinds.QUERY, query_body(random.choice(["ALTER TABLE t ADD x int", "TRUNCATE u", "GRANT a TO b"])))]
            )
        if choice > 0.9:
            log.rotate()
        if prepared and random.random() < 0.5:
            xid = random.choice(list(prepared))
            commits = random.random() < 0.7
            log.add([xa("COMMIT" if commits else "ROLLBACK", xid)], random.choice(["", "app"]))
            bodies = prepared.pop(xid)
            expected += bodies if commits else []
    return log, expected


def cut_at_random(random: Random, stream: bytes) -> list[bytes]:
    at, chunks = 0, []
    while at < len(stream):
        size = random.choice([1, 3, 10, 100, 1_000, 10_000])
        chunks.append(stream[at : at + size])
        at += size
    return chunks


def drained(stream: Stream, start: StreamPosition, random: Random) -> list[StreamPosition]:
    """Return the ends of batches with random limits until nothing is left. The first is `start`."""
    ends = [start]
    while True:
        end, cut = stream.cut(
            ends[-1],
            random.choice([1, 300, 2_000, 1 << 30]),
            random.choice([1, 3, 1 << 30]),
            inside=random.random() < 0.3,
        )
        if cut.end == cut.start:
            return ends
        assert not end.at < ends[-1].at
        ends.append(end)


def prepared_at(stream: Stream, end: StreamPosition) -> tuple[PreparedXa, ...]:
    """Return the prepared transactions that an offset would name at `end`."""
    first, last = stream.buffer.place_of(START), stream.buffer.place_of(end)
    assert first is not None
    assert last is not None
    return prepared_files.prepared_after((), stream.buffer.contents(first, last).marks, stream.prepared.keep)


def bodies(slices: list[Slice]) -> list[bytes]:
    return [body for _, _, _, body in rows_of(slices)]


@settings(max_examples=_EXAMPLES)
@given(RANDOMS)
def test_blocks_and_cuts_change_nothing(random: Random) -> None:
    log, expected = a_log(random)
    stream = Stream(checksum=log.checksum).feed(cut_at_random(random, b"".join(log.dump(GtidSet()))))
    ends = drained(stream, START, random)
    whole = stream.slices(START, ends[-1])
    assert bodies(whole) == expected
    assert ends[-1].at.file == log.file
    assert stream.buffer.newest.pos == log.pos
    cut = [one for a, b in pairwise(ends) for one in stream.slices(a, b, random.randint(1, 4))]
    assert rows_of(cut) == rows_of(whole)
    assert not ends[-1].open_gtid
    delivered = numbered((entry.source, entry.number) for entry in log.entries if not isinstance(entry, tuple))
    assert ends[-1].delivered == delivered


@settings(max_examples=_EXAMPLES)
@given(RANDOMS)
def test_a_restart_at_any_cut_gives_the_same_slices(random: Random) -> None:
    log, _ = a_log(random)
    store = Parts()
    prepared = PreparedTransactions(store, memory_bytes=random.choice([0, 500, 1 << 20]))
    stream = Stream(checksum=log.checksum, prepared=prepared)
    stream.feed(cut_at_random(random, b"".join(log.dump(GtidSet()))))
    ends = drained(stream, START, random)
    at = random.randrange(len(ends))
    start = StreamPosition.from_json(ends[at].to_json())
    known = PreparedTransactions(store, prepared_at(stream, ends[at]))
    again = Stream(start, checksum=log.checksum, prepared=known)
    again.feed(cut_at_random(random, b"".join(log.dump(start.delivered))))
    for end in ends[at:][:6]:
        parts = random.randint(1, 4)
        repeated = again.slices(start, StreamPosition.from_json(end.to_json()), parts)
        assert contents_of(repeated) == contents_of(stream.slices(ends[at], end, parts))
    last, _ = again.cut(start)
    while (following := again.cut(last)[0]) != last:
        last = following
    assert last.delivered == ends[-1].delivered
    assert not last.at < ends[-1].at


@settings(max_examples=_EXAMPLES)
@given(RANDOMS)
def test_a_connection_may_break_at_any_byte(random: Random) -> None:
    log, _ = a_log(random)
    undisturbed = Stream(checksum=log.checksum).feed([b"".join(log.dump(GtidSet()))])
    stream = Stream(checksum=log.checksum)
    position = START
    slices: list[Slice] = []
    for _ in range(random.randint(1, 4)):
        dump = b"".join(log.dump(stream.buffer.reached()))
        stream.feed(cut_at_random(random, dump[: random.randint(0, len(dump))]))
        if random.random() < 0.7:  # batches go out meanwhile, and delivered events are dropped
            for end in drained(stream, position, random)[1:]:
                slices += stream.slices(position, end, random.randint(1, 3))
                position = end
            if random.random() < 0.7:
                stream.buffer.forget(position)
            if random.random() < 0.5:
                stream.buffer._places.clear()  # as after a restart: places are found again by counting
        stream.connect(checksum=log.checksum)
    stream.feed([b"".join(log.dump(stream.buffer.reached()))])
    for end in drained(stream, position, random)[1:]:
        slices += stream.slices(position, end)
        position = end
    whole, _ = undisturbed.cut(START)
    assert rows_of(slices) == rows_of(undisturbed.slices(START, whole))
    assert position.delivered == whole.delivered


def copied(random: Random, log: Binlog) -> Binlog:
    """Return the same transactions as the binlog of another server, with other files and positions."""
    copy = Binlog(checksum=log.checksum, first_pos=random.randint(4, 5_000))
    for entry in log.entries:
        if isinstance(entry, Logged):
            copy.add(entry.events[1:], entry.source[1], entry.number)
            if random.random() < 0.2:
                copy.rotate()
    return copy


@settings(max_examples=_EXAMPLES)
@given(RANDOMS)
def test_after_a_failover_no_position_claims_what_was_not_delivered(random: Random) -> None:
    log, expected = a_log(random)
    logs = {"a": log, "b": copied(random, log)}
    server = "a"
    position = replace(START, server_uuid=server)
    stream = Stream(position, checksum=log.checksum)
    slices: list[Slice] = []
    for last in (False,) * random.randint(1, 5) + (True,):
        dump = b"".join(logs[server].dump(stream.buffer.reached()))
        stream.feed(cut_at_random(random, dump if last else dump[: random.randint(0, len(dump))]))
        if last or random.random() < 0.7:
            # whole transactions only: a transaction handed out in part needs its own server
            end, _ = stream.cut(position)
            assert claimed(logs[end.server_uuid], end) <= end.delivered
            slices += stream.slices(position, end, random.randint(1, 3))
            position = end
            if random.random() < 0.7:
                stream.buffer.forget(position)
            if random.random() < 0.5:
                stream.buffer._places.clear()
        if not last:
            server = random.choice(["a", "b"])
            stream.connect(checksum=log.checksum, server_uuid=server)
            place = stream.buffer.place_of(position)
            assert place is not None
            seen = stream.buffer.position_of(position, Cut(place, place, full=False))
            assert seen.delivered == position.delivered
            assert claimed(logs[seen.server_uuid], seen) <= position.delivered
    assert bodies(slices) == expected
    assert position.at == BinlogPosition(logs[server].file, logs[server].pos, server)


def claimed(log: Binlog, end: StreamPosition) -> GtidSet:
    """Return the GTIDs of the transactions that end at or before the position."""
    return numbered(
        (entry.source, entry.number)
        for entry in log.entries
        if isinstance(entry, Logged)
        and end.reached(entry.file, entry.begin + sum(len(one) - 5 for one in entry.packets))
    )


def numbered(transactions: Iterable[tuple[Source, int]]) -> GtidSet:
    numbers: dict[Source, list[Interval]] = {}
    for source, number in transactions:
        numbers.setdefault(source, []).append((number, number))
    return GtidSet(numbers)


# -- wrong rules


def rows_at_prepare(self: XaTransactions, _body: bytes, at: int) -> Iterator[Segment]:
    transaction = self._prepared.prepare()
    yield from self._rows(transaction, at)
    yield self._end(transaction, prepared=True)


WRONG: dict[str, tuple[object, str, Callable[..., object], Callable[..., None]]] = {
    "XA rows sent at XA PREPARE": (XaTransactions, "prepare", rows_at_prepare, test_blocks_and_cuts_change_nothing),
    "prepared transactions forgotten": (
        prepared_files,
        "prepared_after",
        lambda *_: (),
        test_a_restart_at_any_cut_gives_the_same_slices,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_without_this_rule_other_events_come_out(name: str) -> None:
    where, what, wrong, test = WRONG[name]
    run = test.hypothesis.inner_test  # type: ignore[attr-defined]
    # Seeds, because a failure need not be simplified: the first run that is disturbed is enough.
    for seed in range(100):
        run(Random(seed))
        with patch.object(where, what, wrong):
            try:
                run(Random(seed))
            except (AssertionError, NotPrepared):
                return
    raise AssertionError("no run was disturbed")
