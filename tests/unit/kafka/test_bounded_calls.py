"""A call of librdkafka that does not return costs its producer, not the job."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from incsnap.errors import SinkError
from incsnap.kafka import bounded_calls, transaction
from incsnap.kafka.bounded_calls import BoundedCalls
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError
from incsnap.kafka.transaction import BucketWriter


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yield an event: calls do not return until it is set. The grace period after a call's time-out is 50 ms."""
    monkeypatch.setattr(bounded_calls, "GRACE_SECONDS", 0.05)
    event = threading.Event()
    yield event
    event.set()


def test_the_result_or_error_of_a_call_reaches_the_caller() -> None:
    calls = BoundedCalls()

    def refused() -> None:
        raise ClientError(7, "refused")

    assert [calls.run("it", lambda: threading.current_thread().name, 5.0) for _ in range(2)] == ["incsnap-producer"] * 2
    with pytest.raises(ClientError, match="refused"):
        calls.run("it", refused, 5.0)
    assert not calls.lost
    calls.close()


def test_a_call_that_does_not_return_is_abandoned_and_no_other_follows(stuck: threading.Event) -> None:
    calls = BoundedCalls()
    with pytest.raises(ClientError, match="has not returned from it"):
        calls.run("it", lambda: stuck.wait(60), 0.01)
    assert calls.lost
    with pytest.raises(ClientError, match="abandoned"):
        calls.run("another", lambda: None, 5.0)
    calls.close()


def test_a_producer_whose_call_is_lost_is_neither_touched_nor_destroyed(
    stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = TransactionalProducer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t", "log_level": "0"})
    monkeypatch.setattr(producer, "_send_offset", lambda *_: stuck.wait(60))
    monkeypatch.setattr(producer._lib, "rd_kafka_destroy", lambda _: pytest.fail("destroyed"))
    with pytest.raises(ClientError, match="send_offsets_to_transaction"):
        producer.send_offset("control", 0, 1, "", "group", 0.01)
    producer.close()


def test_a_cached_producer_that_does_not_return_is_replaced(
    stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one gets no further here; that it is asked for is what counts."""

    def begins(producer: TransactionalProducer, seconds: float) -> None:
        assert producer is not kept
        raise ClientError(7, "here it is", fatal=True)

    monkeypatch.setattr(transaction, "_KEPT_SECONDS", 0.01)
    monkeypatch.setattr(TransactionalProducer, "init_transactions", begins)
    writer = BucketWriter(ClientSettings("127.0.0.1:1", {"log_level": "0"}), "p", "job")
    kept = TransactionalProducer(writer.client.for_producer("t"))
    monkeypatch.setattr(kept, "begin", lambda: None)
    monkeypatch.setattr(kept, "_send_offset", lambda *_: stuck.wait(60))
    transaction.PRODUCERS.keep(writer.owner(0), kept, 1)
    with pytest.raises(SinkError, match="here it is"):
        writer.open(0, 2, "digest")
    assert kept._calls.lost
