"""The places where a connector's offset is written: Kafka Connect's REST interface, its topic, a worker's file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from incsnap.errors import ConfigError, ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import kept_offset, kept_offsets, name_there
from incsnap.kafka.java_objects import NotUnderstood, read_object
from incsnap.takeover.connect_rest import RequestRefused, request
from incsnap.takeover.hand_back import HandBack
from incsnap.takeover.java_writing import write_map

_SECONDS = 30.0


def to_rest(url: str, connector: str, what: HandBack) -> None:
    """Give the offset to a stopped connector. Raise ConfigError if Connect refuses, ServerUnreachable if it is away."""
    try:
        request(url, connector, "offsets", json.dumps(what.document).encode(), "PATCH", _SECONDS)
    except RequestRefused as error:
        raise ConfigError(
            f"Kafka Connect refuses the offset of {connector}: {error.text}",
            "The connector must exist and be STOPPED (PUT /connectors/NAME/stop, Kafka 3.6 or newer)."
            ' A connector can be created so: "initial_state": "STOPPED".',
        ) from None


def to_topic(client: ClientSettings, topic: str, connector: str, what: HandBack) -> None:
    """Write the offset into the topic of the offsets of Kafka Connect or Debezium Server. Neither may run.

    Raise ServerUnreachable if Kafka does not take the record.
    """
    name = name_there(kept_offsets(client, topic).values(), connector, what.prefix)
    failed: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error.str())

    settings = {**client.for_admin(), "acks": "all", "partitioner": "murmur2_random", "enable.idempotence": "true"}
    try:
        producer = Producer(settings)
        producer.produce(topic, value=_compact(what.offset), key=key_of(name, what), on_delivery=delivered)
        left = producer.flush(_SECONDS)
    except (KafkaException, BufferError) as error:
        raise ServerUnreachable(f"The topic {topic} does not take the offset: {error}") from None
    if left or failed:
        raise ServerUnreachable(f"The topic {topic} does not take the offset: {', '.join(failed) or 'no answer'}")


def to_file(path: Path, connector: str, what: HandBack) -> bool:
    """Write the offset into the file of a standalone worker or of Debezium Server, which must not run.

    Offsets of other connectors stay, and so do the owner and the mode of the file. A link stays a link. Return whether
    the file had an offset of this connector.

    Raise ConfigError if the file has another form or cannot be written.
    """
    try:
        target = path.resolve()
        content = target.read_bytes() if target.exists() else b""
        entries = read_object(content) if content else {}  # a worker takes an empty file as a new one, too
        kept = (kept_offset(key, value) for key, value in entries.items())
        name = name_there(filter(None, kept), connector, what.prefix)
        others = {key: value for key, value in entries.items() if key is None or not _is_of(key, name, what)}
        _replace(target, write_map({**others, key_of(name, what): _compact(what.offset)}))
    except (NotUnderstood, AttributeError) as error:
        raise ConfigError(f"{path} is not the file of a standalone worker: {error}", "Name another file.") from None
    except PermissionError as error:
        raise ConfigError(
            f"{path} cannot be written with its owner and mode: {error.strerror}",
            "Run the command as the user of the worker, or as root.",
        ) from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", "Name another file.") from None
    return len(others) < len(entries)


def _replace(path: Path, content: bytes) -> None:
    """Write a file at once. It keeps its owner and its mode, so that a worker of another user can write it again."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(content)
    try:
        if path.exists():
            kept = path.stat()
            os.chown(beside, kept.st_uid, kept.st_gid)
            beside.chmod(stat.S_IMODE(kept.st_mode))
        beside.replace(path)
    except OSError:
        beside.unlink()
        raise


def key_of(connector: str, what: HandBack) -> bytes:
    """Return the key of the connector's offset, as Connect's converter writes it."""
    return _compact([connector, what.partition])


def _is_of(key: bytes, connector: str, what: HandBack) -> bool:
    try:
        return bool(json.loads(key) == [connector, what.partition])
    except ValueError:
        return False


def _compact(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
