"""Settings of an Avro converter, said to the registry's client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incsnap.config.load import explain
from incsnap.config.registry_settings import client_settings
from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.registry import Registry
from tests.support.job_settings import LEAST, loaded_with, problems_with
from tests.support.properties import dotted

URL = "http://127.0.0.1:1/apis"


def test_without_settings_schemas_are_registered_and_nothing_waits_for_ever() -> None:
    settings = client_settings(URL, {})

    assert settings.client["url"] == URL
    assert settings.client["timeout"] > 0
    assert (settings.auto_register, settings.latest, settings.normalize) == (True, False, False)


def test_names_of_the_java_converter_become_the_clients() -> None:
    settings = client_settings(
        URL,
        {
            "basic.auth.credentials.source": "USER_INFO",
            "schema.registry.basic.auth.user.info": "me:secret",
            "schema.registry.ssl.truststore.location": "/ca.pem",
            "schema.registry.ssl.truststore.type": "PEM",
            "ssl.keystore.location": "/me.pem",
            "ssl.key.password": "word",
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": "t",
            "auto.register.schemas": "false",
            "use.latest.version": "true",
            "normalize.schemas": "TRUE",
            "timeout": "3",
        },
    )

    expected = {
        "basic.auth.user.info": "me:secret",
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.password": "word",
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": "t",
        "timeout": 3,
    }
    assert {name: settings.client[name] for name in expected} == expected
    assert not {"basic.auth.credentials.source", "ssl.truststore.type"} & set(settings.client)
    assert (settings.auto_register, settings.latest, settings.normalize) == (False, True, True)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("auto.register.schemas", "perhaps", "neither true nor false"),
        ("timeout", "soon", "no whole number"),
        ("ssl.truststore.location", "/store.jks", "Java key store"),
        ("basic.auth.credentials.source", "SASL_INHERIT", "not known"),
        ("connect.meta.data", "false", "not known"),
        ("value.subject.name.strategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy", "not known"),
    ],
)
def test_registry_settings_without_effect_are_refused(name: str, value: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        client_settings(URL, {name: value})
    assert name in caught.value.message


def test_the_default_strategy_of_subjects_may_be_named() -> None:
    name = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    assert "value.subject.name.strategy" not in client_settings(URL, {"value.subject.name.strategy": name}).client


def test_unknown_settings_and_those_without_effect_are_told_apart() -> None:
    settings = client_settings(URL, {"schema.registry.odd": "1", "schemas.cache.size": "9"})
    assert (settings.unknown, settings.idle) == (("schema.registry.odd",), ("schemas.cache.size",))


_AVRO = {"value__converter": "AvroConverter", "value__converter__schema__registry__url": URL}


def test_an_unknown_option_of_an_avro_converter_is_warned_of_before_the_start(tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    given = {**LEAST, **dotted(_AVRO), "value.converter.nonsense": "1", "value.converter.timeout": "3"}
    file.write_text(json.dumps(given))
    explanation = explain(file)
    fates = {each.name: each.fate for each in explanation.settings}
    assert fates["value.converter.nonsense"] == "without effect"
    assert fates["value.converter.timeout"] == "obeyed"
    assert any("value.converter.nonsense" in warning for warning in explanation.warnings)


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("ssl.truststore.location", "/store.jks", "Java key store"),
        ("value.subject.name.strategy", "x.RecordNameStrategy", "TopicNameStrategy is"),
    ],
)
def test_an_option_that_no_start_would_take_is_refused_with_the_other_settings(
    option: str, value: str, word: str
) -> None:
    text = problems_with(**_AVRO, **{f"value__converter__{option.replace('.', '__')}": value})
    assert f"value.converter.{option}: " in text
    assert word in text


def test_a_null_that_the_converter_should_replace_is_warned_of() -> None:
    name = "value__converter__replace__null__with__default"
    given = {"value__converter": "JsonConverter", "key__converter": "JsonConverter"}
    assert any("replace.null" in warning for warning in loaded_with(**given, **{name: "true"}).warnings)
    assert not any("replace.null" in warning for warning in loaded_with(**given, **{name: "false"}).warnings)


def test_a_client_that_refuses_its_settings_is_a_matter_of_the_file() -> None:
    with pytest.raises(ConfigError, match=r"schema registry http://127\.0\.0\.1:1/apis are wrong"):
        Registry(URL, {"basic.auth.user.info": "nopassword"})


def test_a_registry_that_is_not_there_is_named_without_its_password() -> None:
    registry = Registry("http://me:secret@127.0.0.1:1", {"max.retries": "0", "timeout": "2"})
    with pytest.raises(ServerUnreachable, match=r"http://127\.0\.0\.1:1 does not answer") as caught:
        registry.register("t-value", '"int"')
    assert "secret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("second", ["http://reg2:8081", " https://u:p-2@reg2/a"])
def test_a_registry_may_have_several_addresses(second: str) -> None:
    url = f"http://u:p-1@reg1:8081,{second}"
    given = {"value__converter": "AvroConverter", "value__converter__schema__registry__url": url}
    assert loaded_with(**given).settings.formats.value_registry.url == url


@pytest.mark.parametrize("second", ["", "reg2:8081", "http://u:p-2/p-2@reg2"])
def test_each_address_of_a_registry_is_checked(second: str) -> None:
    url = f"http://u:p-1@reg1:8081,{second}"
    text = problems_with(value__converter="AvroConverter", value__converter__schema__registry__url=url)
    assert "not of the form http://host:port" in text
    assert "p-1" not in text
    assert "p-2" not in text


def test_no_address_of_a_registry_is_named_with_its_password() -> None:
    url = "http://me:secret@127.0.0.1:1,http://you:other@127.0.0.1:2"
    registry = Registry(url, {"max.retries": "0", "timeout": "2"})
    with pytest.raises(
        ServerUnreachable, match=r"http://127\.0\.0\.1:1,http://127\.0\.0\.1:2 does not answer"
    ) as caught:
        registry.register("t-value", '"int"')
    assert not {"secret", "other"} & {*caught.value.message.replace(":", "@").split("@")}
