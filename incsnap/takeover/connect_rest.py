"""Requests to the REST interface of Kafka Connect.

The address may have a login, such as `https://user:password@connect:8083`, for a Connect that asks for one
(`BasicAuthSecurityRestExtension`). Messages do not show the login.
"""

from __future__ import annotations

import base64
import http.client
import urllib.error
import urllib.parse
import urllib.request
from contextlib import suppress
from http import HTTPStatus

from incsnap.errors import ConfigError, ServerUnreachable

_SECONDS = 10.0
_JSON = {"Content-Type": "application/json"}
_NO_LOGIN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class NoAnswer(ServerUnreachable):
    """An error: nothing answers at the address of Kafka Connect."""


class NoWorkerListens(NoAnswer):
    """An error: nothing listens at the address of Kafka Connect."""


class RequestRefused(Exception):
    """An error: Connect answers with another code than 2xx."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code} {text}".strip())
        self.code, self.text = code, text


def request(
    url: str,
    connector: str,
    what: str,
    body: bytes | None = None,
    method: str = "GET",
    seconds: float = _SECONDS,
) -> bytes:
    """Return Connect's answer to a request about a connector. `what`: the last part of the path, such as `status`.

    Raise RequestRefused if Connect answers with an error. Raise ConfigError if `url` is no address, or if Connect does
    not accept the login. Raise NoAnswer if Connect does not answer: NoWorkerListens if the connection is refused.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise _no_address(url, str(error)) from None
    if parts.scheme not in ("http", "https") or not name:
        raise _no_address(url, "it begins with neither http:// nor https://, or has no host")
    host = f"[{name}]" if ":" in name else name
    base = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
    address = f"{base}/connectors/{urllib.parse.quote(connector, safe='')}/{what}"
    headers = dict(_JSON) if body is not None else {}
    if parts.username is not None:
        login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    text = ""
    try:
        asked = urllib.request.Request(address, body, headers, method=method)
        with urllib.request.urlopen(asked, timeout=seconds) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        with error, suppress(OSError, http.client.HTTPException):
            text = error.read().decode(errors="replace")
        if error.code in _NO_LOGIN:
            raise ConfigError(
                f"Kafka Connect at {base} does not accept the login: it answers {error.code}",
                "Write the login into the address: https://USER:PASSWORD@HOST:PORT.",
            ) from None
        raise RequestRefused(error.code, text) from None
    except (http.client.InvalidURL, UnicodeError) as error:
        raise _no_address(url, str(error)) from None
    except (OSError, http.client.HTTPException) as error:
        is_refused = isinstance(getattr(error, "reason", error), ConnectionRefusedError)
        kind = NoWorkerListens if is_refused else NoAnswer
        raise kind(f"Kafka Connect at {base} does not answer: {error}") from None


def without_login(url: str) -> str:
    """Return an address for messages.

    >>> without_login("https://user:s3cret@connect:8083")
    'https://connect:8083'
    """
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _no_address(url: str, why: str) -> ConfigError:
    return ConfigError(
        f"{without_login(url)!r} is no address of Kafka Connect: {why}",
        "Write it as http://HOST:PORT, with Connect's port.",
    )
