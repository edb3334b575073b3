"""Checks of the places where a connector's offset is written without Kafka Connect. They change nothing."""

from __future__ import annotations

from collections.abc import Mapping

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.takeover.connect_rest import without_login
from incsnap.takeover.connector_state import rest_of, running_by_group, running_by_rest, states_by_rest

#: Settings of a worker that say where its REST interface is.
_ADDRESS = ("listeners", "rest.advertised.host.name", "rest.advertised.port")


def require_topic(client: ClientSettings, topic: str) -> None:
    """Raise ConfigError if the topic of Connect's offsets does not exist: Kafka would create a topic by this name."""
    if not partition_counts(admin_client(client), [topic]):
        raise ConfigError(
            f"the topic {topic} does not exist, or a partition of it has no leader",
            "Correct offset.storage.topic or --worker. A new worker makes the topic at its first start.",
        )


def require_stopped(url: str, connector: str) -> None:
    """Raise ConfigError unless Kafka Connect at `url` has the connector, and has stopped it.

    Raise ServerUnreachable if Connect does not answer.
    """
    states = states_by_rest(url, connector)
    if states is None:
        raise ConfigError(
            f"Kafka Connect at {without_login(url)} has no connector {connector}",
            'Correct --to-rest, or `name` in the file. Or create the connector with "initial_state": "STOPPED".',
        )
    # Connect takes an offset in no other state, not even in FAILED.
    if states != ["STOPPED"]:
        raise ConfigError(
            f"the connector {connector} is not stopped: Kafka Connect at {without_login(url)} says {', '.join(states)}",
            f"Stop it (PUT /connectors/{connector}/stop), and try again.",
        )


def require_ended(client: ClientSettings, worker: Mapping[str, str], connector: str, *, in_file: bool = False) -> None:
    """Raise ConfigError if a worker runs the connector: it would write its own offset over the one that it gets.

    `worker`: settings of the worker. `in_file`: whether the offset goes into the file of a standalone worker. Such a
    worker reads the file only when it starts, so it may not live at all. Raise ServerUnreachable if Kafka does not
    answer.
    """
    running: str | None = running_by_group(client, worker, connector)
    if not running and (address := rest_of(worker)):
        # Nothing answers at the address of a worker that has ended. Without its own address another one may answer.
        answers, is_own = False, any(name in worker for name in _ADDRESS)
        try:
            running = running_by_rest(address, connector)
            answers = running is not None or is_own
        except ConfigError:
            answers = is_own
        except ServerUnreachable:
            pass
        if in_file and answers and not running:
            running = f"its worker answers at {address}, and reads its file of offsets only when it starts"
    if running:
        raise ConfigError(
            f"the connector {connector} still runs: {running}",
            "Stop its workers and try again. To a worker that runs the offset goes with --to-rest.",
        )
