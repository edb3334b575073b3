"""Tests of the settings `heartbeat.*` and `topic.heartbeat.*`."""

from __future__ import annotations

import pytest

from incsnap.config.load import Loaded, from_properties
from incsnap.config.record_form import record_form
from incsnap.config.topics import control_topics, heartbeat_topic
from incsnap.errors import ConfigError
from tests.support.properties import QUIET, dotted


def loaded(**options: str) -> Loaded:
    return from_properties({**QUIET, **dotted(options)}, {})


def topic_name(**options: str) -> str:
    topic = heartbeat_topic(loaded(heartbeat__interval__ms="1000", **options).settings)
    assert topic is not None
    return topic.name


def test_without_an_interval_there_is_no_topic() -> None:
    settings = loaded(topic__heartbeat__prefix="beats").settings
    assert heartbeat_topic(settings) is None
    assert control_topics(settings) == {"shop"}


def test_the_topic_is_named_as_debezium_names_it() -> None:
    assert topic_name() == "__debezium-heartbeat.shop"
    assert topic_name(topic__heartbeat__prefix="beats", topic__delimiter="_") == "beats_shop"
    assert topic_name(topic__heartbeat__prefix="beats", topic__heartbeat__name="all") == "all"


def test_the_topic_has_a_second_setting_for_its_name() -> None:
    settings = loaded(heartbeat__interval__ms="1", heartbeat__topic__name="hb")
    assert (settings.settings.heartbeat.topic, settings.warnings) == ("hb", ())
    both = loaded(heartbeat__interval__ms="1", heartbeat__topic__name="hb", topic__heartbeat__name="all")
    assert both.settings.heartbeat.topic == "all"
    assert both.warnings == ("heartbeat.topic.name has no effect beside topic.heartbeat.name",)


def test_a_router_takes_heartbeats_to_another_topic() -> None:
    router = {
        "transforms": "route",
        "transforms__route__type": "RegexRouter",
        "transforms__route__regex": "__debezium-heartbeat.(.*)",
        "transforms__route__replacement": "beats-of-$1",
    }
    assert topic_name(**router) == "beats-of-shop"


def test_heartbeats_give_records_no_other_form() -> None:
    assert record_form(loaded(heartbeat__interval__ms="1000").settings) == record_form(loaded().settings)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("heartbeat__interval__ms", "-1", "heartbeat.interval.ms: '-1' is not a whole number from 0 to 2147483647"),
        (
            "topic__heartbeat__prefix",
            "a b",
            "topic.heartbeat.prefix: 'a b' is not a name of at most 249",
        ),
        ("topic__heartbeat__name", "x" * 250, "topic.heartbeat.name: 'xxx"),
        ("heartbeat__topic__name", "x" * 250, "heartbeat.topic.name: 'xxx"),
    ],
)
def test_bad_values_are_refused_by_name(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(**{"heartbeat__interval__ms": "1", name: value})
    assert why in str(refused.value)


def test_a_query_that_will_not_be_executed_is_warned_of() -> None:
    query = {"heartbeat__action__query": "INSERT INTO db.beats VALUES ()"}
    assert loaded(**query, heartbeat__interval__ms="5").warnings == ()
    [warning] = loaded(**query).warnings
    assert warning == ("heartbeat.action.query has no effect without heartbeat.interval.ms")
    forbidden = loaded(**query, heartbeat__interval__ms="5", read__only="true")
    assert forbidden.warnings == ("heartbeat.action.query has no effect with read.only=true",)
    assert forbidden.settings.heartbeat.action_query == ""
