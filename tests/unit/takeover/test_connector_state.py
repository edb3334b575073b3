"""Whether a connector runs by its states, and the address of Kafka Connect in a worker's file."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from http.client import IncompleteRead
from unittest.mock import Mock, patch

import pytest

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.takeover import connector_state
from incsnap.takeover.connector_state import rest_of, running_by_group, running_by_rest
from incsnap.takeover.target_checks import require_ended, require_stopped
from tests.support.connect_rest import connect_rest


@pytest.mark.parametrize(
    ("worker", "address"),
    [
        ({}, "http://localhost:8083"),
        # Kafka Connect listens at this port unless `listeners` says otherwise.
        ({"bootstrap.servers": "k:9092"}, "http://localhost:8083"),
        ({"listeners": "http://:8083"}, "http://localhost:8083"),
        ({"listeners": "HTTPS://0.0.0.0:8443,http://:8083"}, "https://localhost:8443"),
        ({"listeners": "http://connect-1:8085"}, "http://connect-1:8085"),
        ({"rest.advertised.host.name": "connect-1"}, "http://connect-1:8083"),
        (
            {"listeners": "https://:8443", "rest.advertised.host.name": "c", "rest.advertised.port": "9"},
            "https://c:9",
        ),
        ({"listeners": "sasl://:8083"}, ""),
        ({"listeners": "http://0.0.0.0:${REST_PORT}"}, ""),
        ({"listeners": "http://[fe80::1]:8085"}, "http://[fe80::1]:8085"),
    ],
    ids=range(10),
)
def test_the_address_of_rest_is_that_of_the_workers_file(worker: dict[str, str], address: str) -> None:
    assert rest_of(worker) == address


def test_a_worker_whose_file_has_no_listeners_is_asked_before_its_file_of_offsets_is_written() -> None:
    worker = {"offset.storage.file.filename": "/var/lib/connect/offsets"}
    with (
        connect_rest([["RUNNING", "RUNNING"]]) as (address, asked),
        patch.object(connector_state, "_LISTENERS", address),
        pytest.raises(ConfigError, match="the connector shop still runs"),
    ):
        require_ended(ClientSettings("k:9092", {}), worker, "shop")

    assert asked == ["/connectors/shop/status"]


@pytest.mark.parametrize(
    ("states", "runs"),
    [
        (["RUNNING", "RUNNING"], True),
        (["RUNNING", "FAILED"], True),
        (["PAUSED", "PAUSED"], True),
        (["RESTARTING", "UNASSIGNED"], True),
        (["UNASSIGNED", "UNASSIGNED"], True),  # between two workers
        (["UNASSIGNED"], True),
        (["STOPPED", "RUNNING"], True),  # the task has not ended yet
        (["STOPPED", "UNASSIGNED"], False),
        (["STOPPED"], False),
        (["FAILED", "FAILED"], False),
        (["FAILED", "UNASSIGNED"], False),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", ["rest", "topic"])
def test_a_connector_without_a_worker_runs_unless_it_is_stopped(states: list[str], runs: bool, source: str) -> None:
    if source == "rest":
        with connect_rest([states]) as (address, _):
            assert bool(running_by_rest(address, "shop")) == runs
        return
    keys = [b"status-connector-shop", *(b"status-task-shop-%d" % task for task in range(len(states) - 1))]
    values = {key: json.dumps({"state": state}).encode() for key, state in zip(keys, states, strict=True)}
    worker = {"group.id": "g", "status.storage.topic": "statuses"}
    group = Mock(id="g", members=[1], error=None)
    with (
        patch.object(connector_state, "admin_client", return_value=Mock(list_groups=Mock(return_value=[group]))),
        patch.object(connector_state, "newest_values", return_value={**values, b"status-connector-other": b"null"}),
    ):
        assert bool(running_by_group(ClientSettings("k:9092", {}), worker, "shop")) == runs


def test_a_connector_whose_name_begins_with_this_name_does_not_count() -> None:
    states = {
        b"status-connector-shop": "STOPPED",
        b"status-task-shop-eu-0": "RUNNING",
        b"status-task-shop-0-0": "RUNNING",
    }
    values = {key: json.dumps({"state": state}).encode() for key, state in states.items()}
    group = Mock(id="g", members=[1], error=None)
    with (
        patch.object(connector_state, "admin_client", return_value=Mock(list_groups=Mock(return_value=[group]))),
        patch.object(connector_state, "newest_values", return_value=values),
    ):
        worker = {"group.id": "g", "status.storage.topic": "statuses"}
        assert running_by_group(ClientSettings("k:9092", {}), worker, "shop") == ""


@pytest.mark.parametrize("answer", [404, 401])
def test_a_worker_that_answers_without_the_connector_writes_its_file_all_the_same(answer: int) -> None:
    with connect_rest([answer]) as (address, _):
        client, worker = ClientSettings("k:9092", {}), {"listeners": address}
        require_ended(client, worker, "shop")
        with pytest.raises(ConfigError, match="its worker answers at"):
            require_ended(client, worker, "shop", in_file=True)
        # The file does not say where the worker is. So this may be another one.
        with patch.object(connector_state, "_LISTENERS", address):
            require_ended(client, {"offset.storage.file.filename": "f"}, "shop", in_file=True)


def test_an_offset_goes_into_no_file_of_a_worker_that_lives() -> None:
    with connect_rest([["STOPPED"]]) as (address, _):
        client, worker = ClientSettings("k:9092", {}), {"listeners": address}
        require_ended(client, worker, "shop")
        with pytest.raises(ConfigError, match="reads its file of offsets only when it starts"):
            require_ended(client, worker, "shop", in_file=True)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (404, "has no connector shop"),
        (["RUNNING"], "is not stopped"),
        (["FAILED"], "is not stopped"),
        (["STOPPED", "RUNNING"], "is not stopped"),
        (401, "does not accept the login"),
        (["STOPPED"], ""),
    ],
    ids=str,
)
def test_an_offset_goes_to_a_connector_that_is_there_and_stopped(answer: int | list[str], problem: str) -> None:
    refused = pytest.raises(ConfigError, match=problem) if problem else nullcontext()
    with connect_rest([answer]) as (address, _), refused:
        require_stopped(address, "shop")


@pytest.mark.parametrize(
    "address",
    ["localhost", "connect:8083", "ftp://connect", "http://:8083", "http://connect:80a", "http://[::1", "http://a b"],
)
def test_what_is_no_address_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match="is no address of Kafka Connect"):
        running_by_rest(address, "shop")


def test_the_login_of_an_address_is_sent_and_not_shown() -> None:
    status = Mock(read=Mock(return_value=b'{"connector": {"state": "RUNNING"}, "tasks": []}'))
    with patch("urllib.request.urlopen", return_value=nullcontext(status)) as opened:
        running = running_by_rest("https://me:s3%40ret@connect:8083/path/", "a b")

    asked = opened.call_args.args[0]
    assert asked.full_url == "https://connect:8083/path/connectors/a%20b/status"
    assert base64.b64decode(asked.headers["Authorization"].removeprefix("Basic ")) == b"me:s3@ret"
    assert running == "Kafka Connect at https://connect:8083/path/ says RUNNING"


def test_an_answer_that_a_killed_worker_has_cut_short_is_none() -> None:
    cut = Mock(read=Mock(side_effect=IncompleteRead(b'{"name":')))
    with (
        patch("urllib.request.urlopen", return_value=nullcontext(cut)),
        pytest.raises(ServerUnreachable, match="does not answer"),
    ):
        running_by_rest("http://connect:8083", "shop")
