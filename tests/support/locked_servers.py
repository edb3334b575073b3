"""A MySQL and a Kafka that require certificates and passwords, and allow only what is granted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from lab.addresses import MySqlAddress
from lab.fetched_kafka import fetched_kafka
from lab.fetched_mysql import fetched_mysql
from lab.free_port import free_ports
from lab.mysql_client import connect
from tests.support.certificates import Authority

USER = "incsnap"
Grant = tuple[ResourceType, str, ResourcePatternType, Sequence[AclOperation]]


@dataclass(frozen=True, slots=True)
class LockedServers:
    """The addresses of both servers, and their certificate authority."""

    mysql: MySqlAddress
    kafka: str  #: listener for administrators, without a password
    locked_kafka: str  #: listener for all other clients
    authority: Authority

    def grant_mysql(self, password: str, database: str) -> None:
        """Create the user with the rights of docs/operation.md. It needs a certificate and a password."""
        with contextlib.closing(connect(self.mysql)) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {USER}@'%%' IDENTIFIED BY %s REQUIRE X509", (password,))
            cursor.execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}@'%'")
            cursor.execute(f"GRANT SELECT ON `{database}`.* TO {USER}@'%'")

    def grant_kafka(self, prefix: str, notifications: str, signals: str) -> None:
        """Grant the principal the rights of docs/operation.md, and nothing else."""
        write = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
        read = (AclOperation.READ,)
        topic, group, transaction = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
        literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
        grants: list[Grant] = [
            (topic, f"{prefix}.", prefixed, write),
            (topic, prefix, literal, write),
            (topic, notifications, literal, write),
            (topic, f"{prefix}.incsnap-control", literal, read),
            (topic, signals, literal, read),
            (group, "incsnap-", prefixed, read),
            (group, "kafka-signal", literal, read),
            (transaction, f"incsnap-{prefix}-", prefixed, (AclOperation.WRITE, AclOperation.DESCRIBE)),
        ]
        bindings = [
            AclBinding(kind, name, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
            for kind, name, pattern, operations in grants
            for operation in operations
        ]
        admin = AdminClient({"bootstrap.servers": self.kafka})
        for future in admin.create_acls(bindings, request_timeout=30).values():
            future.result()


@contextlib.contextmanager
def locked_servers(folder: Path, kafka_password: str) -> Iterator[LockedServers]:
    authority = Authority(folder / "tls")
    server = authority.pair("server", address="127.0.0.1")
    options = [f"--ssl-ca={authority.certificate}", f"--ssl-cert={server.certificate}", f"--ssl-key={server.key}"]
    (port,) = free_ports(1)

    def settings(broker: int, controller: int) -> str:
        return f"""
listeners=PLAINTEXT://127.0.0.1:{broker},LOCKED://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker},LOCKED://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,LOCKED:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.locked.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{USER}="{kafka_password}";
ssl.keystore.type=PEM
ssl.keystore.location={server.both}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""

    with fetched_mysql(options) as mysql, fetched_kafka(settings) as kafka:
        yield LockedServers(mysql, kafka, f"127.0.0.1:{port}", authority)
