"""The port of a job: who is answered with what, and what nobody can do without the token."""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from incsnap.config.explained import Explained
from incsnap.config.settings import MonitoringSettings
from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.monitoring.http_server import StatusServer
from incsnap.monitoring.job_status import Point
from incsnap.monitoring.liveness import STALLED_MS
from incsnap.monitoring.status import FAILED, RETRYING, STARTING, JobStatus, load
from tests.support.job_statuses import BINLOG, now_ms, running
from tests.support.waiting import wait_until

TOKEN = "a-token-of-some-length"


@dataclass
class Job:
    status: JobStatus = field(default_factory=running)
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problem: Exception | None = None

    def send(self, kind: str, data: dict[str, Any]) -> tuple[str, list[str]]:
        if self.problem is not None:
            raise self.problem
        self.sent.append((kind, data))
        return "its-id", []


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Job, tuple[str, int]]]:
    """Yield a job and its server's address. All tests share the server, because ending a server takes half a second."""
    job = Job()
    for address in serve(job, TOKEN):
        yield job, address


@pytest.fixture
def job(served: tuple[Job, tuple[str, int]]) -> Job:
    vars(served[0]).update(vars(Job()))
    return served[0]


@pytest.fixture
def address(served: tuple[Job, tuple[str, int]], job: Job) -> tuple[str, int]:
    return served[1]


def serve(job: Job, token: str) -> Iterator[tuple[str, int]]:
    # Without a port a free one is taken.
    settings = MonitoringSettings(port=None, token=SecretStr(token))
    explained = (Explained("topic.prefix", "shop", "file", "obeyed"),)
    server = StatusServer(settings, lambda: job.status, lambda: [Point(1, 2, 3.0, 4.0, 5.0)], explained, job.send)
    yield server.address
    server.close()


def asked(
    address: tuple[str, int], path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


def signal(address: tuple[str, int], content: Any, **headers: str) -> tuple[int, Any]:
    body = content if isinstance(content, str) else json.dumps(content)
    code, text, _ = asked(address, "/signal", "POST", body, **headers)
    return code, json.loads(text)


# -- what is told


def test_the_status_is_told_as_the_file_has_it(address: tuple[str, int], job: Job) -> None:
    code, text, headers = asked(address, "/status")
    status = json.loads(text)

    assert code == 200
    assert status.pop("actions") is True
    assert load(status) == job.status
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/", "<title>incsnap</title>"),
        ("/?from=a-bookmark", "<title>incsnap</title>"),
        ("/page.css", "prefers-color-scheme: dark"),
        ("/page.js", "fetch("),
        ("/history", "[[1, 2, 3.0, 4.0, 5.0]]"),
        ("/settings", '"name": "topic.prefix"'),
    ],
)
def test_the_page_and_its_parts_are_there(path: str, part: str, address: tuple[str, int]) -> None:
    code, text, headers = asked(address, path)

    assert (code, part in text) == (200, True)
    assert "default-src 'self'" in headers["Content-Security-Policy"]


def test_the_page_needs_nothing_of_the_internet(address: tuple[str, int]) -> None:
    for path in ("/", "/page.css", "/page.js"):
        page = asked(address, path)[1].replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in page
        assert "https:" not in page


@pytest.mark.parametrize("path", ["/nothing", "/../setup.cfg", "/page/index.html", "/%2e%2e/job_status.py"])
def test_unknown_paths_are_404(path: str, address: tuple[str, int]) -> None:
    assert asked(address, path)[0] == 404


def test_a_name_that_was_made_to_mean_this_machine_is_refused(address: tuple[str, int]) -> None:
    for host, code in (("evil.example", 421), ("evil.example:80", 421), ("localhost:1", 200), ("[::1]:1", 200)):
        assert asked(address, "/status", Host=host)[0] == code


# -- health


def test_a_job_that_streams_is_healthy_and_ready(address: tuple[str, int]) -> None:
    assert [asked(address, path)[0] for path in ("/health", "/ready")] == [200, 200]


@pytest.mark.parametrize(("state", "code"), [(RETRYING, 200), (FAILED, 503)])
def test_health_is_told_without_a_body_to_who_asks_so(
    state: str, code: int, address: tuple[str, int], job: Job
) -> None:
    job.status = running(state=state)

    answered, body, headers = asked(address, "/health", "HEAD")

    assert (answered, body) == (code, "")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    ("changed", "health", "ready", "why"),
    [
        ({"asked_ms": -STALLED_MS - 10_000}, 503, 503, "no batch has ended for 1"),
        ({"state": RETRYING}, 200, 503, "it is retrying"),
        ({"state": STARTING, "stream": None}, 200, 503, "it is starting"),
        ({"stream": None}, 200, 503, "the first batch is not planned yet"),
        ({"stream": replace(running().stream, connected=False)}, 200, 503, "does not send its binlog"),  # type: ignore[type-var]
        ({"state": FAILED}, 503, 503, "it has failed"),
        ({"written_ms": -60_000}, 503, 503, "its status is not updated any more"),
    ],
)
def test_a_job_that_hangs_is_told_from_one_that_waits(
    changed: dict[str, Any], health: int, ready: int, why: str, address: tuple[str, int], job: Job
) -> None:
    """Times are from now on: a test may run minutes after its cases were made."""
    times = {name: now_ms() + value for name, value in changed.items() if name.endswith("_ms")}
    job.status = running(**{"since_ms": 0, **changed, **times})

    assert asked(address, "/health")[0] == health
    code, text, _ = asked(address, "/ready")
    assert code == ready
    assert why in json.loads(text)["problem"]


# -- metrics


def samples(address: tuple[str, int]) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the samples of the page `/metrics`: (name, sorted values of labels) -> value."""
    families = text_string_to_metric_families(asked(address, "/metrics")[1])
    return {(s.name, tuple(sorted(s.labels.values()))): s.value for family in families for s in family.samples}


def test_metrics_have_the_names_that_debeziums_dashboards_ask_for(address: tuple[str, int]) -> None:
    metrics = samples(address)
    streaming, snapshot = ("mysql", "shop", "streaming"), ("mysql", "shop", "snapshot")

    assert metrics["debezium_metrics_MilliSecondsBehindSource", streaming] == 63
    assert metrics["debezium_metrics_Connected", streaming] == 1
    assert metrics["debezium_metrics_TotalNumberOfEventsSeen", streaming] == 12_345_678
    assert metrics["debezium_metrics_BinlogPosition", streaming] == 1_000_000
    assert metrics["debezium_metrics_SnapshotRunning", snapshot] == 1
    assert metrics["debezium_metrics_RemainingTableCount", snapshot] == 5
    assert metrics["debezium_metrics_RowsScanned", tuple(sorted((*snapshot, "shop.orders")))] == 1_240_000


def test_metrics_of_our_own_have_their_units_in_their_names(address: tuple[str, int]) -> None:
    metrics = samples(address)

    assert metrics["incsnap_state", ("running", "shop")] == 1
    assert metrics["incsnap_state", ("retrying", "shop")] == 0
    assert metrics["incsnap_binlog_behind_bytes", ("shop",)] == 400_000
    assert metrics["incsnap_binlog_file", (BINLOG, "shop")] == 1
    assert metrics["incsnap_change_events_total", ("shop",)] == 12_345_678
    assert metrics["incsnap_snapshot_rows_discarded_total", ("shop",)] == 512
    assert metrics["incsnap_snapshot_keys_quarantined", ("shop", "shop.orders")] == 1
    assert metrics["incsnap_snapshot_seconds_left", ("shop", "shop.orders")] == 11.8
    assert ("incsnap_snapshot_seconds_left", ("shop", "shop.people_with_a_rather_long_name")) not in metrics
    assert metrics["process_open_fds", ()] > 0


def test_a_job_that_has_not_begun_has_metrics_too(address: tuple[str, int], job: Job) -> None:
    job.status = JobStatus("0.1.0", "shop", "h", 1, 1, STARTING, 1, 1, 1_000)

    assert samples(address)["incsnap_state", ("shop", "starting")] == 1


# -- signals


def test_a_signal_is_sent_with_the_token(address: tuple[str, int], job: Job) -> None:
    data = {"type": "incremental", "data-collections": ["shop.orders"]}
    answer = signal(address, {"type": "execute-snapshot", "data": data}, Authorization=f"Bearer {TOKEN}")

    assert answer == (202, {"id": "its-id"})
    assert job.sent == [("execute-snapshot", data)]


def test_a_signal_keeps_the_digits_of_numbers(address: tuple[str, int], job: Job) -> None:
    number = "12345678901234567890.1234567891"
    body = f'{{"type":"execute-snapshot","data":{{"incsnap-keys":[{{"n":{number}}}]}}}}'

    assert signal(address, body, Authorization=f"Bearer {TOKEN}")[0] == 202
    assert job.sent == [("execute-snapshot", {"incsnap-keys": [{"n": Decimal(number)}]})]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "token missing"),
        ("Bearer ", "token missing"),
        ("Bearer another-token-as-long", "wrong token"),
        (f"Bearer {TOKEN}x", "wrong token"),
        ("Bearer ä", "wrong token"),
    ],
)
def test_no_signal_is_sent_with_another_token(given: str, problem: str, address: tuple[str, int], job: Job) -> None:
    code, answer = signal(address, {"type": "pause-snapshot"}, Authorization=given.encode().decode("latin-1"))

    assert (code, answer["problem"]) == (403, problem)
    assert job.sent == []


def test_a_body_is_not_awaited_from_a_client_without_the_token(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=60) as client:
        client.settimeout(60)
        client.sendall(b"POST /signal HTTP/1.0\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        answer = client.recv(10_000)

    assert answer.startswith(b"HTTP/1.0 403")


def test_connections_are_bounded(address: tuple[str, int]) -> None:
    before = set(threading.enumerate())
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(40)]

        def closed() -> int:
            """Return how many connections the server has closed: those over the bound. It sends nothing to others."""
            return len(select.select(clients, [], [], 0.0)[0])

        wait_until(lambda: closed() >= 8)
        for client in clients:
            client.settimeout(60)
        assert [client.recv(1) for client in select.select(clients, [], [], 0.5)[0]] == [b""] * 8
        assert len(set(threading.enumerate()) - before) <= 32

    def answers() -> bool:
        try:
            return asked(address, "/health")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    wait_until(answers)


def test_clients_that_send_nothing_keep_no_probe_out(address: tuple[str, int]) -> None:
    with ExitStack() as stack:
        for number in range(40):
            client = stack.enter_context(socket.create_connection(address, timeout=60))
            if number % 2:
                client.sendall(b"GET /health HTTP/1.0\r\nX-Slow: ")

        assert [asked(address, "/health")[0] for _ in range(50)] == [200] * 50


def test_without_a_token_in_the_settings_there_are_no_signals(job: Job) -> None:
    for address in serve(job, ""):
        code, answer = signal(address, {"type": "pause-snapshot"}, Authorization="Bearer ")
        assert (code, "incsnap.page.token" in answer["problem"]) == (403, True)
        assert json.loads(asked(address, "/status")[1])["actions"] is False
    assert job.sent == []


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '"x"', {"type": "log"}, {"type": None}, {"type": "stop-snapshot", "data": [1]}]
)
def test_an_invalid_signal_is_refused(content: Any, address: tuple[str, int], job: Job) -> None:
    assert signal(address, content, Authorization=f"Bearer {TOKEN}")[0] == 400
    assert job.sent == []


@pytest.mark.parametrize(
    ("problem", "code"), [(ConfigError("no channel", "set one"), 400), (ServerUnreachable("away", "look"), 502)]
)
def test_a_signal_that_cannot_be_sent_says_why(
    problem: Exception, code: int, address: tuple[str, int], job: Job
) -> None:
    job.problem = problem
    status, answer = signal(address, {"type": "pause-snapshot"}, Authorization=f"Bearer {TOKEN}")

    assert status == code
    assert set(answer) == {"problem", "hint"}


@pytest.mark.parametrize("length", ["-1", "x", str(2 << 20)])
def test_a_body_of_no_sensible_length_is_not_read(length: str, address: tuple[str, int]) -> None:
    headers = {"Content_Length": length, "Authorization": f"Bearer {TOKEN}"}
    assert asked(address, "/signal", "POST", None, **headers)[0] == 400


def test_a_port_in_use_is_an_error_that_names_it(address: tuple[str, int], job: Job) -> None:
    with pytest.raises(ConfigError, match=rf"incsnap\.metrics\.port: cannot listen on 127\.0\.0\.1:{address[1]}"):
        StatusServer(MonitoringSettings(port=address[1]), lambda: job.status, list, (), job.send)
