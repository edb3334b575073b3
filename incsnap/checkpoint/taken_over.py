"""A file with the place of another engine that a new job takes over. `incsnap takeover` writes it.

The job's first offset is made of it. Until then the checkpoint has no other file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from incsnap.checkpoint.files import Files
from incsnap.envelope.seam import Seam
from incsnap.errors import OffsetError
from incsnap.snapshot.context import Request
from incsnap.snapshot.dataclass_json import from_json, to_json

_NAME = "taken-over.json"


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The place of another engine."""

    prefix: str  #: `topic.prefix` of both engines
    delivered: str  #: GTID set: transactions that the other engine has sent whole
    seam: Seam  #: later records that it has sent
    reads_tables: bool = False  #: whether its first snapshot was not finished, so that the tables are read
    signals_at: int | None = None  #: offset of the signal topic behind the signals that it has obeyed
    requests: tuple[Request, ...] = field(default=())  #: tables whose incremental snapshot it has not finished
    #: Of each topic of captured tables the ends of its partitions before the topics were read; () for a topic that did
    #: not exist. Empty in files of earlier releases.
    ends: dict[str, tuple[int, ...]] = field(default_factory=dict)
    #: Digest of the settings that decide which events a batch has, if the job begins inside a transaction: its events
    #: were counted with these settings. "" if the job does not.
    choices: str = ""


def write_taken_over(files: Files, what: TakenOver) -> None:
    """Write the place, forced to the disk."""
    files.write_json(_NAME, to_json(TakenOver, what), durable=True)


def taken_over(files: Files) -> TakenOver | None:
    """Return the place that a new job takes over; None if there is none. Raise OffsetError if the file is damaged."""
    try:
        content = files.read_json(_NAME)
        return None if content is None else from_json(TakenOver, content)
    except ValueError as error:
        raise OffsetError(f"{files.path(_NAME)} is damaged: {error}") from None
