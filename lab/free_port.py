"""Free loopback ports for servers."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from incsnap.errors import ServerUnreachable

#: Most attempts to start a server. Each attempt takes other ports, in case another process took the chosen ones first.
ATTEMPTS = 5


class PortTaken(ServerUnreachable):
    """The error of a server whose port was taken by another process before the server could listen."""

    hint = "Start again; other ports are chosen each time."


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that were free a moment ago.

    They are not reserved: another process may take one, and the caller must then choose again.
    """
    with ExitStack() as probes:
        ports = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(int(probe.getsockname()[1]))
        return ports


def listens(port: int) -> bool:
    """Whether a process listens on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
