"""Tests of a transaction that brokers take longer for than one step may take."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from incsnap.errors import SinkError
from incsnap.kafka import retries, transaction
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError
from incsnap.kafka.transaction import BucketWriter, Transaction

_TIMED_OUT = ClientError(KafkaError._TIMED_OUT, "timed out", retriable=True)


class Producer:
    """A producer whose commit fails with `errors`, one after the other, each after all of the seconds that it has.

    Brokers have taken all but `waiting` of its records at each question.
    """

    has_lost_answers = False

    def __init__(self, waiting: list[int], errors: list[ClientError]) -> None:
        self._waiting, self._errors = waiting, errors
        self.refused: ClientError | None = None
        self.now = 0.0

    @property
    def waiting(self) -> int:
        return self._waiting.pop(0)

    def begin(self) -> None:
        pass

    def send_offset(self, *_: Any) -> None:
        pass

    def send_one(self, *_: Any) -> None:
        pass

    def commit(self, seconds: float) -> None:
        self.now += seconds
        if self._errors:
            raise self._errors.pop(0)

    def close(self) -> None:
        pass

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def committed(producer: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a transaction of `producer` by the clock of `producer`."""
    monkeypatch.setattr(retries, "time", producer)
    monkeypatch.setattr(transaction, "time", producer)
    writer = BucketWriter(ClientSettings("nowhere:9092"), "shop", "job")
    opened = Transaction(writer, cast(TransactionalProducer, producer), 0, 1, "digest")
    opened.begin()
    opened.commit()


def test_a_commit_goes_on_while_brokers_take_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer([9, 5, 2], [_TIMED_OUT] * 4)
    committed(producer, monkeypatch)
    assert 60 < producer.now < 95


def test_a_commit_whose_records_are_all_taken_waits_no_longer_for_the_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    producer = Producer([1, 0, 0], [_TIMED_OUT] * 4)
    with pytest.raises(SinkError, match=r"committing \(bucket 0, batch 1\): timed out"):
        committed(producer, monkeypatch)
    assert 40 < producer.now < 45


def test_a_transaction_that_brokers_have_ended_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = ClientError(KafkaError._FENCED, "fenced", fatal=True)
    producer = Producer([9, 5, 2], [*[_TIMED_OUT] * 4, fenced])
    with pytest.raises(SinkError, match=r"longer than transaction\.timeout\.ms, 60 s") as raised:
        committed(producer, monkeypatch)
    assert "producer.transaction.timeout.ms" in raised.value.hint


def test_a_record_that_brokers_have_not_taken_in_time_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer([9, 5], [ClientError(KafkaError._STATE, "a message failed", requires_abort=True)])
    producer.refused = ClientError(KafkaError._MSG_TIMED_OUT, "Local: Message timed out (topic t, key 5)")
    with pytest.raises(SinkError, match=r"timed out \(topic t, key 5\)") as raised:
        committed(producer, monkeypatch)
    assert "producer.transaction.timeout.ms" in raised.value.hint


def test_a_producer_that_is_fenced_early_has_another_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer([9], [ClientError(KafkaError._FENCED, "fenced", fatal=True)])
    with pytest.raises(SinkError, match="Another writer took over"):
        committed(producer, monkeypatch)
