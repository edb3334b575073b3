"""The places where Kafka Connect keeps a connector's offset, and the newest offset there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incsnap.config.job_file import StrPath
from incsnap.config.load import given_names
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import KeptOffset, kept_offset, kept_offsets, name_there
from incsnap.takeover.java_objects import NotUnderstood, read_object

_WHERE = (
    "Give the worker's file with --worker, or the offset with --offsets: a file with what GET /connectors/NAME/offsets"
    " prints, or the file of a standalone worker or of Debezium Server (offset.storage.file.filename)."
)

#: The first bytes of a standalone worker's file.
_OF_WORKER = b"\xac\xed"


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
    own, of_worker = given_names(file, worker)
    name, prefix = own.get("name", ""), settings.topic_prefix
    known: list[str] = []
    for where, offsets in _offsets(settings, {**of_worker, **own}, given):
        of_prefix = [each for each in offsets if each.server == prefix and each.content]
        there = name_there(of_prefix, name, prefix)
        chosen = [each for each in of_prefix if each.connector in ("", there)] if name else of_prefix
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


def _offsets(
    settings: Settings, named: Mapping[str, str], given: str | None
) -> Iterator[tuple[str, Sequence[KeptOffset]]]:
    """Yield each place of offsets in words, with all offsets there. A worker reads the connector's own topic first.

    Raise ConfigError if no place is named.
    """
    if path := given or named.get("offset.storage.file.filename"):
        yield f"The file {path}", _in_file(Path(path))
        return
    topics = dict.fromkeys(filter(None, map(named.get, ("offsets.storage.topic", "offset.storage.topic"))))
    if not topics:
        raise ConfigError("neither file says where the connector's offset is kept", _WHERE)
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    for topic in topics:
        yield f"The topic {topic}", list(kept_offsets(client, topic).values())


def printed_at(given: str | None) -> int:
    """Return when a file with what Connect's REST interface prints was written, in nanoseconds since 1970.

    `given`: path of the file. Return 0 for none, and for the file of a worker, which writes it itself.
    """
    try:
        if given is not None and not Path(given).read_bytes().startswith(_OF_WORKER):
            return Path(given).stat().st_mtime_ns
    except OSError:
        pass  # `find_offset` raises the error
    return 0


def _in_file(path: Path) -> list[KeptOffset]:
    """Return the offsets in a file: none in an empty one, which a worker takes as new.

    Raise ConfigError if it cannot be read, or has another form.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the file with offsets cannot be read: {error}", _WHERE) from None
    if not content:
        return []
    try:
        if content.startswith(_OF_WORKER):
            kept = read_object(content)
            in_map = [kept_offset(key, value) for key, value in kept.items()]
            return [each for each in in_map if each is not None]
        return [
            KeptOffset("", str(each["partition"]["server"]), each.get("offset"))
            for each in json.loads(content)["offsets"]
        ]
    except (NotUnderstood, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} has no offsets of Kafka Connect: {error}", _WHERE) from None
