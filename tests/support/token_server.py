"""An OpenID Connect server that gives signed tokens to one client, and keys with which a broker verifies them."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

ISSUER, AUDIENCE = "https://login.example", "kafka"


@dataclass(frozen=True, slots=True)
class TokenServer:
    """The data of a token server that clients and brokers need."""

    endpoint: str  #: URL at which a client posts its id and secret
    keys: Path  #: file of public keys (a JSON Web Key Set)


@contextmanager
def token_server(client: str, secret: str, folder: Path) -> Iterator[TokenServer]:
    """Serve tokens on a loopback port to `client` with `secret` until the block ends. Refuse other clients."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    numbers = key.public_key().public_numbers()
    public = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": _number(numbers.n), "e": _number(numbers.e)}
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [public]}))
    login = "Basic " + base64.b64encode(f"{client}:{secret}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            allowed = self.headers.get("Authorization") == login
            answer = (
                {"access_token": _token(key, client), "token_type": "Bearer", "expires_in": 3600} if allowed else {}
            )
            body = json.dumps(answer).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="token-server", daemon=True)
    thread.start()
    try:
        yield TokenServer(f"http://127.0.0.1:{server.server_port}/token", keys)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _token(key: rsa.RSAPrivateKey, subject: str) -> str:
    now = int(time.time())
    head = {"alg": "RS256", "typ": "JWT", "kid": "1"}
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 3600, "scope": "kafka"}
    signed = ".".join(_text(json.dumps(part).encode()) for part in (head, claims))
    return f"{signed}.{_text(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
