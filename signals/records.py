"""A record as a channel brought it, and the signals that can be made of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Channel = Literal["source", "kafka", "file"]


@dataclass(frozen=True, slots=True)
class SignalRecord:
    """``data`` is raw: a JSON text, an object already parsed, or nothing. Nothing here has been checked."""

    id: str | None
    type: str | None
    data: object = None
    channel: Channel = "source"
    #: where it stood, for logs and for an id when it has none: a GTID with row, a topic offset, a line's place
    position: str = ""
    #: why the channel could not read it; then the rest is empty
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class AdditionalCondition:
    """Of the tables that ``data_collection`` (a Java regex) matches, take the rows where ``filter`` (SQL) is true."""

    data_collection: str
    filter: str


@dataclass(frozen=True, slots=True)
class ExecuteSnapshot:
    id: str
    #: Java regexes or literal names, ``db.table``
    data_collections: tuple[str, ...]
    additional_conditions: tuple[AdditionalCondition, ...] = ()
    surrogate_key: str | None = None


@dataclass(frozen=True, slots=True)
class StopSnapshot:
    id: str
    #: empty: all
    data_collections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PauseSnapshot:
    id: str


@dataclass(frozen=True, slots=True)
class ResumeSnapshot:
    id: str


@dataclass(frozen=True, slots=True)
class LogMessage:
    """The first ``{}`` in the message stands for the current offset."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class InvalidSignal:
    """Changes nothing and is reported. ``quiet`` when nobody made a mistake (another connector's watermarks)."""

    id: str
    reason: str
    hint: str
    quiet: bool = False


Signal = ExecuteSnapshot | StopSnapshot | PauseSnapshot | ResumeSnapshot | LogMessage | InvalidSignal
