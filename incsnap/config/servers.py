"""Settings of the servers that a job connects to: MySQL, Kafka and the schema registry."""

from __future__ import annotations

from pydantic import Field

from incsnap.config.frozen import Frozen, of
from incsnap.config.secrets import Properties, Secret


class MySqlSettings(Frozen):
    """The MySQL server and the login."""

    hostname: str = of("database.hostname")
    port: int = of("database.port")
    user: str = of("database.user")
    password: Secret = of("database.password")
    login: str = of("incsnap.database.login")  #: password, or rds-iam
    ssl_mode: str = of("database.ssl.mode")
    ssl_ca: str | None = of("database.ssl.truststore")  #: path of a PEM file, as are `ssl_cert` and `ssl_key`
    ssl_cert: str | None = of("database.ssl.keystore")
    ssl_key: str | None = of("database.ssl.keystore")
    ssl_key_password: Secret = of("database.ssl.keystore.password")
    server_id: int = 0  #: id of our replication connection; unique among the server's replicas
    connect_timeout_seconds: float = of("connect.timeout.ms")
    query_timeout_seconds: float = of("database.query.timeout.ms")  #: most seconds for one SELECT of a snapshot

    @property
    def address(self) -> str:
        """The server as `host:port`."""
        return f"{self.hostname}:{self.port}"


class KafkaSettings(Frozen):
    """The Kafka cluster that records are sent to."""

    bootstrap_servers: str = of("bootstrap.servers")  #: host:port, separated by commas
    #: producer settings with librdkafka's names, without `producer.`
    producer: Properties = Field(default_factory=dict, repr=False)


class RegistrySettings(Frozen):
    """The schema registry for Avro keys and values."""

    url: str = ""  #: "": no registry
    #: settings of the registry's client, for example `basic.auth.user.info`
    client: Properties = Field(default_factory=dict, repr=False)
