"""Where the servers are, and how the environment says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from incsnap.errors import ConfigError


@dataclass(frozen=True, slots=True)
class MySqlAddress:
    host: str
    port: int
    user: str = "root"
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def properties(self) -> dict[str, str]:
        """A job's settings that lead there."""
        return {
            "database.hostname": self.host,
            "database.port": str(self.port),
            "database.user": self.user,
            "database.password": self.password,
        }


def mysql_of(environment: Mapping[str, str]) -> MySqlAddress | None:
    """``INCSNAP_MYSQL=host:port`` with ``INCSNAP_MYSQL_USER`` (root) and ``INCSNAP_MYSQL_PASSWORD`` (empty)."""
    text = environment.get("INCSNAP_MYSQL", "").strip()
    if not text:
        return None
    host, port = _host_and_port("INCSNAP_MYSQL", text)
    user = environment.get("INCSNAP_MYSQL_USER", "root")
    return MySqlAddress(host, port, user, environment.get("INCSNAP_MYSQL_PASSWORD", ""))


def kafka_of(environment: Mapping[str, str]) -> str | None:
    """``INCSNAP_KAFKA=host:port``, or several with commas, as ``bootstrap.servers`` takes them."""
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
