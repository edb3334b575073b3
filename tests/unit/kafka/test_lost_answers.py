"""Tests of the log lines of librdkafka that say that a broker may still execute a request."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from incsnap.kafka.lost_answers import LostAnswers, logged


def lost(kind: bytes, line: bytes, level: int = 6, **settings: str) -> bool:
    """Whether a producer that has logged this line has lost an answer."""
    answers = LostAnswers(SimpleNamespace(rd_kafka_conf_set_log_cb=lambda _conf, _callback: None), 0, settings)
    answers._read(0, level, kind, line)
    return answers.any()


def test_a_connection_that_breaks_in_use_loses_answers() -> None:
    assert lost(b"FAIL", b"kafka:9092/1: Disconnected (after 1203ms in state UP)")
    assert lost(b"FAIL", b"kafka:9092/1: Disconnected (after 1203ms in state UP, 1 identical error(s) suppressed)")
    assert lost(b"FAIL", b"a line that was too long for its end")
    assert lost(b"REQTMOUT", b"Timed out 1 in-flight, 0 retry-queued, 0 out-queue, 0 partially-sent requests")


def test_a_broker_that_is_down_is_no_reason_to_give_a_producer_up() -> None:
    assert not lost(b"FAIL", b"Connect to ipv4#10.0.0.1:9092 failed: refused (after 1ms in state CONNECT)")
    assert not lost(b"GETPID", b"Failed to acquire transactional PID: Coordinator load in progress: retrying")


def test_log_levels_of_the_user_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    assert logged({"log_level": "0"})["log_level"] == "6"
    assert logged({"log_level": "7", "debug": "msg"})["log_level"] == "7"
    caplog.set_level(logging.INFO)
    lost(b"MSG", b"a", level=7, log_level="6")
    lost(b"MSG", b"b", level=7, log_level="7")
    assert caplog.messages == ["librdkafka: b"]
