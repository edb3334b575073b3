"""Addresses of the servers, and the environment variables that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.errors import ConfigError


@dataclass(frozen=True, slots=True)
class MySqlAddress:
    """The address of a MySQL server, with a user and a password."""

    host: str  #: name or IP address
    port: int  #: TCP port
    user: str = "root"  #: MySQL user
    password: str = field(default="", repr=False)  #: may be empty

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def properties(self) -> dict[str, str]:
        """Return the settings with which a job connects to this server."""
        return {
            "database.hostname": self.host,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
        }


def mysql_of(environment: Mapping[str, str]) -> MySqlAddress | None:
    """Return the MySQL server that the environment names, or None if it names none.

    The variables are `INCSNAP_MYSQL=host:port`, `INCSNAP_MYSQL_USER` (default: root) and `INCSNAP_MYSQL_PASSWORD`
    (default: empty). Raise ConfigError if the address is not `host:port`.
    """
    text = environment.get("INCSNAP_MYSQL", "").strip()
    if not text:
        return None
    host, port = _host_and_port("INCSNAP_MYSQL", text)
    user = environment.get("INCSNAP_MYSQL_USER", "root")
    return MySqlAddress(host, port, user, environment.get("INCSNAP_MYSQL_PASSWORD", ""))


def kafka_of(environment: Mapping[str, str]) -> str | None:
    """Return the value of `INCSNAP_KAFKA`, or None if the variable is empty.

    The value is `host:port`, or several with commas, as `bootstrap.servers` takes them. Raise ConfigError if one of
    them is not `host:port`.
    """
    text = environment.get("INCSNAP_KAFKA", "").strip()
    if not text:
        return None
    for broker in text.split(","):
        _host_and_port("INCSNAP_KAFKA", broker.strip())
    return text


def _host_and_port(name: str, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"{name}={text!r} is not host:port", f"Write it like {name}=127.0.0.1:3306.")
    return host.strip("[]"), int(port)
