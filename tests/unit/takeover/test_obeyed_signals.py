"""Signals of a topic in which the connector's group has no place."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pytest
from confluent_kafka import KafkaError, KafkaException

from incsnap.errors import ServerUnreachable
from incsnap.gtid import GtidSet
from incsnap.takeover import obeyed_signals
from incsnap.takeover.connector_offset import ConnectorOffset
from incsnap.takeover.obeyed_signals import obeyed_again, unwritten_signals
from tests.support.job_settings import loaded_with

_CHANNELS = {"signal__enabled__channels": "source,kafka", "signal__kafka__groupId": "obeyed"}
_OF_KAFKA = loaded_with(topic__prefix="shop", **_CHANNELS).settings


def warning(answer: tuple[int, int] | KafkaError) -> str:
    """Return the warning about a topic whose first offset and end are `answer`, or about which Kafka has this error."""
    error = KafkaException(answer) if isinstance(answer, KafkaError) else None
    asked = Mock(return_value=answer, side_effect=error)
    with patch.object(obeyed_signals, "Consumer", return_value=Mock(get_watermark_offsets=asked)):
        return obeyed_again(_OF_KAFKA)


def test_signals_that_are_obeyed_from_the_beginning_on_are_a_warning_with_the_way_out() -> None:
    words = warning((0, 2))

    assert "the group obeyed (signal.kafka.groupId) has no place in shop-signal" in words
    assert "obeys the signals in this topic from its beginning on" in words
    assert "--group obeyed --topic shop-signal:0 --to-latest" in words


@pytest.mark.parametrize("answer", [(0, 0), (7, 7), KafkaError(KafkaError._UNKNOWN_PARTITION)], ids=str)
def test_a_topic_without_messages_is_no_warning(answer: tuple[int, int] | KafkaError) -> None:
    assert warning(answer) == ""


def test_a_job_without_the_channel_asks_nothing() -> None:
    assert obeyed_again(loaded_with(topic__prefix="shop", signal__enabled__channels="source").settings) == ""


@pytest.mark.parametrize(
    ("committed", "newest", "reads_only", "begin"),
    [
        (9, None, True, 9),
        # The connector was killed before it wrote down what signal 7 asks for. Its group has the place behind signal 7.
        (8, 6, True, 7),
        (-1001, 6, True, 7),  # signal.consumer.enable.auto.commit=false
        (5, 6, True, 5),
        (8, 6, False, 8),
        (-1001, 6, False, None),
    ],
)
def test_a_connector_that_only_reads_goes_on_behind_the_signal_that_its_offset_knows(
    committed: int, newest: int | None, reads_only: bool, begin: int | None
) -> None:
    settings = _OF_KAFKA.model_copy(update={"read_only": reads_only})
    place = Mock(offset=committed)
    with patch.object(obeyed_signals, "Consumer", return_value=Mock(committed=Mock(return_value=[place]))):
        assert obeyed_signals.obeyed_signals(settings, newest) == begin


def test_a_kafka_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(ServerUnreachable, match="does not say which signals shop-signal has"):
        warning(KafkaError(KafkaError._TRANSPORT))


@pytest.mark.parametrize("code", [None, KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART])
def test_signals_behind_the_offset_need_a_time_a_topic_and_kafka(code: int | None) -> None:
    asked = Mock(side_effect=KafkaException(KafkaError(code)) if code is not None else AssertionError)
    offset = ConnectorOffset(GtidSet.parse(""), "binlog.000001", 4, seconds=0 if code is None else 1_700_000_000)
    with patch.object(obeyed_signals, "Consumer", return_value=Mock(offsets_for_times=asked)):
        if code == KafkaError._TRANSPORT:
            with pytest.raises(ServerUnreachable, match="does not say which signals shop-signal has"):
                unwritten_signals(_OF_KAFKA, offset, 3)
        else:
            assert unwritten_signals(_OF_KAFKA, offset, 3) == ""
