"""A topic that is deleted while a producer is kept, on the brokers that librdkafka brings along for tests."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from incsnap.kafka import producer as producers
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import ClientError
from tests.support.kafka import keyed

_ADD_PARTITIONS_TO_TRANSACTION = 24
#: Half of the seconds that a commit may take: a commit that waits takes longer.
_SECONDS = 60.0
_POINTER = ctypes.c_void_p


class Broker:
    """A mock broker in the process of its only producer."""

    def __init__(self) -> None:
        settings = ClientSettings("").for_producer("it")
        del settings["bootstrap.servers"]
        self.producer = TransactionalProducer({**settings, "test.mock.num.brokers": "1"})
        self._lib = ctypes.CDLL(self.producer._lib._name)
        handle = self._function("rd_kafka_handle_mock_cluster", _POINTER, _POINTER)
        self._cluster = handle(self.producer._rk)
        for topic in (b"kept", b"deleted"):
            self._function("rd_kafka_mock_topic_create", ctypes.c_int, _POINTER, ctypes.c_char_p, *[ctypes.c_int] * 2)(
                self._cluster, topic, 1, 1
            )
        self.producer.init_transactions(_SECONDS)

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._lib, name)
        function.restype, function.argtypes = result, arguments
        return function

    def delete(self, topic: bytes) -> None:
        """Delete the topic: requests for its metadata and for adding it to a transaction now fail."""
        gone = KafkaError.UNKNOWN_TOPIC_OR_PART
        self._function("rd_kafka_mock_topic_set_error", None, _POINTER, ctypes.c_char_p, ctypes.c_int)(
            self._cluster, topic, gone
        )
        answers = (ctypes.c_int * 5_000)(*[gone] * 5_000)
        self._function(
            "rd_kafka_mock_push_request_errors_array",
            None,
            _POINTER,
            ctypes.c_int16,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_int),
        )(self._cluster, _ADD_PARTITIONS_TO_TRANSACTION, len(answers), answers)

    def slow_down(self, milliseconds: int) -> None:
        slow = self._function("rd_kafka_mock_broker_set_rtt", ctypes.c_int, _POINTER, ctypes.c_int32, ctypes.c_int)
        assert slow(self._cluster, 1, milliseconds) == 0

    def commit(self, *topics: str) -> None:
        self.producer.begin()
        for topic in topics:
            self.producer.send([(topic, 1)], keyed(("k", "v")), _SECONDS)
        self.producer.commit(2 * _SECONDS)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    monkeypatch.setattr(producers, "_DOUBT_SECONDS", 0.3)
    made = Broker()
    yield made
    made.producer.close()


def test_a_commit_names_the_topic_that_is_gone_instead_of_waiting(broker: Broker) -> None:
    broker.commit("kept", "deleted")
    broker.delete(b"deleted")
    began = time.monotonic()
    with pytest.raises(ClientError, match="the topic deleted no longer exists") as raised:
        broker.commit("kept", "deleted")
    assert not raised.value.retriable
    broker.producer.abort(_SECONDS)
    assert time.monotonic() - began < _SECONDS


def test_a_topic_that_the_transaction_does_not_write_to_may_be_gone(broker: Broker) -> None:
    broker.commit("deleted")
    broker.delete(b"deleted")
    broker.producer.begin()
    assert broker.producer._queue.gone() is None


def test_a_slow_broker_is_waited_for(broker: Broker) -> None:
    broker.slow_down(400)
    broker.commit("kept")
