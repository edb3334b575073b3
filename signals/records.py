"""A record as a channel brought it, and the signal that it is, if it is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Channel = Literal["source", "kafka", "file"]
SignalType = Literal[
    "execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "incsnap-throttle", "log"
]


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
    """Asks only for rows where ``filter`` (SQL) is true, of tables that ``data_collection`` (a Java regex)
    matches."""

    data_collection: str
    filter: str


@dataclass(frozen=True, slots=True)
class Signal:
    """What a record asks for, in the words of its channel; what its type has no use for is empty.

    Which tables are meant is not looked at yet (``resolve``).
    """

    id: str
    type: SignalType
    #: Java regexes or literal names, ``db.table``; of stop-snapshot none: all
    data_collections: tuple[str, ...] = ()
    additional_conditions: tuple[AdditionalCondition, ...] = ()
    surrogate_key: str | None = None
    #: a blocking snapshot is asked for: the same rows, and nothing has to wait for them here
    blocking: bool = False
    #: of log; the first ``{}`` in it stands for the current offset
    message: str = ""
    #: of incsnap-throttle, which is ours: (limit, the most that it may be), from now on; 0 lifts the limit, None leaves
    #: it to the settings
    limits: tuple[tuple[str, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidSignal:
    """Changes nothing and is reported. ``quiet`` when nobody made a mistake (another connector's watermarks)."""

    id: str
    reason: str
    hint: str
    quiet: bool = False
