"""Schemas in Apicurio's registry through its own REST API, in both of its versions."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.apicurio import ApicurioRegistry
from incsnap.kafka.refusals import SinkRefused

pytestmark = pytest.mark.servers

START = "apicurio.registry."
OF_3 = {f"{START}headers.enabled": "true", f"{START}use-id": "globalId"}


def record(type_: str) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": type_}]})


@pytest.fixture(params=["v2", "v3"])
def api(request: pytest.FixtureRequest, registry_url: str) -> str:
    return registry_url.replace("/apis/ccompat/v7", f"/apis/registry/{request.param}")


@pytest.fixture
def subject() -> str:
    return f"apicurio{secrets.token_hex(4)}.shop.orders-value"


def registry(api: str, kind: str = "avro", **options: str) -> ApicurioRegistry:
    given = {START + name.replace("_", "-"): value for name, value in options.items()}
    return ApicurioRegistry({f"{START}url": api, **OF_3, **given}, kind)


def kept(api: str, kind: str, number: int) -> Any:
    place = f"{api.rpartition('/')[0]}/v3/ids/{kind}s/{number}"
    with urllib.request.urlopen(place, timeout=60) as answer:
        return json.load(answer)


def test_ids_are_those_of_versions_or_of_contents(api: str, subject: str) -> None:
    registry(api, auto_register="true").reach()
    of_version = registry(api, auto_register="true").register(subject, record("long"))
    of_content = registry(api, auto_register="true", use_id="contentId").register(subject, record("long"))
    elsewhere = registry(api, auto_register="true").register(f"a{subject}", record("long"))
    same = registry(api, auto_register="true", use_id="contentId").register(f"a{subject}", record("long"))

    assert kept(api, "globalId", of_version) == kept(api, "contentId", of_content) == json.loads(record("long"))
    assert elsewhere != of_version
    assert same == of_content


def test_without_registration_a_schema_is_looked_up(api: str, subject: str) -> None:
    with pytest.raises(SinkRefused, match=r"auto-register=false|no such version"):
        registry(api).register(subject, record("long"))
    number = registry(api, auto_register="true").register(subject, record("long"))
    newer = registry(api, auto_register="true").register(subject, record("string"))

    assert registry(api).register(subject, record("long")) == number
    assert registry(api, find_latest="true").register(subject, record("string")) == newer
    with pytest.raises(SinkRefused, match="id: string became long"):
        registry(api, find_latest="true").register(subject, record("long"))


def test_a_schema_of_connect_is_kept_as_such(api: str, subject: str) -> None:
    schema = '{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false}'
    number = registry(api, "ext-json", auto_register="true").register(subject, schema)
    assert kept(api, "globalId", number) == json.loads(schema)


def test_the_registrys_rules_refuse_with_their_reason(api: str, subject: str) -> None:
    registry(api, auto_register="true").register(subject, record("long"))
    name = "type" if api.endswith("v2") else "ruleType"
    body = json.dumps({name: "COMPATIBILITY", "config": "FULL"}).encode()
    place = f"{api}/groups/default/artifacts/{subject}/rules"
    with urllib.request.urlopen(urllib.request.Request(place, body, {"Content-Type": "application/json"}), timeout=60):
        pass
    with pytest.raises(SinkRefused, match="Incompatible artifact"):
        registry(api, auto_register="true").register(subject, record("string"))


def test_a_registry_that_does_not_run_is_named() -> None:
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:9/.* does not answer listing"):
        registry("http://127.0.0.1:9/apis/registry/v2").reach()


@pytest.fixture
def guarded() -> Iterator[tuple[str, list[str]]]:
    """The address of a server that gives a token, and wants it or a password; with the logins that it saw."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(200, {"access_token": "t0k", "token_type": "Bearer", "expires_in": 60})

        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            known = ("Bearer t0k", "Basic " + base64.b64encode(b"me:pw").decode())
            self._answer(200 if seen[-1] in known else 401, {"message": "who are you"})

        def _answer(self, status: int, body: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("login", "sent"),
    [
        ({"username": "me", "password": "pw"}, "Basic"),
        ({"service.token.endpoint": "{url}/token", "client.id": "me", "client.secret": "s"}, "Bearer"),
        ({}, ""),
    ],
)
def test_logins(guarded: tuple[str, list[str]], login: dict[str, str], sent: str) -> None:
    url, seen = guarded
    given = {f"apicurio.auth.{name}": value.format(url=url) for name, value in login.items()}
    client = ApicurioRegistry({f"{START}url": f"{url}/apis/registry/v2", **given}, "avro")
    if sent:
        client.reach()
    else:
        with pytest.raises(ConfigError, match="who are you"):
            client.reach()
    assert seen[-1].partition(" ")[0] == sent
