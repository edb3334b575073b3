"""A signal as a command for the engine: its patterns become tables, its conditions are given to those they are for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from incsnap.errors import shorten
from incsnap.snapshot.commands import Command, DataCollection, Execute, Pause, Resume, SetThrottle, Stop
from incsnap.tables import TableId
from signals.records import InvalidSignal, Signal
from signals.resolve import conditions_of, resolve

log = logging.getLogger(__name__)

#: Names of one signal that are told in the log: it may have ten thousand.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class CapturedTables:
    """The tables that a signal may mean. ``ignore_case``: whoever names them may write them in any letter case."""

    tables: tuple[TableId, ...]
    ignore_case: bool = False

    def by_name(self) -> dict[str, TableId]:
        return {str(table): table for table in self.tables}

    def compared(self, name: str) -> str:
        """Names that are written so are of one table."""
        return name.lower() if self.ignore_case else name


Captured = Callable[[], CapturedTables]


def command_of(signal: Signal | InvalidSignal, channel: str, captured: Captured, where: str) -> Command | None:
    """What the engine is to do. None for a signal that only shows a message (in which ``where`` stands for ``{}``), and
    for one that is none."""
    if isinstance(signal, InvalidSignal):
        level = logging.DEBUG if signal.quiet else logging.WARNING
        log.log(level, "Signal %s by channel %s is ignored: %s. %s", signal.id, channel, signal.reason, signal.hint)
        return None
    match signal.type:
        case "execute-snapshot":
            return _execute(signal, channel, captured)
        case "stop-snapshot":
            return _stop(signal, captured)
        case "pause-snapshot":
            return Pause(signal.id)
        case "resume-snapshot":
            return Resume(signal.id)
        case "incsnap-throttle":
            return SetThrottle(signal.id, signal.limits)
        case "log":
            # Once, as Debezium: a message of nothing but these would fill the memory.
            log.info("%s", signal.message.replace("{}", where, 1))
            return None


def _execute(signal: Signal, channel: str, captured: Captured) -> Execute:
    tables = captured()
    names = tables.by_name()
    if signal.blocking:
        log.info(
            "Signal %s asks for a blocking snapshot: its rows are read beside the stream, which goes on", signal.id
        )
    resolved = resolve(signal.data_collections, list(names), ignore_case=tables.ignore_case)
    if resolved.unknown:
        left = len(resolved.unknown) - _NAMED
        log.warning(
            "Signal %s by channel %s: no captured table is called or matches %s%s. Tables are named db.table%s; those"
            " that table.include.list leaves out cannot be snapshotted.",
            signal.id,
            channel,
            ", ".join(shorten(each) for each in resolved.unknown[:_NAMED]),
            f" and {left} more" if left > 0 else "",
            "" if tables.ignore_case else ", in the letter case of the server",
        )
    conditions = conditions_of(signal.additional_conditions, resolved.tables)
    collections = tuple(
        DataCollection(names[table], conditions.get(table, ""), signal.surrogate_key or "") for table in resolved.tables
    )
    return Execute(signal.id, collections, resolved.unknown)


def _stop(signal: Signal, captured: Captured) -> Stop:
    if not signal.data_collections:
        return Stop(signal.id)
    tables = captured()
    names = tables.by_name()
    stopped = resolve(signal.data_collections, list(names), ignore_case=tables.ignore_case).tables
    return Stop(signal.id, frozenset(names[table] for table in stopped))
