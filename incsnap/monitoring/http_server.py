"""One port for metrics, health and the page: a thread of the driver's process, which ends with the job.

    GET /                      the page, with /page.css and /page.js
    GET /status /history /settings   what the page shows, as JSON
    GET /metrics               Prometheus
    GET /health                200 while the job lives and moves, 503 when it hangs
    GET /ready                 200 while it streams, 503 otherwise
    POST /signal               a signal; only with the token

It listens on loopback unless told otherwise, tells no secrets, and changes nothing without ``incsnap.page.token``.
"""

from __future__ import annotations

import hmac
import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from incsnap.config.explained import Explained
from incsnap.config.settings import MonitoringSettings
from incsnap.errors import ConfigError, IncsnapError
from incsnap.monitoring.health import healthy, ready
from incsnap.monitoring.metrics import exposition
from incsnap.monitoring.status import JobStatus, dump
from incsnap.monitoring.watch import Point

log = logging.getLogger(__name__)

#: Sends a signal of this type with this data, and gives its id. Raises ``IncsnapError``.
Send = Callable[[str, dict[str, Any]], str]

_PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
#: A browser gives the page nothing from elsewhere, and shows it in nobody's frame.
_SOURCES = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HEADERS = {
    "Content-Security-Policy": _SOURCES,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
#: Seconds for one request, so that a client that says nothing holds no thread for ever.
_SECONDS = 10.0
#: Bytes of a signal.
_MOST = 1 << 20
_SIGNALS = frozenset({"execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "incsnap-throttle"})


class StatusServer:
    """Listens from the beginning; ``close`` it. ``explained``: the job's settings, without secrets.

    Raises ``ConfigError`` where the port cannot be had.
    """

    def __init__(
        self,
        settings: MonitoringSettings,
        status: Callable[[], JobStatus],
        history: Callable[[], Sequence[Point]],
        explained: Sequence[Explained],
        send: Send,
    ) -> None:
        self.status, self.history, self.explained, self.send = status, history, explained, send
        self.token = settings.token.get_secret_value()
        self.own_hosts = _LOOPBACK if settings.host in _LOOPBACK else None
        self.metrics = exposition(status)
        place = f"{settings.host}:{settings.port}"
        try:
            self._server = _StatusHttpServer((settings.host, settings.port or 0), _Handler, self)
        except OSError as error:
            raise ConfigError(
                f"incsnap.metrics.port: nobody can listen to {place}: {error.strerror or error}",
                "Choose another incsnap.metrics.port or incsnap.metrics.host, or stop what has it.",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="incsnap-http", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Nobody is answered any more; may be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _StatusHttpServer(ThreadingHTTPServer):
    daemon_threads = True
    # What still talks to a job that ends need not be waited for.
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[_Handler], pages: StatusServer) -> None:
        self.pages = pages
        if ":" in address[0]:
            import socket

            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is nobody's fault."""
        log.debug("A request of %s ended with an error", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _StatusHttpServer
    timeout = _SECONDS
    # A connection for each request: a kept one would be answered by its thread after the job's end.
    protocol_version = "HTTP/1.0"
    server_version, sys_version = "incsnap", ""

    def do_GET(self) -> None:
        pages, path = self.server.pages, self.path.partition("?")[0]
        if not self._is_for_us():
            return
        if path in _PAGE:
            name, kind = _PAGE[path]
            content = files("incsnap.monitoring").joinpath("page", name).read_bytes()
            self._answer(HTTPStatus.OK, content, f"{kind}; charset=utf-8")
        elif path == "/metrics":
            self._answer(HTTPStatus.OK, pages.metrics(), "text/plain; version=0.0.4; charset=utf-8")
        elif path in ("/health", "/ready"):
            problem = (healthy if path == "/health" else ready)(pages.status())
            code = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
            self._tell(code, {"state": pages.status().state, "problem": problem or None})
        elif path == "/status":
            self._tell(HTTPStatus.OK, {**dump(pages.status()), "actions": bool(pages.token)})
        elif path == "/history":
            self._tell(HTTPStatus.OK, [list(point) for point in pages.history()])
        elif path == "/settings":
            self._tell(HTTPStatus.OK, [asdict(each) for each in pages.explained])
        else:
            self._tell(HTTPStatus.NOT_FOUND, {"problem": f"there is no {path[:80]}"})

    def do_HEAD(self) -> None:
        """Answers as to GET, without a body: so load balancers and watchers of uptime ask for health."""
        self.do_GET()

    def do_POST(self) -> None:
        pages = self.server.pages
        length = self.headers.get("Content-Length", "")
        if not self._is_for_us():
            return
        if not length.isdecimal() or int(length) > _MOST:
            self._tell(HTTPStatus.BAD_REQUEST, {"problem": "a signal is a JSON object of a megabyte at most"})
            return
        body = self.rfile.read(int(length))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.path != "/signal":
            self._tell(HTTPStatus.NOT_FOUND, {"problem": f"there is no {self.path[:80]}"})
        elif not pages.token:
            self._tell(HTTPStatus.FORBIDDEN, {"problem": "signals by the page need incsnap.page.token in the settings"})
        elif not hmac.compare_digest(token.encode(), pages.token.encode()):
            self._tell(HTTPStatus.FORBIDDEN, {"problem": "the token is another one"})
        else:
            self._signal(body)

    def _signal(self, body: bytes) -> None:
        try:
            signal = json.loads(body)
            kind, data = signal["type"], signal.get("data") or {}
            if kind not in _SIGNALS or not isinstance(data, dict):
                raise ValueError(kind)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._tell(
                HTTPStatus.BAD_REQUEST,
                {"problem": f"send an object with a type of {', '.join(sorted(_SIGNALS))} and its data"},
            )
            return
        try:
            name = self.server.pages.send(kind, data)
        except ConfigError as error:
            self._tell(HTTPStatus.BAD_REQUEST, {"problem": error.message, "hint": error.hint})
        except IncsnapError as error:
            self._tell(HTTPStatus.BAD_GATEWAY, {"problem": error.message, "hint": error.hint})
        else:
            log.info("Signal %s %s sent by the page, for %s", kind, name, self.client_address[0])
            self._tell(HTTPStatus.ACCEPTED, {"id": name})

    def _is_for_us(self) -> bool:
        """Not for another name that somebody has made to mean this machine, so that their page could read ours."""
        own = self.server.pages.own_hosts
        host = self.headers.get("Host", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        if own is None or name.lower() in own:
            return True
        self._tell(HTTPStatus.MISDIRECTED_REQUEST, {"problem": f"this is not {name[:80]}; ask for localhost"})
        return False

    def _tell(self, code: HTTPStatus, content: object) -> None:
        self._answer(code, json.dumps(content).encode(), "application/json")

    def _answer(self, code: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(code)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
        log.debug("%s %s", self.client_address[0], format % args)
