"""Free loopback ports for servers."""

from __future__ import annotations

import contextlib
import secrets
import socket
from contextlib import ExitStack
from pathlib import Path

from incsnap.errors import ServerUnreachable

#: Most attempts to start a server. Each attempt takes other ports, in case another process took the chosen ones first.
ATTEMPTS = 5
_LEAST = 10_000
#: The file with the first and the last port that Linux gives to outgoing connections.
_OF_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
#: The first of these ports by default. Other systems use later ones.
_FIRST_OF_CONNECTIONS = 32_768


class PortTaken(ServerUnreachable):
    """The error of a server whose port was taken by another process before the server could listen."""

    hint = "Start again; other ports are chosen each time."


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that were free a moment ago.

    They are not reserved: another process may take one, and the caller must then choose again. No outgoing connection
    takes one, also not while a server is down that is started again on its port.
    """
    behind = _first_of_connections()
    with ExitStack() as probes:
        ports: list[int] = []
        while len(ports) < count:
            probe = probes.enter_context(socket.socket())
            port = _LEAST + secrets.randbelow(behind - _LEAST)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                ports.append(port)
        return ports


def _first_of_connections() -> int:
    """Return the first port that the kernel gives to outgoing connections, or the default if that is too low."""
    with contextlib.suppress(OSError):
        first = int(_OF_CONNECTIONS.read_text().split()[0])
        if first > 2 * _LEAST:
            return first
    return _FIRST_OF_CONNECTIONS


def listens(port: int) -> bool:
    """Whether a process listens on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
