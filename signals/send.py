"""Sending a signal: as a row of the signal table, a message on the signal topic, or a line of the signal file."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from signals import exact_json


def new_id() -> str:
    """Return a random id for a signal."""
    return str(uuid.uuid4())


def snapshot_data(
    data_collections: Sequence[str] = (),
    conditions: Sequence[tuple[str, str]] = (),
    surrogate_key: str | None = None,
    chosen: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the `data` of execute-snapshot or stop-snapshot.

    `conditions` are pairs of a data collection and SQL. `chosen` are the fields that choose rows (`signals.chosen`).
    """
    data: dict[str, Any] = {"type": "incremental"}
    if data_collections:
        data["data-collections"] = list(data_collections)
    if conditions:
        data["additional-conditions"] = [{"data-collection": table, "filter": sql} for table, sql in conditions]
    if surrogate_key:
        data["surrogate-key"] = surrogate_key
    return {**data, **(chosen or {})}


def to_table(connection: Any, table_sql: str, name: str, kind: str, data: Mapping[str, Any]) -> None:
    """Insert the signal's row, with values by position as in Debezium. Raise the driver's errors.

    `table_sql` is the quoted name of the table.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table_sql} VALUES (%s, %s, %s)", (name, kind, exact_json.written(data)))
    connection.commit()


def to_topic(
    bootstrap_servers: str,
    topic: str,
    prefix: str,
    name: str,
    kind: str,
    data: Mapping[str, Any],
    settings: Mapping[str, str] | None = None,
    timeout_seconds: float = 10.0,
) -> None:
    """Send the message to partition 0 and wait for the acknowledgement.

    Raise KafkaException if Kafka refuses the message, and TimeoutError if the acknowledgement does not arrive in time.
    """
    failed: list[Any] = []
    producer = Producer(
        {
            "log_level": "0",  # the errors that this function raises say what failed
            **(settings or {}),
            "bootstrap.servers": bootstrap_servers,
            "acks": "all",
            "message.timeout.ms": str(round(timeout_seconds * 1000)),
            "linger.ms": "0",
        }
    )
    value = exact_json.written({"id": name, "type": kind, "data": dict(data)})
    producer.produce(
        topic,
        key=prefix.encode(),
        value=value.encode(),
        partition=0,
        on_delivery=lambda error, message: failed.append(error) if error else None,
    )
    left = producer.flush(timeout_seconds)
    if failed:
        raise KafkaException(failed[0])
    if left:
        raise TimeoutError(f"Kafka at {bootstrap_servers} did not acknowledge the signal in {timeout_seconds:g} s")


def to_file(path: str | Path, name: str, kind: str, data: Mapping[str, Any]) -> None:
    """Append the signal's line to the file. Raise OSError if that fails."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(exact_json.written({"id": name, "type": kind, "data": dict(data)}) + "\n")
