"""Tests of the written evidence of how far topics came: the place of a job, and the offset of a connector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from incsnap.columns.arrow import RecordBatch
from incsnap.errors import ServerUnreachable, SinkError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka import connect_offsets
from incsnap.kafka.announcements import Announcement, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets, KeptOffset
from incsnap.kafka.control import CommittedBatch
from incsnap.kafka.refusals import ClientError
from incsnap.snapshot.commands import DataCollection
from incsnap.snapshot.context import Request, SnapshotContext
from incsnap.snapshot.delivered_place import complete_place
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import Column, TableId, TableShape
from incsnap.takeover.java_writing import write_map
from incsnap.verify import both_sides, evidence
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.evidence import Evidence, connector_offsets
from incsnap.verify.proof import RowPlace
from incsnap.verify.record_reading import ROW, RecordForm
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import TOPIC_RECORDS, PartitionPart

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def position(batch: int) -> StreamPosition:
    """Return the end of a batch."""
    return StreamPosition(GtidSet.parse(f"{_SERVER}:1-{batch}"), "binlog.000001", 100 * batch, server_uuid=_SERVER)


def place(batch: int) -> dict[str, Any]:
    """Return what a job writes down about the end of a batch."""
    return complete_place(Offset("job", batch, position(batch), TopicLayout(2)), "choices")


class Log:
    """A log of announcements with one owner. `owner` may be an error."""

    def __init__(self, owner: Announcement | Exception | None) -> None:
        self._owner = owner

    def owner(self, seconds: float) -> Announcement | None:
        if isinstance(self._owner, Exception):
            raise self._owner
        return self._owner


def of_job(
    monkeypatch: pytest.MonkeyPatch,
    owner: Announcement | Exception | None,
    batches: Mapping[int, CommittedBatch] | Exception,
) -> list[StreamPosition]:
    """Return the evidence of a prefix without a connector. `batches`: what the buckets have committed last."""

    def recorded(client: ClientSettings, prefix: str, job: str, buckets: int) -> Mapping[int, CommittedBatch]:
        assert (prefix, job, buckets) == ("shop", "job", 2)
        if isinstance(batches, Exception):
            raise batches
        return batches

    monkeypatch.setattr(evidence, "AnnouncementLog", lambda client, prefix: Log(owner))
    monkeypatch.setattr(evidence, "recorded_batches", recorded)
    return list(Evidence(ClientSettings("k:9092"), "shop", None).shown())


_OWNER = Announcement(StartFacts("start", "job", place=place(3)), buckets=2)
_WITHOUT_PLACE = replace(_OWNER, facts=replace(_OWNER.facts, place=None))
_BATCHES = {number: CommittedBatch(batch, place=place(batch)) for number, batch in enumerate((9, 7))}


def test_a_job_has_delivered_what_its_slowest_bucket_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_job(monkeypatch, _OWNER, _BATCHES) == [position(7)]


@pytest.mark.parametrize(
    "batches",
    [
        # Nothing is known about a bucket without a record.
        {0: _BATCHES[0]},
        {},
        # The place of a long batch is not on the control topic.
        {**_BATCHES, 1: CommittedBatch(7)},
    ],
)
def test_without_the_place_of_the_slowest_bucket_the_beat_of_the_job_counts(
    batches: Mapping[int, CommittedBatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_job(monkeypatch, _OWNER, batches) == [position(3)]
    assert of_job(monkeypatch, _WITHOUT_PLACE, batches) == []


@pytest.mark.parametrize(
    ("owner", "batches"),
    [
        (None, _BATCHES),
        # The start has no job yet.
        (replace(_OWNER, facts=StartFacts("start", place=place(3))), _BATCHES),
        (ClientError(-185, "Kafka is away"), _BATCHES),
        (_OWNER, SinkError("Kafka is away")),
        # A newer release wrote the place.
        (_OWNER, {number: CommittedBatch(7, place={"new": 1}) for number in range(2)}),
    ],
)
def test_nothing_is_shown_without_a_job_or_if_its_words_cannot_be_read(
    owner: Announcement | Exception | None,
    batches: Mapping[int, CommittedBatch] | Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert of_job(monkeypatch, owner, batches) == []


# -- the connector

_CONTENT = {"file": "binlog.000007", "pos": 40, "gtids": f"{_SERVER}:1-5"}
_COMMITTED = StreamPosition(GtidSet.parse(f"{_SERVER}:1-5"), "binlog.000007", 40)


def of_connector(
    monkeypatch: pytest.MonkeyPatch, *kept: KeptOffset, name: str = "c", owner: Announcement | None = None
) -> list[StreamPosition]:
    """Return the evidence of a prefix beside a connector's topic of offsets. `name`: that of the connector."""

    def offsets(client: object, topic: str) -> Mapping[tuple[str, str], KeptOffset]:
        assert topic == "offsets"
        if not kept:
            raise ServerUnreachable("Kafka does not describe the topic")
        return {(each.connector, each.server): each for each in kept}

    monkeypatch.setattr(evidence, "AnnouncementLog", lambda client, prefix: Log(owner))
    monkeypatch.setattr(evidence, "recorded_batches", lambda *given: _BATCHES)
    monkeypatch.setattr(connect_offsets, "kept_offsets", offsets)
    return list(Evidence(ClientSettings("k:9092"), "shop", ConnectorOffsets(("offsets",), name)).shown())


def test_a_connector_has_delivered_what_it_has_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [KeptOffset("other", "shop", {**_CONTENT, "pos": 99}), KeptOffset("c", "other", {**_CONTENT, "pos": 98})]
    own = KeptOffset("c", "shop", _CONTENT)

    assert of_connector(monkeypatch, *others, own) == [_COMMITTED]
    assert of_connector(monkeypatch, others[1], own, name="") == [_COMMITTED]
    assert of_connector(monkeypatch, own, owner=_OWNER) == [position(7), _COMMITTED]
    without = KeptOffset("c", "shop", {"file": "binlog.000007", "pos": "40"})
    assert of_connector(monkeypatch, without) == [replace(_COMMITTED, delivered=GtidSet())]


@pytest.mark.parametrize(
    "kept",
    [
        (),
        (KeptOffset("c", "other", _CONTENT),),
        (KeptOffset("other", "shop", _CONTENT),),
        # The offset was deleted.
        (KeptOffset("c", "shop", None),),
        (KeptOffset("c", "shop", {**_CONTENT, "snapshot": True}),),
        (KeptOffset("c", "shop", {"gtids": ""}),),
        (KeptOffset("c", "shop", {**_CONTENT, "pos": "many"}),),
        (KeptOffset("c", "shop", {**_CONTENT, "gtids": "none"}),),
    ],
)
def test_a_connector_shows_nothing_without_an_offset_of_its_own_behind_its_snapshot(
    kept: tuple[KeptOffset, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_connector(monkeypatch, *kept) == []


def test_two_connectors_of_one_prefix_show_nothing_if_the_file_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [KeptOffset(name, "shop", _CONTENT) for name in ("c", "d")]

    assert of_connector(monkeypatch, *both, name="") == []
    assert of_connector(monkeypatch, *both) == [_COMMITTED]


@pytest.mark.parametrize(
    ("kept_as", "named_in", "expected"),
    [
        ("c", "worker", [_COMMITTED]),
        ("kafka", "worker", [_COMMITTED]),
        # The file of Debezium Server has the settings of both.
        ("kafka", "connector", [_COMMITTED]),
        ("other", "worker", []),
        ("c", "nothing", []),
    ],
)
def test_the_file_of_a_standalone_worker_or_of_debezium_server_has_the_offset(
    kept_as: str, named_in: str, expected: Sequence[StreamPosition], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offsets = tmp_path / "offsets"
    kept = {"c": {"server": "other"}, kept_as: {"server": "shop"}}
    offsets.write_bytes(
        write_map({json.dumps([*each]).encode(): json.dumps(_CONTENT).encode() for each in kept.items()})
    )
    for name in ("connector", "worker"):
        own = "name=c\n" if name == "connector" else "bootstrap.servers=k:9092\n"
        more = f"offset.storage.file.filename={offsets}\n" if name == named_in else ""
        (tmp_path / name).write_text(own + more)
    places = connector_offsets(tmp_path / "connector", tmp_path / "worker")
    monkeypatch.setattr(evidence, "AnnouncementLog", lambda client, prefix: Log(None))

    assert list(Evidence(ClientSettings("k:9092"), "shop", places).shown()) == expected
    assert (places is None) == (named_in == "nothing")


def test_an_offset_in_a_file_that_cannot_be_read_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "AnnouncementLog", lambda client, prefix: Log(None))
    places = ConnectorOffsets((), "c", "/nowhere/offsets")
    assert list(Evidence(ClientSettings("k:9092"), "shop", places).shown()) == []


# -- snapshots under way


def snapshot_of(count: int) -> SnapshotContext:
    """Return the state of a snapshot with `count` tables."""
    collections = (DataCollection(TableId("d", f"t{number}")) for number in range(count))
    return SnapshotContext(queue=tuple(Request("s", collection) for collection in collections))


@pytest.mark.parametrize(("count", "has_other"), [(0, False), (2, False), (20, False), (21, True)])
def test_the_tables_of_a_snapshot_of_the_job_are_under_way(
    count: int, has_other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = Offset("job", 12, position(12), TopicLayout(2), snapshot_of(count))
    beat = Announcement(StartFacts("start", "job", place=complete_place(end, "choices")), buckets=2)
    assert of_job(monkeypatch, beat, _BATCHES) == [position(7)]
    under_way = Evidence(ClientSettings("k:9092"), "shop", None).under_way()

    assert under_way.has("d.t0") == under_way.has("d.t1") == (count > 0)
    assert under_way.has(f"d.t{count}") == has_other


def test_an_old_place_of_an_idle_bucket_names_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    began = Offset("job", 7, position(7), TopicLayout(2), snapshot_of(1))
    batches = {**_BATCHES, 1: CommittedBatch(7, place=complete_place(began, "choices"))}
    ended = Announcement(StartFacts("start", "job", place=place(9)), buckets=2)

    of_job(monkeypatch, ended, batches)
    assert not Evidence(ClientSettings("k:9092"), "shop", None).under_way().has("d.t0")
    of_job(monkeypatch, _OWNER, batches)
    assert Evidence(ClientSettings("k:9092"), "shop", None).under_way().has("d.t0")


_COLLECTIONS = "incremental_snapshot_collections"


@pytest.mark.parametrize(
    ("content", "tables"),
    [
        (_CONTENT, ()),
        ({**_CONTENT, _COLLECTIONS: "[]"}, ()),
        ({**_CONTENT, "snapshot": False, _COLLECTIONS: f'[{{"{_COLLECTIONS}_id":"d.t"}}]'}, ("d.t",)),
        ({**_CONTENT, "snapshot": "incremental", _COLLECTIONS: f'[{{"{_COLLECTIONS}_id":"d.t"}}]'}, ("d.t",)),
        # The offset of a first snapshot names no tables.
        ({**_CONTENT, "snapshot": True}, ("d.t", "d.u")),
        ({**_CONTENT, "snapshot": "INITIAL"}, ("d.t", "d.u")),
        ({**_CONTENT, _COLLECTIONS: "torn"}, ("d.t", "d.u")),
    ],
)
def test_the_tables_of_a_snapshot_of_the_connector_are_under_way(
    content: dict[str, Any], tables: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_connector(monkeypatch, KeptOffset("c", "shop", content))
    under_way = Evidence(ClientSettings("k:9092"), "shop", ConnectorOffsets(("offsets",), "c")).under_way()

    assert [each for each in ("d.t", "d.u") if under_way.has(each)] == list(tables)


# -- what a comparison makes of it

_HERE = RowPlace(1, 700, -1)


def delivered(monkeypatch: pytest.MonkeyPatch, *shown: StreamPosition) -> RowPlace | None:
    """Return how far all partitions came, for the server `_SERVER` with the transactions 1 to 7."""
    marks = SimpleNamespace(
        server_uuid=lambda connection: _SERVER,
        executed=lambda connection: position(7).delivered,
        high_watermark=lambda connection: ("binlog.000001", 900),
    )
    monkeypatch.setattr(both_sides, "watermarks", marks)
    monkeypatch.setattr(both_sides, "ChangedKeys", lambda *given: None)
    monkeypatch.setattr(both_sides, "admin_client", lambda client: None)
    written: Any = SimpleNamespace(shown=lambda: iter(shown))
    nobody: Any = None
    sides = LiveSides(nobody, nobody, nobody, {}, written, Allowance())
    sides.low()
    return sides._delivered()


_Records = Mapping[tuple[str, int], Sequence[tuple[str, int]]]


def weakly(
    monkeypatch: pytest.MonkeyPatch,
    records: _Records,
    key: bytes = b"new",
    before: _Records | None = None,
    sharing: int = 1,
) -> dict[str, int | None]:
    """Return the position of the weak evidence about `key`, by topic.

    `records`: `source.snapshot` and the position of each record, by partition. The keys of records are their offsets.
    `before`: those of an earlier round, if there is one. `sharing`: how many tables each topic has.
    """
    now: dict[str, _Records] = {"now": before or records}

    def read(client: ClientSettings, parts: Sequence[PartitionPart], forms: object) -> Iterator[RecordBatch]:
        for part in parts:
            listed = list(enumerate(now["now"][part.topic, part.partition]))[part.begin : part.end]
            place = {"topic": part.topic, "partition": part.partition, "time": 0, "state": ROW, "row": b"{}"}
            yield pa.RecordBatch.from_pylist(
                [
                    {**place, "key": b"%d" % at, "offset": at, "is_snapshot": snapshot != "false",
                     "file": "binlog.000001", "pos": pos, "row_number": 0, "snapshot": snapshot}
                    for at, (snapshot, pos) in listed
                ],
                TOPIC_RECORDS,
            )  # fmt: skip

    def ends(client: object, counts: object, *, first: bool = False) -> dict[tuple[str, int], int]:
        return {each: 0 if first else len(listed) for each, listed in now["now"].items()}

    delivered(monkeypatch)
    monkeypatch.setattr(both_sides, "partition_counts", lambda admin, counts: counts)
    monkeypatch.setattr(both_sides, "topic_ends", ends)
    monkeypatch.setattr(both_sides, "read_parts", read)
    tables = {}
    for topic in dict.fromkeys(topic for topic, _ in records):
        shape = TableShape(TableId("d", topic), (Column("id", "int"),), (0,))
        count = sum(each == topic for each, _ in records)
        tables[topic] = [VerifiedTable(shape, topic, count, RecordForm(True, False, False))] * sharing
    written: Any = SimpleNamespace(shown=lambda: iter(()))
    nobody: Any = None
    sides = LiveSides(nobody, nobody, nobody, tables, written, Allowance())
    sides.ends = dict.fromkeys(records, 0)
    keys = [(topic, key) for topic in tables]
    sides.low()
    sides.topic(keys)
    now["now"] = records
    seen = sides.topic(keys)
    places = {topic: seen.reached((topic, key)).weak for topic in tables}
    return {topic: None if place is None else place.pos for topic, place in places.items()}


_BEGUN = [("first", 50), ("true", 50)]


def test_rows_of_a_first_snapshot_under_way_show_nothing_about_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    assert weakly(monkeypatch, {("t", 0): _BEGUN}) == {"t": None}
    assert weakly(monkeypatch, {("t", 0): _BEGUN, ("t", 1): []}) == {"t": None}
    # The snapshot has read the row of this key.
    assert weakly(monkeypatch, {("t", 0): _BEGUN}, key=b"1") == {"t": 50}


def test_a_first_snapshot_has_sent_the_rows_of_a_table_once_its_last_row_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for last in ("last", "last_in_data_collection"):
        topic = {("t", 0): [*_BEGUN, (last, 50)], ("t", 1): [("true", 50)]}
        assert weakly(monkeypatch, topic) == {"t": 50}
        assert weakly(monkeypatch, topic, before={("t", 0): _BEGUN, ("t", 1): []}) == {"t": 50}
    ended, begun = [*_BEGUN, ("last_in_data_collection", 50)], [("first_in_data_collection", 50)]
    # The table `v` has its turn later, or has no rows.
    assert weakly(monkeypatch, {("t", 0): ended, ("u", 0): begun, ("v", 0): []}) == {"t": 50, "u": None, "v": None}
    assert weakly(monkeypatch, {("t", 0): ended, ("u", 0): [], ("v", 0): []}) == {"t": 50, "u": None, "v": None}
    assert weakly(monkeypatch, {("t", 0): ended, ("u", 0): [*begun, ("last", 50)], ("v", 0): []}) == {
        "t": 50,
        "u": 50,
        "v": 50,
    }


def test_the_last_row_of_a_table_says_nothing_about_others_in_its_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = [*_BEGUN, ("last_in_data_collection", 50)]
    assert weakly(monkeypatch, {("all", 0): ended}, sharing=2) == {"all": None}
    assert weakly(monkeypatch, {("all", 0): ended, ("all", 1): [("true", 50)]}, sharing=2) == {"all": None}
    whole = [*ended, ("last", 50)]
    assert weakly(monkeypatch, {("all", 0): whole, ("all", 1): [("true", 50)]}, sharing=2) == {"all": 50}


@pytest.mark.parametrize("behind", [("false", 60), ("incremental", 60)])
def test_a_record_of_a_later_place_shows_that_the_first_snapshot_is_over(
    behind: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert weakly(monkeypatch, {("t", 0): [*_BEGUN, behind], ("u", 0): []}) == {"t": 60, "u": 60}
    assert weakly(monkeypatch, {("t", 0): _BEGUN, ("u", 0): [behind]}) == {"t": 60, "u": 60}


def test_an_earlier_record_does_not_show_that_a_later_snapshot_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = [("first", 20), ("last_in_data_collection", 20), ("false", 30)]
    assert weakly(monkeypatch, {("t", 0): [*earlier, ("first", 50)], ("u", 0): earlier}) == {"t": None, "u": None}


@pytest.mark.parametrize("snapshot", ["incremental", "false"])
def test_rows_of_other_snapshots_and_events_stay_weak_evidence(snapshot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert weakly(monkeypatch, {("t", 0): [(snapshot, 50)], ("u", 0): []}) == {"t": 50, "u": 50}


def test_the_furthest_place_of_the_server_that_is_asked_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = replace(position(7), delivered=position(6).delivered)
    other = replace(behind, pos=800, server_uuid="11111111-1111-1111-1111-111111111111")

    assert delivered(monkeypatch) is None
    assert delivered(monkeypatch, position(3), behind, position(2)) == _HERE
    assert delivered(monkeypatch, behind, other) == _HERE
    # A connector's offset names no server.
    assert delivered(monkeypatch, replace(behind, server_uuid="")) == _HERE
    assert delivered(monkeypatch, replace(behind, server_uuid=f"{_SERVER}/1")) == _HERE


def test_a_place_within_a_transaction_or_without_a_file_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = replace(position(7), delivered=position(6).delivered)

    assert delivered(monkeypatch, replace(behind, open_gtid=f"{_SERVER}:7")) is None
    assert delivered(monkeypatch, replace(behind, file="")) is None


def test_who_has_delivered_all_that_was_executed_has_delivered_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    end = RowPlace(1, 900)

    for shown in (position(7), position(8), replace(position(8), open_gtid=f"{_SERVER}:9")):
        place = delivered(monkeypatch, shown)
        assert place is not None
        assert place > end
    other = replace(position(8), server_uuid="11111111-1111-1111-1111-111111111111")
    assert delivered(monkeypatch, other) is None
