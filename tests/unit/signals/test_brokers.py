"""Tests of the log lines about unreachable brokers: one when the last is lost, one when a broker is back."""

from __future__ import annotations

import json
import logging

import pytest
from confluent_kafka import KafkaError

from signals.channels.brokers import Brokers

REFUSED = KafkaError(KafkaError._TRANSPORT, "localhost:1: Connection refused")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


def states(*of_brokers: str) -> str:
    brokers = {
        str(number): {"state": state, "nodename": f"kafka{number}:9092"} for number, state in enumerate(of_brokers)
    }
    return json.dumps({"brokers": brokers | {"GroupCoordinator": {"state": "INIT", "nodename": ""}}})


def levels(caplog: pytest.LogCaptureFixture) -> list[int]:
    return [record.levelno for record in caplog.records]


@pytest.fixture
def brokers(caplog: pytest.LogCaptureFixture) -> Brokers:
    caplog.set_level(logging.INFO)
    return Brokers("The topic t")


def test_brokers_that_go_and_come_are_told_once_each_time(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    for outage in 1, 2:
        for _ in range(100):
            brokers.failed(REFUSED)
            brokers.failed(ALL_DOWN)
            brokers.looked_at(states("TRY_CONNECT", "DOWN"))
        assert levels(caplog) == [logging.WARNING, logging.INFO] * (outage - 1) + [logging.WARNING]
        assert caplog.messages[-1].startswith(
            "The topic t cannot be read, because no broker (kafka0:9092, kafka1:9092) can be reached: "
            "localhost:1: Connection refused."
        )
        for _ in range(100):
            brokers.looked_at(states("UP", "DOWN"))
        assert levels(caplog) == [logging.WARNING, logging.INFO] * outage


def test_a_broker_that_fails_beside_another_that_answers_is_no_news(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        brokers.failed(REFUSED)
        brokers.looked_at(states("DOWN", "UP"))
    assert levels(caplog) == []


def test_brokers_that_were_not_tried_yet_are_not_away(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    brokers.looked_at(states("INIT", "TRY_CONNECT"))
    assert levels(caplog) == []


def test_without_another_reason_it_is_that_all_are_down(brokers: Brokers, caplog: pytest.LogCaptureFixture) -> None:
    brokers.failed(ALL_DOWN)
    brokers.looked_at(states("DOWN"))
    assert "no broker (kafka0:9092) can be reached: 1/1 brokers are down" in caplog.messages[0]
