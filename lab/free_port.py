"""Loopback ports nobody listens on."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from incsnap.errors import ServerUnreachable

#: How often a server is started on other ports when somebody took ours between choosing and listening.
ATTEMPTS = 5


class PortTaken(ServerUnreachable):
    hint = "Start again; other ports are chosen each time."


def free_ports(count: int) -> list[int]:
    """``count`` different ports that were free a moment ago. Nobody holds them: be ready to choose again."""
    with ExitStack() as probes:
        ports = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(int(probe.getsockname()[1]))
        return ports


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
