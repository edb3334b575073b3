"""Settings of an Avro converter, said to the registry's client."""

from __future__ import annotations

import logging

import pytest

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.registry import Registry
from incsnap.kafka.registry_settings import client_settings

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


def test_an_unknown_setting_is_named_once_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        client_settings(URL, {"schema.registry.odd": "1"})
    assert "schema.registry.odd" in caplog.text


def test_a_client_that_refuses_its_settings_is_a_matter_of_the_file() -> None:
    with pytest.raises(ConfigError, match=r"schema registry http://127\.0\.0\.1:1/apis are wrong"):
        Registry(URL, {"basic.auth.user.info": "nopassword"})


def test_a_registry_that_is_not_there_is_named_without_its_password() -> None:
    registry = Registry("http://me:secret@127.0.0.1:1", {"max.retries": "0", "timeout": "2"})
    with pytest.raises(ServerUnreachable, match=r"http://127\.0\.0\.1:1 does not answer") as caught:
        registry.register("t-value", '"int"')
    assert "secret" not in caught.value.message + caught.value.hint
