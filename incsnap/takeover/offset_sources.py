"""The places where Kafka Connect keeps a connector's offset, and the newest offset there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incsnap.config.job_file import StrPath
from incsnap.config.load import given_names
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import OF_WORKER, WHERE, ConnectorOffsets


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """A connector's offset, and where it was found."""

    where: str  #: for messages
    connector: str  #: name of the connector; "" if neither the place nor the connector's file says it
    content: dict[str, Any]  #: the offset's JSON


def find_offset(settings: Settings, file: StrPath, worker: str | None, given: str | None) -> FoundOffset:
    """Return the offset of the connector whose file is `file`.

    `worker`: file of its worker. `given`: file with the offset, which is read instead. Raise ConfigError if no place is
    named, or if the place has no offset of this connector. Raise ServerUnreachable if Kafka does not answer.
    """
    places = ConnectorOffsets.of(*given_names(file, worker), given)
    if not places.file and not places.topics:
        raise ConfigError("neither file says where the connector's offset is kept", WHERE)
    name, prefix = places.connector, settings.topic_prefix
    known: list[str] = []
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    for where, offsets in places.places(client):
        of_prefix = [each for each in offsets if each.server == prefix and each.content]
        chosen = places.own(offsets, prefix)
        if not chosen and given and len(of_prefix) == 1:
            chosen = of_prefix
        if len(chosen) == 1 and chosen[0].content is not None:
            return FoundOffset(where, chosen[0].connector or name, chosen[0].content)
        if len(chosen) > 1:
            listed = ", ".join(sorted(each.connector for each in chosen))
            raise ConfigError(
                f"{where} has offsets of several connectors with topic.prefix {prefix}: {listed}", NAME_IT
            )
        known += sorted({f"{each.connector or 'a connector'} (topic.prefix {each.server})" for each in offsets})
    raise ConfigError(
        f"{where} has no offset of the connector {name or 'in FILE'} with topic.prefix {prefix}."
        f" It has those of: {', '.join(known[:10]) or 'no connector'}",
        "Check `name` and topic.prefix in the connector's file: both must be the connector's.",
    )


#: The repair where the connector's name is needed.
NAME_IT = "Add the line `name` to the connector's file, with the connector's name in Kafka Connect."


def printed_at(given: str | None) -> int:
    """Return when a file with what Connect's REST interface prints was written, in nanoseconds since 1970.

    `given`: path of the file. Return 0 for none, and for the file of a worker, which writes it itself.
    """
    try:
        if given is not None and not Path(given).read_bytes().startswith(OF_WORKER):
            return Path(given).stat().st_mtime_ns
    except OSError:
        pass  # `find_offset` raises the error
    return 0
