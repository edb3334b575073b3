"""The check of Kafka before a start: what it says of wrong settings of the signal topic's consumer and of topics."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.cimpl import NewTopic

from incsnap.cli.check import _of_signal_topic
from incsnap.config.settings import TopicCreation
from incsnap.errors import ConfigError
from incsnap.kafka.preflight import _creatable, partitions_of_signals
from tests.support.job_settings import loaded_with


@pytest.mark.parametrize("given", [{"sasl.mechnism": "PLAIN"}, {"security.protocol": "TLS"}])
def test_a_misspelt_setting_of_the_signal_consumer_is_an_error(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))) as refused:
        partitions_of_signals("127.0.0.1:1", "shop-signal", "g", given)
    assert "signal.consumer" in refused.value.hint


def _consumer(code: int | None) -> Callable[[dict[str, Any]], Any]:
    """Return the class of a consumer that gets no answer, because of an error with this code."""

    class Silent:
        def __init__(self, options: dict[str, Any]) -> None:
            self._report = options["error_cb"]

        def list_topics(self, topic: str, timeout: float) -> None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

        def poll(self, seconds: float) -> None:
            if code is not None:
                self._report(KafkaError(code, "because"))

        def close(self) -> None:
            pass

    return Silent


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_a_refused_login_of_the_signal_consumer_is_an_error(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incsnap.kafka.preflight.Consumer", _consumer(code))
    with pytest.raises(ConfigError, match="k:9092 does not let the consumer of the signal topic in: because"):
        partitions_of_signals("k:9092", "shop-signal", "g", {})


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, None])
def test_brokers_of_signals_that_do_not_answer_are_no_error(code: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incsnap.kafka.preflight.Consumer", _consumer(code))
    assert partitions_of_signals("k:9092", "shop-signal", "g", {}) is None


def test_wrong_settings_of_the_signal_consumer_are_a_finding_of_the_check() -> None:
    (finding,) = _of_signal_topic(loaded_with(signal__consumer__sasl__mechnism="PLAIN").settings)
    assert (finding.name, finding.severity, finding.waits) == ("signal.consumer", "error", False)
    assert "sasl.mechnism" in finding.problem
    assert "signal.consumer" in finding.repair


class Broker:
    """An admin client of a broker that knows one setting of topics."""

    def __init__(self) -> None:
        self.asked: dict[str, NewTopic] = {}

    def create_topics(self, topics: list[NewTopic], *, validate_only: bool, request_timeout: float) -> dict[str, Any]:
        assert validate_only
        self.asked |= {each.topic: each for each in topics}
        return {each.topic: self._answer(each) for each in topics}

    def _answer(self, topic: NewTopic) -> Future[None]:
        answer: Future[None] = Future()
        config: Any = topic.config
        unknown = sorted({*config} - {"retention.ms"})
        if unknown:
            error = KafkaError(KafkaError.INVALID_CONFIG, f"Unknown topic config name: {unknown[0]}")
            answer.set_exception(KafkaException(error))
        else:
            answer.set_result(None)
        return answer


def _findings(monkeypatch: pytest.MonkeyPatch, **more: str) -> tuple[list[tuple[str, str]], Broker]:
    monkeypatch.setattr("incsnap.kafka.preflight.partition_counts", lambda admin, names: {})
    creation: TopicCreation = loaded_with(**more).settings.topic_creation
    broker: Any = Broker()
    return _creatable(broker, {"shop.a.t", "shop.a.u", "shop.b.t"}, creation, 1.0), broker


def test_a_misspelt_setting_of_topics_is_one_finding_for_all_topics_of_its_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    findings, broker = _findings(
        monkeypatch,
        topic__creation__groups="b",
        topic__creation__b__include="shop.b.*",
        topic__creation__b__retention__millis="1",
        topic__creation__b__partitions="7",
        topic__creation__default__retention__mss="1",
    )

    assert [problem for problem, _ in findings] == [
        "Topic shop.a.t and 1 more cannot be created: Unknown topic config name: retention.mss",
        "Topic shop.b.t cannot be created: Unknown topic config name: retention.millis",
    ]
    assert [repair.partition(":")[0] for _, repair in findings] == [
        "Correct topic.creation.default.*",
        "Correct topic.creation.b.*",
    ]
    assert [broker.asked[name].num_partitions for name in ("shop.a.t", "shop.b.t")] == [-1, 7]


def test_known_settings_of_topics_are_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    findings, broker = _findings(monkeypatch, topic__creation__default__retention__ms="9")

    assert findings == []
    assert broker.asked["shop.a.t"].config == {"retention.ms": "9"}
