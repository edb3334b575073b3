"""Whether a connector still runs: by Connect's REST interface, by its workers' group, and by records that arrive."""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.parse
import warnings
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from confluent_kafka import KafkaException

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import newest_values
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.connect_rest import RequestRefused, request, without_login

#: Seconds for which topics are watched.
WATCH_SECONDS = 3.0
_REQUEST_SECONDS = 10.0
_REST_PORT = 8083
#: Kafka Connect's default of `listeners`.
_LISTENERS = f"http://:{_REST_PORT}"
#: States of a connector in which Connect gives no worker its tasks.
_ENDED = {"STOPPED", "FAILED", "DESTROYED"}
#: States in which a task sends nothing. While the connector itself is UNASSIGNED, a rebalance is under way: a worker
#: then gets the connector and its tasks, within `scheduled.rebalance.max.delay.ms` (by default five minutes).
_ENDED_TASKS = _ENDED | {"UNASSIGNED"}


def running_by_rest(url: str, connector: str) -> str | None:
    """Return in words how Connect sees the connector run; "" if it is stopped or failed, None if Connect has no
    connector of this name.

    Raise the errors of `states_by_rest`.
    """
    states = states_by_rest(url, connector)
    if states is None:
        return None
    says = f"Kafka Connect at {without_login(url)} says {', '.join(states)}"
    return says if {states[0]} - _ENDED or set(states[1:]) - _ENDED_TASKS else ""


def states_by_rest(url: str, connector: str) -> list[str] | None:
    """Return the states of the connector and of its tasks; None if Connect has no connector of this name.

    Raise ServerUnreachable if Connect answers with an error: NoAnswer if it does not answer, NoWorkerListens if the
    connection is refused. Raise ConfigError if the address is none, if Connect does not accept the login, or if the
    answer is not Connect's.
    """
    shown = without_login(url)
    try:
        status: dict[str, Any] = json.loads(request(url, connector, "status"))
        return [str(each["state"]) for each in (status["connector"], *status["tasks"])]
    except RequestRefused as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise ServerUnreachable(
            f"Kafka Connect at {shown} answers {error.code} for the connector {connector}"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{shown} does not answer like Kafka Connect: {error}", "Correct the address.") from None


def rest_of(worker: Mapping[str, str]) -> str:
    """Return the address of Connect's REST interface by the worker's file; "" if the file names none with HTTP.

    Without a file the address is Kafka Connect's default on this machine.
    """
    host, port = worker.get("rest.advertised.host.name", ""), worker.get("rest.advertised.port", "")
    try:
        listener = urllib.parse.urlsplit(worker.get("listeners", _LISTENERS).partition(",")[0].strip().lower())
        port = port or str(listener.port or _REST_PORT)
    except ValueError:  # the file is a template: http://0.0.0.0:${REST_PORT}
        return ""
    scheme = worker.get("rest.advertised.listener", "").lower() or listener.scheme or "http"
    if scheme not in ("http", "https") or not (host or listener.netloc):
        return ""
    named = "" if listener.hostname in (None, "0.0.0.0", "::") else str(listener.hostname)
    named = host or named or "localhost"
    return f"{scheme}://{f'[{named}]' if ':' in named and named[0] != '[' else named}:{port}"


def running_by_group(client: ClientSettings, worker: Mapping[str, str], connector: str) -> str:
    """Return in words that distributed workers run the connector; "" if none does or the worker's file names no group.

    The group of the workers tells whether one lives. The topic of states tells whether it runs the connector. Raise
    ServerUnreachable if Kafka does not answer.
    """
    topic = worker.get("status.storage.topic", "")
    members = live_workers(client, worker) if topic and connector else None
    if not members:
        return ""
    states, alive = set[str](), set[str]()
    of_task = re.compile(f"status-task-{re.escape(connector)}-[0-9]+".encode())
    for key, value in newest_values(client, topic).items():
        is_task = of_task.fullmatch(key) is not None
        if is_task or key == f"status-connector-{connector}".encode():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                state = str(json.loads(value or b"null")["state"])
                states.add(state)
                alive |= {state} - (_ENDED_TASKS if is_task else _ENDED)
    if not alive:
        return ""
    return f"{members} workers of the group {worker['group.id']} live, and {topic} says {', '.join(sorted(states))}"


def live_workers(client: ClientSettings, worker: Mapping[str, str]) -> int | None:
    """Return the number of distributed workers that live; None if the worker's file names no group that Kafka shows.

    Kafka does not show a group without the right Describe on it, nor one that was empty for long. Raise
    ServerUnreachable if Kafka does not answer.
    """
    group = worker.get("group.id", "")
    if not group:
        return None
    try:
        with warnings.catch_warnings():
            # The newer call answers for groups of consumers alone.
            warnings.simplefilter("ignore", DeprecationWarning)
            # The library's types say that all fields are None.
            described: list[Any] = admin_client(client).list_groups(group, timeout=_REQUEST_SECONDS)
    except KafkaException as error:
        why = error.args[0].str()
        raise ServerUnreachable(f"Kafka does not describe the group {group} of workers: {why}") from None
    own = [each for each in described if each.id == group and each.error is None]
    return sum(len(each.members) for each in own) if own else None


def arriving_records(client: ClientSettings, topics: Iterable[str], seconds: float = WATCH_SECONDS) -> str:
    """Return in words that records arrive in one of `topics` while they are watched; "" if none arrives."""
    counts = partition_counts(admin_client(client), topics)
    before = topic_ends(client, counts)
    time.sleep(seconds)
    after = topic_ends(client, counts)
    grown = sorted({topic for (topic, number), end in after.items() if end > before[topic, number]})
    return f"records arrive in {', '.join(grown[:3])}" if grown else ""
