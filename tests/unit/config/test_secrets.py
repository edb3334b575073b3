"""Names of settings whose values nobody may see."""

from __future__ import annotations

import pytest

from incsnap.config.load import explain
from incsnap.config.secrets import HIDDEN, is_secret, without_password
from tests.support.job_settings import loaded_with

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


@pytest.mark.parametrize(
    "name",
    [
        "schema.history.internal.azure.storage.account.connectionstring",
        "my.connection.string",
        "my.passwd",
        "my.pwd",
        "my.pass",
        "MyDbPasscode",
    ],
)
def test_other_names_of_passwords_are_secret(name: str) -> None:
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
        "my.bypass.mode",
    ],
)
def test_other_settings_are_shown(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize("name", ["producer.ssl.keystore.key", "spark.hadoop.fs.azure.account.key.shop", "my.pem"])
def test_the_list_of_settings_hides_keys(name: str, tmp_path: object) -> None:
    file = f"{tmp_path}/shop.properties"
    with open(file, "w", encoding="utf-8") as properties:
        properties.write(f"{name}=-----BEGIN PRIVATE KEY-----MIIE\n")

    (shown,) = (each for each in explain(file).settings if each.name == name)

    assert shown.value == HIDDEN


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("http://u:p-1@h:80/x", "http://u:*@h:80/x"),
        ("http://u:p-1@p-2@h", "http://u:*@h"),
        ("http://me@corp.com:p-1@h", "http://me@corp.com:*@h"),
        ("http://u:p-1/p-2:p-3@h", "http://u:*@h"),
        ("http://u:p-1@h,http://v:p-2@p-3@i", "http://u:*@h,http://v:*@i"),
        ("redis://:p-1@h", "redis://:*@h"),
        ("jdbc:oracle:thin:scott/p-1@//h:1521/s", "jdbc:oracle:thin:scott/*@//h:1521/s"),
        ("jdbc:mysql://h/d?user=u&password=p-1;p-2&useSSL=true", "jdbc:mysql://h/d?user=u&password=*&useSSL=true"),
        ("jdbc:mysql://h/d?password=p-1", "jdbc:mysql://h/d?password=*"),
        ("jdbc:mysql://(host=h,user=u,password=p-1)/d", "jdbc:mysql://(host=h,user=u,password=*"),
        (
            "jdbc:sqlserver://h;user=u;password=p-1 p-2;encrypt=true",
            "jdbc:sqlserver://h;user=u;password=*;encrypt=true",
        ),
        ("jdbc:sqlserver://h;password={p-1;p-2};encrypt=true", "jdbc:sqlserver://h;password=*;encrypt=true"),
        ("Server=h;Uid=u;Pwd='p-1;p-2';Port=1", "Server=h;Uid=u;Pwd=*;Port=1"),
        (
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=p-1==;EndpointSuffix=core.windows.net",
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=*;EndpointSuffix=core.windows.net",
        ),
        ("https://h/c?sv=2024&sig=p-1%3D", "https://h/c?sv=2024&sig=*"),
        ("https://h/o?X-Amz-Signature=p-1&X-Amz-Expires=9", "https://h/o?X-Amz-Signature=*&X-Amz-Expires=9"),
        ('{"user": "u", "password": "p-1, \\" p-2", "port": 1}', '{"user": "u", "password": *, "port": 1}'),
        ("-----BEGIN PRIVATE KEY-----MIIEp-1", "*"),
    ],
)
def test_secrets_are_hidden_in_values_of_all_forms(value: str, shown: str) -> None:
    assert without_password(value) == shown.replace("*", HIDDEN)


@pytest.mark.parametrize(
    "value",
    [
        "http://h:8081,http://i:8081",
        "jdbc:mysql://h/d?user=u&useSSL=true",
        "value.after.token == 'x'",
        "user.password,user.token",
        "shop.users:token;shop.t:id",
        "id:generate,token:header:token",
        "https://h/design?assign=1;design=2",
    ],
)
def test_other_values_are_shown_whole(value: str) -> None:
    assert without_password(value) == value


def test_settings_that_go_to_a_client_are_dumped_without_passwords() -> None:
    url = "jdbc:mysql://h/d?password=s3cret"
    settings = loaded_with(producer__url=url, producer__sasl__password="s3cret").settings

    assert settings.kafka.producer["url"] == url
    assert "s3cret" not in settings.model_dump_json()


@pytest.mark.parametrize(
    "name",
    ["schema.history.internal.jdbc.connection.url", "offset.storage.jdbc.connection.url", "bootstrap.server", "my.url"],
)
def test_the_list_of_settings_hides_passwords_in_values(name: str, tmp_path: object) -> None:
    file = f"{tmp_path}/shop.properties"
    with open(file, "w", encoding="utf-8") as properties:
        properties.write(f"{name}=jdbc:mysql://h/d?user=u&password=s3cret\n")

    assert not any("s3cret" in f"{each.value} {each.note}" for each in explain(file).settings)
    assert "s3cret" not in explain(file).problem
