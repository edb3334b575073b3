"""Names of settings whose values nobody may see."""

from __future__ import annotations

import pytest

from incsnap.config.load import explain
from incsnap.config.secrets import HIDDEN, holds_secret, is_secret

#: Kafka's settings of type PASSWORD, and librdkafka's sensitive ones.
KAFKA = (
    "sasl.jaas.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
    "ssl_key",
)
#: Names that Hadoop's `hadoop.security.sensitive-config-keys` and Spark's `spark.redaction.regex` match.
HADOOP = (
    "fs.azure.account.key.shop.dfs.core.windows.net",
    "fs.azure.oauth2.client.id",
    "fs.azure.sas.orders.shop.blob.core.windows.net",
    "fs.gs.auth.service.account.private.key",
    "fs.gs.encryption.key",
    "fs.s3a.access.key",
    "fs.s3a.bucket.shop.session.key",
    "fs.s3a.encryption.key",
    "fs.s3a.server-side-encryption.key",
    "fs.oss.accessKeySecret",
    "ssl.keystore.pass",
)


@pytest.mark.parametrize("name", [*KAFKA, *(f"producer.{name}" for name in KAFKA), "spark.hadoop.x.accessKeyId"])
def test_kafkas_passwords_are_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", HADOOP)
def test_what_hadoop_and_spark_redact_is_secret(name: str) -> None:
    assert is_secret(f"spark.hadoop.{name}")


@pytest.mark.parametrize(
    "name",
    [
        "database.user",
        "incremental.snapshot.chunk.size",
        "message.key.columns",
        "producer.ssl.keystore.location",
        "producer.ssl.keystore.type",
        "spark.io.encryption.enabled",
        "spark.io.encryption.keySizeBits",
        "spark.io.encryption.keygen.algorithm",
        "spark.hadoop.fs.s3a.endpoint",
    ],
)
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)


def test_a_private_key_is_a_secret_under_any_name() -> None:
    assert holds_secret("-----BEGIN EC PRIVATE KEY-----\nMHc")
    assert not holds_secret("-----BEGIN CERTIFICATE-----\nMHc")


@pytest.mark.parametrize("name", ["producer.ssl.keystore.key", "spark.hadoop.fs.azure.account.key.shop", "my.pem"])
def test_the_list_of_settings_hides_keys(name: str, tmp_path: object) -> None:
    file = f"{tmp_path}/shop.properties"
    with open(file, "w", encoding="utf-8") as properties:
        properties.write(f"{name}=-----BEGIN PRIVATE KEY-----MIIE\n")

    (shown,) = (each for each in explain(file).settings if each.name == name)

    assert shown.value == HIDDEN
