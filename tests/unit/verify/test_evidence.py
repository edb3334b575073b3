"""Tests of the written evidence of how far topics came: that of a job on the control topic, and a connector's offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from incsnap.errors import ServerUnreachable, SinkError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka.announcements import Announcement, StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets, KeptOffset
from incsnap.kafka.control import CommittedBatch
from incsnap.kafka.refusals import ClientError
from incsnap.snapshot.delivered_place import complete_place
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.verify import evidence
from incsnap.verify.evidence import Evidence

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

    def offsets(client: ClientSettings, topic: str) -> Mapping[tuple[str, str], KeptOffset]:
        assert topic == "offsets"
        if not kept:
            raise ServerUnreachable("Kafka does not describe the topic")
        return {(each.connector, each.server): each for each in kept}

    monkeypatch.setattr(evidence, "AnnouncementLog", lambda client, prefix: Log(owner))
    monkeypatch.setattr(evidence, "recorded_batches", lambda *given: _BATCHES)
    monkeypatch.setattr(evidence, "kept_offsets", offsets)
    return list(Evidence(ClientSettings("k:9092"), "shop", ConnectorOffsets("offsets", name)).shown())


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
