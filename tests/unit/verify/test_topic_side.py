"""Tests of how records of a partition are read, with a consumer that answers as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.verify import topic_side
from incsnap.verify.topic_side import PartitionPart, messages_of


def record(offset: int) -> Any:
    return SimpleNamespace(error=lambda: None, offset=lambda: offset)


def end(offset: int) -> Any:
    """Return the event that a partition ends at `offset`."""
    return SimpleNamespace(error=lambda: KafkaError(KafkaError._PARTITION_EOF), offset=lambda: offset)


def offsets(monkeypatch: pytest.MonkeyPatch, answers: Sequence[Sequence[Any]], until: int) -> list[int]:
    """Return the offsets that are read up to `until`, while the consumer gives `answers` one after the other."""
    left = list(answers)
    consumer = SimpleNamespace(
        assign=lambda places: None,
        consume=lambda most, timeout: left.pop(0) if left else [],
        close=lambda: None,
    )
    monkeypatch.setattr(topic_side, "Consumer", lambda settings: consumer)
    monkeypatch.setattr(topic_side, "_SILENCE_SECONDS", 0.05)
    part = PartitionPart("t", 0, 0, until)
    return [message.offset() or 0 for _, some in messages_of(ClientSettings("k:9092"), [part]) for message in some]


@pytest.mark.parametrize(
    "answers",
    [
        # A new leader does not know yet how far its partition was replicated.
        [[record(0), record(1), end(2)], [record(2)], [record(3), end(4)]],
        [[end(0)], [record(0), record(1), record(2), record(3), record(4)]],
        [[record(0), end(1), record(1), record(2), record(3)]],
    ],
)
def test_an_end_before_the_stated_end_loses_no_record(
    answers: Sequence[Sequence[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert offsets(monkeypatch, answers, 4) == [0, 1, 2, 3]


def test_offsets_without_records_end_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of markers and of aborted transactions have no records."""
    assert offsets(monkeypatch, [[record(0)], [end(4)]], 4) == [0]


def test_a_partition_that_stays_shorter_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerUnreachable, match="sends nothing up to offset 4"):
        offsets(monkeypatch, [[record(0), end(1)]], 4)
