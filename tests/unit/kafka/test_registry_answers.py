"""A start waits for a registry that does not answer. It does not wait for a server that is no registry."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from incsnap.errors import ConfigError, IncsnapError, ServerUnreachable
from incsnap.kafka.apicurio import ApicurioRegistry
from incsnap.kafka.registry import Registry
from incsnap.kafka.registry_answers import Reachable, reach
from tests.support.certificates import Authority

Client = Callable[[str], Reachable]


def of_confluent(url: str) -> Registry:
    return Registry(url, {})


def of_apicurio(url: str) -> ApicurioRegistry:
    return ApicurioRegistry({"apicurio.registry.url": f"{url}/apis/registry/v2"}, "ext-json")


clients = pytest.mark.parametrize("client", [of_confluent, of_apicurio])


@contextmanager
def server(status: int, content: bytes, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Yield the port of a server that answers each request with `status` and `content`."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        if context is not None:
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield listening.server_port
        listening.shutdown()
        thread.join()


@clients
def test_a_page_in_the_place_of_a_registry_is_an_error(client: Client) -> None:
    with server(200, b"<html>login</html>") as port, pytest.raises(ConfigError, match="JSONDecodeError") as error:
        reach(client(f"http://127.0.0.1:{port}"))
    assert "registry's URL" in error.value.hint


@clients
def test_a_server_without_the_path_of_a_registry_is_an_error_without_a_schema(client: Client) -> None:
    with server(404, b"404 page not found") as port, pytest.raises(ConfigError, match="404") as error:
        reach(client(f"http://127.0.0.1:{port}"))
    assert "registry's URL" in error.value.hint


@pytest.mark.parametrize(("status", "waits"), [(404, False), (503, True)])
def test_a_start_waits_for_a_token_server_only_if_it_may_answer_later(status: int, waits: bool) -> None:
    login = {"client.id": "me", "client.secret": "s"}
    with server(status, b"no") as port:
        address = f"http://127.0.0.1:{port}"
        login |= {"service.token.endpoint": f"{address}/token"}
        options = {f"apicurio.auth.{name}": value for name, value in login.items()}
        client = ApicurioRegistry({"apicurio.registry.url": f"{address}/apis/registry/v2", **options}, "ext-json")
        with pytest.raises(ServerUnreachable if waits else ConfigError) as failed:
            reach(client)
    assert waits or "token.endpoint" in failed.value.hint


@clients
def test_https_on_a_plain_port_is_an_error(client: Client) -> None:
    with server(200, b"[]") as port, pytest.raises(ConfigError, match="SSL"):
        reach(client(f"https://127.0.0.1:{port}"))


@clients
def test_a_certificate_that_is_not_trusted_is_an_error(client: Client, tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("registry", address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    with server(200, b"[]", context) as port, pytest.raises(ConfigError, match="CERTIFICATE_VERIFY_FAILED"):
        reach(client(f"https://127.0.0.1:{port}"))


@clients
def test_a_start_waits_for_a_registry_that_does_not_listen_or_is_busy(client: Client) -> None:
    with server(503, b"<html>starting</html>") as port, pytest.raises(ServerUnreachable):
        reach(client(f"http://127.0.0.1:{port}"))
    with pytest.raises(ServerUnreachable):
        reach(client(f"http://127.0.0.1:{port}"))


@clients
@pytest.mark.parametrize("status", [401, 422, 503])
def test_an_error_about_a_registry_shows_no_password_of_its_address(client: Client, status: int) -> None:
    with server(status, b"no") as port, pytest.raises(IncsnapError, match="registry http") as failed:
        reach(client(f"http://u:p-1@p-2@127.0.0.1:{port}"))
    assert f"127.0.0.1:{port}" in failed.value.message
    assert "p-1" not in str(failed.value)
    assert "p-2" not in str(failed.value)
