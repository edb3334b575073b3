"""The answers of a schema registry: the first one, before a job starts, and the HTTP statuses that may pass."""

from __future__ import annotations

import ssl
from typing import Protocol

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.refusals import SinkRefused

_HINT = (
    "Check the registry's URL (http or https, port, path) and its TLS settings in key.converter.* and"
    " value.converter.*."
)
#: Faults of TLS that a server makes while it starts or stops.
_PASSING = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class Reachable(Protocol):
    """A client of a schema registry."""

    def reach(self) -> None:
        """Send a first request. Raise ServerUnreachable if there is no answer, and ConfigError if the login fails."""


def reach(registry: Reachable) -> None:
    """Send the first request to `registry`.

    Raise ServerUnreachable if a registry may answer there later. Raise ConfigError if to wait does not help: the login
    fails, TLS fails, or the answer is not JSON, so that another server listens there.
    """
    try:
        registry.reach()
    except SinkRefused as error:
        # The hint of a refusal is about a schema, and none was sent.
        raise ConfigError(error.message, _HINT) from error
    except ServerUnreachable as error:
        if _is_wrong_server(error):
            raise ConfigError(error.message, _HINT) from error
        raise


def may_pass(status: int) -> bool:
    """Return True if a request with this HTTP status may succeed later: the server is busy, or it starts."""
    return status >= 500 or status in (408, 429)


def _is_wrong_server(error: ServerUnreachable) -> bool:
    """Return True if the cause of `error` is TLS or a text that is not JSON."""
    if isinstance(error.__cause__, ValueError):
        return True
    # The HTTP library does not name the error of TLS as the cause of its own.
    below = error.__cause__
    while below is not None and not isinstance(below, ssl.SSLError):
        below = below.__cause__ or below.__context__
    return below is not None and not isinstance(below, _PASSING)
