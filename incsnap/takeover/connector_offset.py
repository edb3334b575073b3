"""The offset of a Debezium connector: the place in the binlog up to which it has sent changes, and its snapshots.

Kafka Connect keeps the offset as JSON. `gtids` are the transactions before the one that was under way. `event` counts
the events of that transaction that are done, BEGIN included, and `row` counts the rows of the next event that are done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incsnap.errors import ConfigError, shorten
from incsnap.gtid import GtidSet
from incsnap.kafka.java_objects import NotUnderstood, read_object

_SNAPSHOT = "incremental_snapshot_"


@dataclass(frozen=True, slots=True)
class WaitingTable:
    """A table of an incremental snapshot that is not finished."""

    name: str  #: `database.table`
    condition: str = ""  #: additional condition; "" for none
    surrogate: str = ""  #: surrogate key; "" for none


@dataclass(frozen=True, slots=True)
class RunningSnapshot:
    """An incremental snapshot that a connector has not finished. The first table is being read."""

    signal: str  #: id of the signal
    tables: tuple[WaitingTable, ...]  #: tables that are read or wait
    last_key: tuple[Any, ...] | None  #: last key of the newest chunk; None if no chunk was read, or not understood
    maximum_key: tuple[Any, ...] | None  #: greatest key of the first table when it was begun; None as for `last_key`
    problem: str = ""  #: why the keys are not understood; "" if they are


@dataclass(frozen=True, slots=True)
class ConnectorOffset:
    """The offset of a connector."""

    gtids: GtidSet  #: transactions before the one that was under way
    file: str  #: binlog file of that transaction
    pos: int  #: byte of `file` where that transaction begins
    event: int = 0  #: its events that are done, BEGIN included
    row: int = 0  #: rows of the next event that are done
    seconds: int = 0  #: time of the newest event, in seconds since 1970; 0: unknown
    snapshot: str = ""  #: `initial` or `blocking` for a snapshot under way; "" for none
    running: RunningSnapshot | None = None  #: incremental snapshot under way; None for none
    #: Offset of the newest signal in Kafka that asked for an incremental snapshot. Only a connector with read.only=true
    #: writes it. None: unknown.
    signal: int | None = None

    @property
    def is_within_transaction(self) -> bool:
        """Whether a part of a transaction was sent."""
        return self.event > 0 or self.row > 0


def offset_of(content: Mapping[str, Any]) -> ConnectorOffset:
    """Return the offset whose JSON is `content`. Raise ConfigError if it is no offset of MySQL's connector, or if it
    has no GTIDs."""
    if not isinstance(content, Mapping):
        raise _no_offset(content, "it is no object")
    try:
        gtids = content.get("gtids")
        file, pos = str(content["file"]), int(content["pos"])
        if not gtids:
            raise ConfigError(
                f"the connector's offset {file}:{pos} has no GTIDs: the server had none when it was written",
                "Set gtid_mode=ON, let the connector run until it has sent a change, and try again."
                " Or begin at the file and position (incsnap.start.binlog.file): its newest changes then come twice.",
            )
        return ConnectorOffset(
            GtidSet.parse(str(gtids)),
            file,
            pos,
            int(content.get("event") or 0),
            int(content.get("row") or 0),
            int(content.get("ts_sec") or 0),
            _snapshot(content),
            _running(content),
            _whole(content.get(f"{_SNAPSHOT}signal_offset")),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise _no_offset(content, str(error)) from None


def _no_offset(content: Any, why: str) -> ConfigError:
    shown = shorten(json.dumps(content, default=str))
    return ConfigError(
        f"this is not the offset of a MySQL connector: {shown}: {why}",
        "Check that the offset is that of this connector.",
    )


def _whole(given: Any) -> int | None:
    return None if given is None else int(given)


def _snapshot(content: Mapping[str, Any]) -> str:
    """Return the kind of the snapshot under way; "" for none or an incremental one, whose tables the offset names.

    Older connectors write `true` for an initial one, and say beside it whether all its rows were sent.
    """
    kind = "" if content.get("snapshot_completed") is True else str(content.get("snapshot") or "").lower()
    return {"true": "initial", "false": "", "incremental": ""}.get(kind, kind)


def _running(content: Mapping[str, Any]) -> RunningSnapshot | None:
    collections = json.loads(content.get(f"{_SNAPSHOT}collections") or "[]")
    if not collections:
        return None
    name = f"{_SNAPSHOT}collections"
    tables = tuple(
        WaitingTable(
            str(each[f"{name}_id"]),
            str(each.get(f"{name}_additional_condition") or ""),
            str(each.get(f"{name}_surrogate_key") or ""),
        )
        for each in collections
    )
    signal = str(content.get(f"{_SNAPSHOT}correlation_id") or "")
    try:
        last, maximum = (_key(content.get(f"{_SNAPSHOT}{each}")) for each in ("primary_key", "maximum_key"))
    except NotUnderstood as error:
        return RunningSnapshot(signal, tables, None, None, str(error))
    return RunningSnapshot(signal, tables, last, maximum)


def _key(serialised: Any) -> tuple[Any, ...] | None:
    """Return a key from the hexadecimal digits of its `Object[]`. Raise NotUnderstood."""
    if not serialised:
        return None
    try:
        key = read_object(bytes.fromhex(str(serialised)))
    except NotUnderstood:
        raise
    except ValueError:
        raise NotUnderstood("a key that is not written in hexadecimal digits") from None
    if not isinstance(key, list):
        raise NotUnderstood("a key that is no array")
    return tuple(key)
