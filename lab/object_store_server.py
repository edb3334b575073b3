"""The program `python -m lab.object_store_server`: moto's S3 server on loopback, with counters and faults.

The server counts its requests, and fails some of them on demand. moto accepts any credentials, and it does not
serialise two conditional writes. Both would let a client pass that no S3 would serve. So this server checks signatures
and answers one request at a time.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

Start = Callable[..., Any]
_CONTROL = "/_lab/"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/s3/aws4_request,\s*"
    r"SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>[0-9a-f]+)"
)


class ObjectStoreApplication:
    """The WSGI application: it checks the signature, counts the request, applies a fault, and lets moto answer.

    A fault is a dict with `method` (or `*`), `key` (a pattern), `times`, `status`, `after` and `seconds`. The next
    `times` requests (default: 1) of that method and such a key wait `seconds` and get the HTTP status `status`. With
    `after` they are done before they fail. Without a `status` they only wait.
    """

    def __init__(self, access_key: str, secret_key: str) -> None:
        self._credentials = Credentials(access_key, secret_key)
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._one_by_one = threading.Lock()
        self._requests: list[tuple[str, str]] = []
        self._faults: list[dict[str, Any]] = []

    def __call__(self, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path.startswith(_CONTROL):
            return self._control(path.removeprefix(_CONTROL), environ, start)
        method = "COPY" if "HTTP_X_AMZ_COPY_SOURCE" in environ else None
        method = method or ("LIST" if "list-type" in environ["QUERY_STRING"] else environ["REQUEST_METHOD"])
        key = path.lstrip("/").partition("/")[2]
        self._requests.append((method, key))
        if not self._is_signed(environ):
            return _refused(start, "403 Forbidden", "SignatureDoesNotMatch")
        fault = self._fault(method, key)
        if fault is not None:
            time.sleep(fault.get("seconds", 0.0))
            if fault.get("status") and not fault.get("after"):
                return _refused(start, f"{fault['status']} Fault", "SlowDown")
        with self._one_by_one:
            if fault is None or not fault.get("status"):
                return list(self._moto(environ, start))
            list(self._moto(environ, lambda *_: None))
        return _refused(start, f"{fault['status']} Fault", "InternalError")

    def _control(self, command: str, environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        content = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if command == "requests":
            requests, self._requests = self._requests, []
            answer: object = requests
        else:
            self._faults = json.loads(content)
            answer = None
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(answer).encode()]

    def _fault(self, method: str, key: str) -> dict[str, Any] | None:
        for fault in self._faults:
            if fault["method"] in (method, "*") and re.search(fault["key"], key) and fault.get("times", 1) > 0:
                fault["times"] = fault.get("times", 1) - 1
                return fault
        return None

    def _is_signed(self, environ: dict[str, Any]) -> bool:
        authorization = _AUTHORIZATION.match(environ.get("HTTP_AUTHORIZATION", ""))
        if authorization is None or authorization["key"] != self._credentials.access_key:
            return False
        request = AWSRequest(environ["REQUEST_METHOD"], f"http://{environ['HTTP_HOST']}{_raw_path(environ)}")
        request.params = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        for name in authorization["headers"].split(";"):
            header = name.upper().replace("-", "_")
            value = environ.get(header if header in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{header}", "")
            request.headers[name] = value
        request.context["timestamp"] = environ.get("HTTP_X_AMZ_DATE", "")
        request.context["signing"] = {"bucket": ""}
        signer = _Signer(self._credentials, "s3", authorization["region"])
        canonical = signer.canonical_request(request)
        return bool(signer.signature(signer.string_to_sign(request, canonical), request) == authorization["signature"])


class _Signer(S3SigV4Auth):  # type: ignore[misc]
    """A signer that signs exactly the headers which the client has signed."""

    def headers_to_sign(self, request: Any) -> Any:
        return request.headers

    def payload(self, request: Any) -> Any:
        return request.headers["x-amz-content-sha256"]


def _raw_path(environ: dict[str, Any]) -> str:
    path = environ.get("REQUEST_URI") or environ.get("RAW_URI") or quote(environ["PATH_INFO"])
    return str(path).partition("?")[0]


def _refused(start: Start, status: str, code: str) -> list[bytes]:
    start(status, [("Content-Type", "application/xml")])
    return [f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()]


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # lets clients keep their connections

    def log_request(self, *_: object) -> None:
        pass


def main() -> None:
    """Serve until the process is killed. Read `<access key> <secret key>` from stdin, and write the port to stdout."""
    access_key, secret_key = sys.stdin.readline().split()
    server = make_server(
        "127.0.0.1", 0, ObjectStoreApplication(access_key, secret_key), threaded=True, request_handler=_Quiet
    )
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
