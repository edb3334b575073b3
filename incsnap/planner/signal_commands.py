"""The translation of a signal into a command for the engine: patterns become tables, and conditions go to their
tables."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from incsnap.config.settings import StartPlace
from incsnap.errors import shorten
from incsnap.gtid import GtidSet
from incsnap.planner.asked_place import AskedPlace
from incsnap.snapshot.commands import ChosenRows, Command, DataCollection, Execute, Pause, Resume, SetThrottle, Stop
from incsnap.tables import TableId
from signals import exact_json
from signals.records import InvalidSignal, Signal
from signals.resolve import conditions_of, resolve

log = logging.getLogger(__name__)

#: Most names of one signal that are logged. A signal may have ten thousand.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class CapturedTables:
    """The tables that a signal may name."""

    tables: tuple[TableId, ...]  #: all captured tables
    ignore_case: bool = False  #: whether a signal may write their names in any letter case
    signal_table: TableId | None = None  #: table of the signals, which no signal may name; None for none

    def by_name(self) -> dict[str, TableId]:
        """Return the tables by their names, such as `shop.orders`."""
        return {str(table): table for table in self.tables}

    def compared(self, name: str) -> str:
        """Return the form of a name for comparisons: names of one table have one form."""
        return name.lower() if self.ignore_case else name

    def is_signal_table(self, name: str) -> bool:
        """Whether `name` names the signal table."""
        return self.signal_table is not None and self.compared(name) == self.compared(str(self.signal_table))

    def spelled(self, written: TableId) -> TableId:
        """Return the table as the server names it. A statement may write the name in any letter case."""
        name = TableId(self.compared(written.database), self.compared(written.table))
        return next((table for table in self.tables if self.compared(str(table)) == str(name)), name)


Captured = Callable[[], CapturedTables]


def command_of(
    signal: Signal | InvalidSignal, channel: str, captured: Captured, where: str
) -> Command | AskedPlace | None:
    """Return the command that a signal asks for, or None.

    None is for an invalid signal, which is logged, and for a `log` signal. The message of a `log` signal is logged with
    `where` in place of its first `{}`. `where` is the place in the stream.
    """
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
            # Replace it once, as Debezium does: a message of nothing but `{}` would fill the memory.
            log.info("%s", signal.message.replace("{}", where, 1))
            return None
        case "set-binlog-position":
            return _asked_place(signal)


def _asked_place(signal: Signal) -> AskedPlace:
    """Return the place that a signal asks for. Raise ValueError if its GTID set is not understood."""
    if signal.gtid_set is not None:
        return AskedPlace(signal.id, StartPlace(gtid_set=str(GtidSet.parse(signal.gtid_set))))
    assert signal.binlog is not None
    file, position = signal.binlog
    return AskedPlace(signal.id, StartPlace(file=file, position=position))


def _execute(signal: Signal, channel: str, captured: Captured) -> Execute | None:
    tables = captured()
    names = tables.by_name()
    if signal.blocking:
        log.info(
            "Signal %s asks for a blocking snapshot: its rows are read beside the stream, which goes on", signal.id
        )
    resolved = resolve(signal.data_collections, list(names), ignore_case=tables.ignore_case)
    unknown = [name for name in resolved.unknown if not tables.is_signal_table(name)]
    if len(unknown) < len(resolved.unknown):
        log.warning(
            "Signal %s by channel %s: %s is the signal table. No snapshot reads its rows; name another table.",
            signal.id,
            channel,
            tables.signal_table,
        )
    if unknown:
        left = len(unknown) - _NAMED
        log.warning(
            "Signal %s by channel %s: no captured table is called or matches %s%s. Tables are named db.table%s; those"
            " that table.include.list leaves out cannot be snapshotted.",
            signal.id,
            channel,
            ", ".join(shorten(each) for each in unknown[:_NAMED]),
            f" and {left} more" if left > 0 else "",
            "" if tables.ignore_case else ", in the letter case of the server",
        )
    conditions = conditions_of(signal.additional_conditions, resolved.tables)
    surrogate, chosen = signal.surrogate_key or "", chosen_rows(signal)
    belongs_to_one = chosen is not None and bool(chosen.lists_keys or chosen.first or chosen.last)
    if belongs_to_one and len(resolved.tables) > 1:
        log.warning(
            "Signal %s by channel %s is ignored: keys and ranges belong to one table, and %d tables match. Name one.",
            signal.id,
            channel,
            len(resolved.tables),
        )
        return None
    collections = tuple(
        DataCollection(names[table], conditions.get(table, ""), surrogate, chosen) for table in resolved.tables
    )
    ordered = tuple(str(names.get(name, name)) for name in resolved.names)
    return Execute(signal.id, collections, resolved.unknown, names=ordered)


def chosen_rows(signal: Signal) -> ChosenRows | None:
    """Return the rows that a signal chooses, as the engine has them; None for all."""
    chosen = signal.chosen
    if chosen is None:
        return None
    return ChosenRows(
        keys=_json(chosen.keys) if chosen.keys else "",
        topic=chosen.topic,
        files=chosen.files,
        deletes=chosen.deletes,
        first=_json(chosen.first) if chosen.first else "",
        last=_json(chosen.last) if chosen.last else "",
        every=chosen.every,
        seed=chosen.seed,
        walks=chosen.walks,
    )


def _json(value: object) -> str:
    return exact_json.written(value, exact_json.COMPACT)


def _stop(signal: Signal, captured: Captured) -> Stop:
    if not signal.data_collections:
        return Stop(signal.id)
    tables = captured()
    names = tables.by_name()
    stopped = resolve(signal.data_collections, list(names), ignore_case=tables.ignore_case).tables
    return Stop(signal.id, frozenset(names[table] for table in stopped))
