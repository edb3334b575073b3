"""An HTTP server for metrics, health checks and the page. It runs in the driver's process and ends with the job.

    GET /           the page, with /page.css and /page.js
    GET /status     the page's data as JSON; also /history and /settings
    GET /metrics    metrics for Prometheus
    GET /health     200 while the job makes progress, 503 when it hangs
    GET /ready      200 while the job streams, 503 otherwise
    POST /signal    sends a signal; needs the token

By default the server listens on loopback only. It shows no secrets. It changes nothing unless `incsnap.page.token` is
set.
"""

from __future__ import annotations

import hmac
import json
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from incsnap.config.explained import Explained
from incsnap.config.settings import MonitoringSettings
from incsnap.errors import ConfigError, IncsnapError
from incsnap.monitoring.health import healthy, ready
from incsnap.monitoring.job_status import Point
from incsnap.monitoring.metrics import exposition
from incsnap.monitoring.status import JobStatus, dump
from signals import exact_json

log = logging.getLogger(__name__)

#: A function that sends a signal of a type with its data. It returns the signal's id and warnings about its tables, and
#: raises IncsnapError.
Send = Callable[[str, dict[str, Any]], tuple[str, Sequence[str]]]

_PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
#: The browser loads nothing for the page from other hosts, and shows the page in no other site's frame.
_SOURCES = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HEADERS = {
    "Content-Security-Policy": _SOURCES,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
#: Seconds for one request. A client that sends nothing holds its thread no longer than this.
_SECONDS = 10.0
#: Most connections at a time, each with a thread. A browser with the page open needs one, Prometheus another.
_MOST_CONNECTIONS = 32
#: Most seconds for the thread of a connection that was closed to end.
_CLOSING_SECONDS = 1.0
#: Bytes of a refused body that are read and dropped, and most seconds for that.
_DISCARDED, _DISCARD_SECONDS = 1 << 16, 0.5
#: Most bytes of a signal.
_MOST = 1 << 20
_SIGNALS = frozenset({"execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "incsnap-throttle"})


class StatusServer:
    """The HTTP server of one job. It listens from its creation until `close`.

    `explained` are the job's settings without secrets. Raise ConfigError if the server cannot listen on the port.
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
                f"incsnap.metrics.port: cannot listen on {place}: {error.strerror or error}",
                "Choose another incsnap.metrics.port or incsnap.metrics.host, or stop the program that uses it.",
            ) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="incsnap-http", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port on which the server listens."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def close(self) -> None:
        """Stop the server. A second call has no effect."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _StatusHttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _MOST_CONNECTIONS
    # Do not wait for open requests when the job ends.
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[_Handler], pages: StatusServer) -> None:
        self.pages = pages
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._lock = threading.Lock()
        #: Connections whose request has not come wholly, the oldest first.
        self._silent: dict[socket.socket, None] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread. If `_MOST_CONNECTIONS` others are open, close the oldest that has sent no whole request.

        So clients that send nothing cannot keep a probe of `/health` out. Close this connection if all others have sent
        their requests.
        """
        if not self._free.acquire(blocking=False) and not self._has_made_room():
            self.shutdown_request(request)
            return
        with self._lock:
            self._silent[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.has_asked(request)
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one request, and give its place to another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_asked(request)
            self._free.release()

    def has_asked(self, request: socket.socket) -> None:
        """Record that the connection has sent its request, or is closed."""
        with self._lock:
            self._silent.pop(request, None)

    def _has_made_room(self) -> bool:
        """Close the oldest connection that has sent no whole request, and return whether there is a place now."""
        with self._lock:
            oldest = next(iter(self._silent), None)
            if oldest is None:
                return False
            del self._silent[oldest]
        # The thread that reads from the connection then meets its end.
        with suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)
        return self._free.acquire(timeout=_CLOSING_SECONDS)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log at debug level: a client that hangs up is no error of the job."""
        log.debug("A request from %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _StatusHttpServer
    timeout = _SECONDS
    # One request a connection: after the job's end a kept connection's thread would still answer.
    protocol_version = "HTTP/1.0"
    server_version, sys_version = "incsnap", ""

    def parse_request(self) -> bool:
        """Read the request's headers, as the library asks for. The connection then keeps its place to the end."""
        is_request = super().parse_request()
        self.server.has_asked(self.connection)
        return is_request

    def do_GET(self) -> None:
        """Answer with a page, a metric text or JSON, or with 404 for an unknown path."""
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
            self._tell(HTTPStatus.NOT_FOUND, {"problem": f"{path[:80]} does not exist"})

    def do_HEAD(self) -> None:
        """Answer like GET without a body. Load balancers and uptime monitors check health this way."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a signal: send it if the token is right."""
        pages = self.server.pages
        length = self.headers.get("Content-Length", "")
        if not self._is_for_us():
            return
        token = self.headers.get("Authorization", "").removeprefix("Bearer").strip()
        # The body is read last: only a client with the token may send one.
        if self.path != "/signal":
            self._tell(HTTPStatus.NOT_FOUND, {"problem": f"{self.path[:80]} does not exist"})
        elif not pages.token:
            self._tell(HTTPStatus.FORBIDDEN, {"problem": "set incsnap.page.token to send signals from the page"})
        elif not token:
            self._tell(HTTPStatus.FORBIDDEN, {"problem": "token missing"})
        elif not hmac.compare_digest(token.encode(), pages.token.encode()):
            self._tell(HTTPStatus.FORBIDDEN, {"problem": "wrong token"})
        elif not length.isdecimal() or int(length) > _MOST:
            self._tell(HTTPStatus.BAD_REQUEST, {"problem": "a signal must be a JSON object of at most 1 MB"})
        else:
            self._signal(self.rfile.read(int(length)))
            return
        self._discard()

    def _discard(self) -> None:
        """Read and drop a little of a refused body. The client would lose the answer if the socket closed before."""
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DISCARD_SECONDS)
            self.connection.recv(_DISCARDED)

    def _signal(self, body: bytes) -> None:
        """Send the signal in `body` and answer 202 with its id, 400 for a wrong signal, or 502 if the channel fails."""
        try:
            signal = exact_json.parsed(body)
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
            name, warnings = self.server.pages.send(kind, data)
        except ConfigError as error:
            self._tell(HTTPStatus.BAD_REQUEST, {"problem": error.message, "hint": error.hint})
        except IncsnapError as error:
            self._tell(HTTPStatus.BAD_GATEWAY, {"problem": error.message, "hint": error.hint})
        else:
            log.info("The page sent signal %s %s for %s", kind, name, self.client_address[0])
            self._tell(HTTPStatus.ACCEPTED, {"id": name, **({"warnings": warnings} if warnings else {})})

    def _is_for_us(self) -> bool:
        """Return True if the request's Host header names this machine; otherwise answer 421.

        Only a server on loopback checks this. The check stops DNS rebinding: a foreign site's name that resolves to
        127.0.0.1 would let that site's scripts read the page.
        """
        own = self.server.pages.own_hosts
        host = self.headers.get("Host", "")
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        if own is None or name.lower() in own:
            return True
        self._tell(HTTPStatus.MISDIRECTED_REQUEST, {"problem": f"unknown host {name[:80]}: use localhost"})
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
