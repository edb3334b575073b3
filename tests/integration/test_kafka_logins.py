"""Logins to a real broker by SCRAM, by OAuth, by tokens of our own (as MSK's) and by a client's certificate, with all
clients that a job has.

Amazon's signer cannot be had without Amazon. A signer that asks the tests' token server takes its place.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import committed_batch
from incsnap.kafka.oauth_login import amazon_tokens, with_login
from incsnap.kafka.preflight import cluster_check
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.kafka.transaction import BucketWriter
from lab.fetched_kafka import fetched_kafka
from lab.free_port import free_ports
from signals import send
from signals.channels.kafka_topic import SignalTopic
from tests.support.certificates import Authority
from tests.support.kafka import keyed, read_all, unique
from tests.support.token_server import AUDIENCE, ISSUER, token_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

_USER, _SECRET = "incsnap", "let-me-in"


@dataclass
class Logins:
    """A broker with a listener for each way to log in."""

    plain: str  #: the listener of administrators, without a login
    addresses: dict[str, str]  #: by way: host and port of its listener
    settings: dict[str, dict[str, str]]  #: by way: a client's settings, in the words of a Kafka client
    wrong: dict[str, dict[str, str]]  #: by way: settings with a wrong secret


@pytest.fixture(scope="module")
def logins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logins]:
    folder = tmp_path_factory.mktemp("logins")
    authority = Authority(folder / "tls")
    server, client = authority.pair("server", address="127.0.0.1"), authority.pair("client")
    stranger = Authority(folder / "other").pair("client")
    ports = dict(zip(("scram", "oauth", "certificate"), free_ports(3), strict=True))
    with ExitStack() as stack:
        tokens = stack.enter_context(token_server(_USER, _SECRET, folder))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        keys = tokens.keys.as_uri()
        # Kafka 4 reads keys from allowed places alone, and the java command takes the property from here.
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}")
        kafka = stack.enter_context(fetched_kafka(partial(_broker, ports, keys, server.both, authority)))
        patch.undo()
        _make_user(kafka)
        trust = {"ssl.truststore.location": str(authority.certificate)}
        scram = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", **trust}
        jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'
        oauth = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": _USER,
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.token.endpoint.url": tokens.endpoint,
            **trust,
        }
        amazon = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            **trust,
        }
        iam = 'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="{}";'
        stack.enter_context(_signer(tokens.endpoint))
        certificate = {"security.protocol": "SSL", **trust}
        pems = {"ssl.certificate.location": str(client.certificate), "ssl.key.location": str(client.key)}
        theirs = {"ssl.certificate.location": str(stranger.certificate), "ssl.key.location": str(stranger.key)}
        yield Logins(
            kafka,
            {way: f"127.0.0.1:{port}" for way, port in ports.items()} | {"amazon": f"127.0.0.1:{ports['oauth']}"},
            {
                "amazon": {**amazon, "sasl.jaas.config": iam.format(_SECRET)},
                "scram": {**scram, "sasl.jaas.config": jaas.format(_USER, _SECRET)},
                "oauth": {**oauth, "sasl.oauthbearer.client.secret": _SECRET},
                "certificate": {**certificate, **pems},
            },
            {
                "amazon": {**amazon, "sasl.jaas.config": iam.format("wrong")},
                "scram": {**scram, "sasl.jaas.config": jaas.format(_USER, "wrong")},
                "oauth": {**oauth, "sasl.oauthbearer.client.secret": "wrong"},
                "certificate": {**certificate, **theirs},
            },
        )


@contextmanager
def _signer(endpoint: str) -> Iterator[None]:
    """Put a module in the place of Amazon's signer. It takes a profile's name for the secret of the token server."""

    def signed(region: str, profile: str) -> tuple[str, int]:
        assert region == "eu-central-1"
        login = base64.b64encode(f"{_USER}:{profile}".encode()).decode()
        request = urllib.request.Request(endpoint, b"", {"Authorization": f"Basic {login}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["access_token"], round((time.time() + 3_000) * 1000)

    module = ModuleType("aws_msk_iam_sasl_signer")
    module.MSKAuthTokenProvider = SimpleNamespace(generate_auth_token_from_profile=signed)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        patch.setenv("AWS_REGION", "eu-central-1")
        amazon_tokens.cache_clear()
        yield
    amazon_tokens.cache_clear()


def _broker(
    ports: dict[str, int], keys: str, certificate: Path, authority: Authority, broker: int, controller: int
) -> str:
    names = {way: way.upper() for way in ports}
    ways = [f"{names[way]}://127.0.0.1:{port}" for way, port in ports.items()]
    plain = f"PLAINTEXT://127.0.0.1:{broker}"
    bearer = "org.apache.kafka.common.security.oauthbearer"
    return f"""
listeners={",".join([plain, *ways, f"CONTROLLER://127.0.0.1:{controller}"])}
advertised.listeners={",".join([plain, *ways])}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_SSL,OAUTH:SASL_SSL,CERTIFICATE:SSL
inter.broker.listener.name=PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={certificate}
ssl.truststore.type=PEM
ssl.truststore.location={authority.certificate}
listener.name.certificate.ssl.client.auth=required
listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.scram.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oauth.oauthbearer.sasl.jaas.config={bearer}.OAuthBearerLoginModule required;
listener.name.oauth.oauthbearer.sasl.server.callback.handler.class={bearer}.OAuthBearerValidatorCallbackHandler
listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url={keys}
listener.name.oauth.sasl.oauthbearer.expected.audience={AUDIENCE}
listener.name.oauth.sasl.oauthbearer.expected.issuer={ISSUER}
"""


def _make_user(kafka: str) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(_USER, credential, _SECRET.encode())
    admin = AdminClient({"bootstrap.servers": kafka})
    for done in admin.alter_user_scram_credentials([change]).values():
        done.result(30)


def _loaded(address: str, prefix: str, login: dict[str, str]) -> Settings:
    properties = {
        "database.hostname": "127.0.0.1",
        "database.user": "nobody",
        "topic.prefix": prefix,
        "checkpoint.location": "/nowhere",
        "bootstrap.servers": address,
        "signal.enabled.channels": "kafka",
        "signal.kafka.topic": f"{prefix}-signal",
        "signal.kafka.bootstrap.servers": address,
        **{f"{side}.{name}": value for side in ("producer", "signal.consumer") for name, value in login.items()},
    }
    return from_properties(properties, {}).settings


#: By way: a pattern of what librdkafka says of a wrong secret.
_REASONS = {"scram": "Authentication failed", "oauth": "(?i)token|oauth|oidc|401", "certificate": "(?i)ssl|certificate"}
_REASONS["amazon"] = "(?i)token|oauth|401|timed out"
WAYS = pytest.mark.parametrize("way", ["scram", "oauth", "certificate", "amazon"])


@WAYS
def test_all_clients_of_a_job_log_in(way: str, logins: Logins) -> None:
    prefix = unique(way)
    settings = _loaded(logins.addresses[way], prefix, logins.settings[way])
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    admin = admin_client(client)
    ensure_control_topic(admin, prefix, 1)
    ensure_topics(admin, [f"{prefix}.t", f"{prefix}-signal"], 1)
    writer = BucketWriter(client, prefix, "job")

    transaction = writer.open(0, 1, "digest")
    assert transaction is not None
    with transaction:
        transaction.send([(f"{prefix}.t", 1)], keyed(("key", "value")))
        transaction.commit()

    assert [read.value for read in read_all(logins.plain, f"{prefix}.t")] == [b"value"]
    done = committed_batch(client, prefix, "job", 0, 30.0)
    assert done is not None
    assert done.batch == 1
    send.to_topic(logins.plain, f"{prefix}-signal", prefix, "first", "log", {"message": "here"})
    signals = settings.signals
    with closing(
        SignalTopic(signals.kafka_bootstrap_servers, signals.kafka_topic, prefix, "group", with_login(signals.consumer))
    ) as channel:
        wait_until(lambda: [each.id for each in channel.poll(None, 0.1).records] == ["first"])


@WAYS
def test_a_wrong_login_is_found_before_the_job_starts(way: str, logins: Logins) -> None:
    settings = _loaded(logins.addresses[way], unique(way), logins.wrong[way])
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)

    [(problem, repair)] = cluster_check(client, settings.topic_prefix)

    assert problem.startswith(
        (f"Kafka does not answer at {logins.addresses[way]}: ", "Kafka client settings are wrong")
    )
    assert re.search(_REASONS[way], problem), problem
    assert "producer." in repair
