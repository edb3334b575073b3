"""Tokens that Amazon's own libraries sign, for MSK and RDS. Signing needs credentials and no network."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from incsnap.config.clients import AMAZON
from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.oauth_login import amazon_tokens
from incsnap.mysql.amazon_login import token

_IAM = "software.amazon.msk.auth.iam."
_MSK = {
    "bootstrap.servers": "b-1.shop.abc123.c2.kafka.eu-west-1.amazonaws.com:9098",
    "producer.security.protocol": "SASL_SSL",
    "producer.sasl.mechanism": "AWS_MSK_IAM",
    "producer.sasl.jaas.config": f"{_IAM}IAMLoginModule required;",
    "producer.sasl.client.callback.handler.class": f"{_IAM}IAMClientCallbackHandler",
}
_LEAST = {
    "database.hostname": "shop.abc123.eu-west-1.rds.amazonaws.com",
    "database.user": "cdc",
    "topic.prefix": "shop",
    "checkpoint.location": "/nowhere",
    "signal.enabled.channels": "file",
    "signal.file": "/nowhere/signals",
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    amazon_tokens.cache_clear()
    yield
    amazon_tokens.cache_clear()


def loaded(**more: str) -> Settings:
    given = {name.replace("__", "."): value for name, value in more.items()}
    return from_properties({**_LEAST, **_MSK, **given}, {}).settings


def test_the_login_of_a_workers_file_becomes_a_token_for_the_brokers_region() -> None:
    kafka = loaded().kafka
    client = ClientSettings(kafka.bootstrap_servers, kafka.producer).for_admin()

    assert client["sasl.mechanism"] == "OAUTHBEARER"
    assert not any(name.startswith("incsnap.") for name in client)
    text, ends = client["oauth_cb"]("")
    signed = parse_qs(urlsplit(base64.urlsafe_b64decode(text + "==").decode()).query)
    assert "/eu-west-1/kafka-cluster/" in signed["X-Amz-Credential"][0]
    assert 600 < ends - time.time() <= 900


def test_a_login_without_a_region_says_what_to_set() -> None:
    kafka = loaded(bootstrap__servers="kafka:9098").kafka
    with pytest.raises(ConfigError, match="needs the region") as caught:
        ClientSettings(kafka.bootstrap_servers, kafka.producer).for_admin()
    assert "AWS_REGION" in caught.value.hint


def test_a_session_of_rds_has_a_token_in_place_of_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    mysql = loaded(incsnap__database__login="rds-iam", database__ssl__mode="required").mysql
    signed = urlsplit(f"//{token(mysql)}")
    assert signed.netloc == "shop.abc123.eu-west-1.rds.amazonaws.com:3306"
    assert parse_qs(signed.query)["DBUser"] == ["cdc"]
    with pytest.raises(ConfigError, match="over TLS alone"):
        loaded(incsnap__database__login="rds-iam", database__ssl__mode="disabled")
    elsewhere = loaded(database__hostname="db", incsnap__database__login="rds-iam", database__ssl__mode="required")
    with pytest.raises(ConfigError, match="needs a region"):
        token(elsewhere.mysql)


@pytest.mark.parametrize("quote", ['"', "'", ""])
def test_the_options_of_a_login_are_obeyed_or_warned_of(quote: str) -> None:
    options = {"awsRoleArn": "arn:aws:iam::1:role/cdc", "awsRoleExternalId": "x", "awsStsRegion": "eu-west-1"}
    listed = " ".join(f"{name}={quote}{value}{quote}" for name, value in options.items())
    login = f"{_IAM}IAMLoginModule required {listed};"
    given = from_properties({**_LEAST, **_MSK, "producer.sasl.jaas.config": login}, {})
    (warning,) = (each for each in given.warnings if "aws" in each)
    assert warning.startswith("producer.sasl.jaas.config: no effect of awsRoleExternalId, awsStsRegion, ")
    assert given.settings.kafka.producer[AMAZON] == f"eu-west-1||{options['awsRoleArn']}|"


def test_a_login_with_obeyed_options_alone_is_not_warned_of() -> None:
    login = f'{_IAM}IAMLoginModule required awsProfileName="cdc profile" awsRoleSessionName="s";'
    given = from_properties({**_LEAST, **_MSK, "producer.sasl.jaas.config": login}, {})
    assert not any("aws" in each for each in given.warnings)
    assert given.settings.kafka.producer[AMAZON] == "eu-west-1|cdc profile||s"
