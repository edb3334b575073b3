"""The servers that a job speaks to, and how: MySQL, Kafka, the schema registry."""

from __future__ import annotations

from pydantic import Field, SecretStr

from incsnap.config.frozen import Frozen
from incsnap.config.secrets import Properties, Secret


class MySqlSettings(Frozen):
    hostname: str
    port: int = 3306
    user: str
    password: Secret = SecretStr("")
    #: disabled | preferred | required | verify_ca | verify_identity
    ssl_mode: str = "preferred"
    #: PEM files
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    ssl_key_password: Secret = SecretStr("")
    #: the id our replication connection gives itself; unique among the server's replicas
    server_id: int = 0
    connect_timeout_seconds: float = 30.0
    #: what one SELECT of a snapshot may take at most
    query_timeout_seconds: float = 600.0

    @property
    def address(self) -> str:
        return f"{self.hostname}:{self.port}"


class KafkaSettings(Frozen):
    bootstrap_servers: str
    #: librdkafka's names (``producer.`` cut off)
    producer: Properties = Field(default_factory=dict, repr=False)


class RegistrySettings(Frozen):
    """The schema registry of Avro keys and values; its client's own names (``basic.auth.user.info``)."""

    url: str = ""
    client: Properties = Field(default_factory=dict, repr=False)
