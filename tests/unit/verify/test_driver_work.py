"""The work of a comparison on the driver: all of it counts for the share of a core, and its memory has a bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from incsnap.binlog.slices import IN_SLICE, Slice, SliceTransactions
from incsnap.columns.arrow import RecordBatch
from incsnap.config.load import from_properties
from incsnap.envelope.records import MARKS
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.tables import TableId
from incsnap.verify import both_sides, changed_keys, topic_side, whole_tables
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.changed_keys import ChangedKeys, TooManyChanges
from incsnap.verify.kept_sides import RECORDS, KeptSides
from incsnap.verify.progress import Progress
from incsnap.verify.proof import Events, LastRecord, Low, RowPlace, TopicKey
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.sampling import ALL_KEYS, Sample
from incsnap.verify.side_blocks import BlockFacts
from incsnap.verify.topic_side import TOPIC_RECORDS, PartitionPart
from incsnap.verify.whole_tables import WholeTables
from tests.support.properties import NEEDED

_SETTINGS = from_properties(NEEDED).settings
_CLIENT = ClientSettings("k:9092")
_TOPIC, _ID = "shop.shop.orders", TableId("shop", "orders")
_TABLE = cast(
    "Any",
    SimpleNamespace(
        shape=SimpleNamespace(id=_ID, columns=()), topic=_TOPIC, partitions=1, form=RecordForm(True, False, False)
    ),
)
_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_LOW = Low(GtidSet(), RowPlace(1, 4))
_END = StreamPosition(GtidSet(), "binlog.000001", 100)
_KEYS = [b'{"id":%d}' % number for number in range(40)]


class CountingAllowance:
    """An allowance that names what ran in `work`, and what ran outside."""

    steps = Allowance.steps

    def __init__(self) -> None:
        self.worked: set[str] = set()
        self.outside: set[str] = set()
        self._works = False

    def go_on(self) -> None:
        pass

    @contextmanager
    def work(self) -> Iterator[None]:
        assert not self._works, "work inside of work would count twice"
        self._works = True
        try:
            yield
        finally:
            self._works = False

    def note(self, name: str) -> None:
        """Note that `name` runs now."""
        (self.worked if self._works else self.outside).add(name)


class BinlogInMemory:
    """A tail with one event, which has a row of each of `_KEYS`."""

    def __init__(self, allowance: CountingAllowance) -> None:
        self._allowance = allowance

    def advance(self, *arguments: object, **limits: object) -> object:
        self._allowance.note("reading the binlog")
        return SimpleNamespace(end=_END, changes=(), unnamed=())

    def slices(self, *arguments: object) -> list[Slice]:
        transactions = np.zeros(1, IN_SLICE)
        transactions["transaction"]["number"] = 1
        owners = SliceTransactions(transactions, ((_SERVER, ""),), ("binlog.000001",))
        return [Slice(bytes(30), np.array([0, 30]), np.array([50]), np.array([30], np.uint8), owners)]

    def forget(self, end: StreamPosition) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def allowance(monkeypatch: pytest.MonkeyPatch) -> CountingAllowance:
    """An allowance, and servers in memory that note for it when they are read."""
    counting = CountingAllowance()

    def blocks(*arguments: object) -> Iterator[tuple[int, str, None, RecordBatch]]:
        counting.note("decoding the binlog")
        marks = [{"op": 0, "ts_us": 0, "gtid": f"{_SERVER}:1", "event": 0, "row": 0} for _ in _KEYS]
        columns = {"key": pa.array(_KEYS, pa.binary()), "marks": pa.array(marks, MARKS)}
        yield 0, _TOPIC, None, pa.RecordBatch.from_pydict(columns)

    def parts(*arguments: object) -> Iterator[RecordBatch]:
        for _ in range(2):
            counting.note("decoding records")
            yield pa.RecordBatch.from_pylist([], TOPIC_RECORDS)

    def rows(connection: object, settings: object, table: object, keys: Sequence[TopicKey]) -> list[Any]:
        counting.note(f"reading {len(keys)} rows")
        return [(key, b"{}", 0) for key in keys]

    def noting(name: str, result: object) -> Any:
        def called(*arguments: object, **options: object) -> object:
            counting.note(name)
            return result

        return called

    monkeypatch.setattr(changed_keys, "charsets", lambda connection: {})
    monkeypatch.setattr(changed_keys, "Tail", lambda *arguments: BinlogInMemory(counting))
    monkeypatch.setattr(changed_keys, "change_blocks", blocks)
    marks = SimpleNamespace(server_uuid=lambda connection: _SERVER, high_watermark=lambda connection: (_END.file, 100))
    monkeypatch.setattr(both_sides, "watermarks", marks)
    monkeypatch.setattr(both_sides, "admin_client", lambda client: None)
    monkeypatch.setattr(both_sides, "partition_counts", lambda admin, counts: counts)
    monkeypatch.setattr(both_sides, "topic_ends", lambda client, counts: {(_TOPIC, 0): 9})
    monkeypatch.setattr(both_sides, "read_parts", parts)
    monkeypatch.setattr(both_sides, "read_by_keys", rows)
    monkeypatch.setattr(both_sides, "note_records", noting("noting records", None))
    monkeypatch.setattr(both_sides, "note_places", noting("noting places", None))
    monkeypatch.setattr(both_sides, "record_within", noting("reading the next record", 8))
    compared = SimpleNamespace(add=noting("comparing", None))
    monkeypatch.setattr(whole_tables, "ComparedSides", lambda *arguments: compared)
    monkeypatch.setattr(whole_tables, "offsets_of", noting("looking for offsets", np.array([1])))
    monkeypatch.setattr(whole_tables, "note_records", noting("noting chosen records", None))
    return counting


def live_sides(allowance: CountingAllowance) -> LiveSides:
    no_evidence = cast("Any", SimpleNamespace(shown=lambda: ()))
    limits = cast("Any", allowance)
    sides = LiveSides(cast("Any", None), _SETTINGS, _CLIENT, {_TOPIC: [_TABLE]}, no_evidence, limits)
    sides.ends = {(_TOPIC, 0): 0}
    sides._executed = _LOW
    return sides


def events(allowance: CountingAllowance, keys: Sequence[TopicKey] | None, sample: Sample = ALL_KEYS) -> Events:
    changed = ChangedKeys(cast("Any", None), _SETTINGS, {_ID: _TABLE}, cast("Any", allowance))
    return changed.events(_LOW, _LOW.end, (_END.file, _END.pos), keys, sample)


def test_a_round_of_keys_reads_both_sides_and_the_binlog_as_work(allowance: CountingAllowance) -> None:
    sides = live_sides(allowance)
    keys = [(_TOPIC, key) for key in _KEYS]
    sides.select(keys)
    sides.topic(keys)
    sides.events(_LOW, _LOW.end, sides.high(), keys)
    sides.is_followed(_TOPIC, LastRecord(None, 0, 3))

    assert allowance.outside == set()
    assert allowance.worked == {
        "reading 40 rows",
        "decoding records",
        "noting records",
        "noting places",
        "reading the binlog",
        "decoding the binlog",
        "reading the next record",
    }


def test_many_rows_are_read_in_steps_with_a_rest_behind_each(allowance: CountingAllowance) -> None:
    keys = [(_TOPIC, b"%d" % number) for number in range(25_000)]
    rows = live_sides(allowance).select(keys)

    assert set(rows) == set(keys)
    assert (allowance.worked, allowance.outside) == ({"reading 10000 rows", "reading 5000 rows"}, set())


def test_whole_tables_are_compared_and_their_chosen_records_are_noted_as_work(
    allowance: CountingAllowance, tmp_path: Path
) -> None:
    @contextmanager
    def block(side: str, number: int) -> Iterator[tuple[None, None]]:
        yield None, None

    spark = cast("Any", SimpleNamespace(sparkContext=None))
    sides = cast("KeptSides", SimpleNamespace(seed=1, block=block))
    whole = WholeTables(spark, _SETTINGS, [_TABLE], sides, ALL_KEYS, cast("Any", allowance), Progress())
    record = {"topic": _TOPIC, "key": _KEYS[0], "partition": 0, "offset": 1, "time": 0}
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, TOPIC_RECORDS) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([record], TOPIC_RECORDS))
    whole._jobs = cast("Any", SimpleNamespace(run=lambda *arguments: [(0, stream.getvalue().to_pybytes())]))
    whole._parts = [PartitionPart(_TOPIC, 0, 0, 9)]
    whole._facts = {(RECORDS, 0): BlockFacts(count=1)}
    whole._compared(_TOPIC)
    whole.histories(_CLIENT, [(_TOPIC, _KEYS[0])])

    assert allowance.worked == {"comparing", "looking for offsets", "noting chosen records"}
    assert allowance.outside == set()


@pytest.mark.parametrize("number", [0, 3])
def test_changes_of_keys_outside_the_sample_are_not_kept(allowance: CountingAllowance, number: int) -> None:
    sample = Sample(4, number)
    chosen = {
        (_TOPIC, key) for key, is_in in zip(_KEYS, sample.has(pa.array(_KEYS, pa.binary())), strict=True) if is_in
    }
    noted = events(allowance, None, sample)

    assert 0 < len(chosen) < len(_KEYS)
    assert set(noted.changed) == chosen
    assert set(noted.last) == chosen
    # The number of a row in its event counts the other rows too.
    assert {key: place.row for key, place in noted.last.items()} == {key: _KEYS.index(key[1]) for key in chosen}


def test_keys_that_are_asked_for_are_kept_and_no_others(allowance: CountingAllowance) -> None:
    asked = (_TOPIC, _KEYS[7])

    assert set(events(allowance, [asked, (_TOPIC, b"{}")]).last) == {asked}


def test_too_many_changed_keys_are_an_error_that_names_the_topic(
    allowance: CountingAllowance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_keys, "MOST_KEYS", len(_KEYS))
    assert len(events(allowance, None).changed) == len(_KEYS)
    monkeypatch.setattr(changed_keys, "MOST_KEYS", len(_KEYS) - 1)
    with pytest.raises(TooManyChanges, match=r"More than 39 keys changed .* 40 of the keys are in shop\.shop\.orders"):
        events(allowance, None)
    # Keys that are asked for have their own bound.
    assert len(events(allowance, [(_TOPIC, key) for key in _KEYS]).last) == len(_KEYS)


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_a_long_rest_behind_records_is_no_silence_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(topic_side, "time", clock)
    monkeypatch.setattr(topic_side, "_TOGETHER", 1)
    messages = [SimpleNamespace(error=lambda: None, offset=lambda number=number: number) for number in range(3)]
    left = [[message] for message in messages]
    consumer = cast("Any", SimpleNamespace(consume=lambda most, timeout: left.pop(0)))
    taken = []
    for some in topic_side._messages(consumer, PartitionPart(_TOPIC, 0, 0, 3)):
        taken += some
        clock.now += 1_000
    assert taken == messages


def test_a_long_rest_behind_the_binlog_is_no_silence_of_the_server(
    allowance: CountingAllowance, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(changed_keys, "time", clock)
    middle = StreamPosition(GtidSet(), _END.file, 50)
    ends = [middle, middle, _END]

    class Resting(BinlogInMemory):
        def advance(self, *arguments: object, **limits: object) -> object:
            return SimpleNamespace(end=ends.pop(0), changes=(), unnamed=())

        def forget(self, end: StreamPosition) -> None:
            clock.now += 1_000 if end is middle and len(ends) == 2 else 0

    monkeypatch.setattr(changed_keys, "Tail", lambda *arguments: Resting(allowance))
    assert len(events(allowance, None).changed) == len(_KEYS)
    assert not ends
