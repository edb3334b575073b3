"""The snapshots of a job that goes back to a connector, in the form in which Debezium keeps an incremental snapshot.

Debezium reads one table after the other. It goes on in the first one behind the last key, up to the maximum key, and
begins the others at their first rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pymysql.connections import Connection

from incsnap.config.settings import Settings
from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import view_of
from incsnap.errors import ConfigError, shorten
from incsnap.mysql import catalog
from incsnap.snapshot.commands import ChosenRows
from incsnap.snapshot.context import Request, Scan, id_of
from incsnap.snapshot.keys import Key, can_be_limit
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.window import Window
from incsnap.tables import TableShape
from incsnap.takeover.java_writing import write_key

_COLLECTIONS = "incremental_snapshot_collections"
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar")
#: Java's long has smaller numbers than this.
_TOO_LARGE = 1 << 63


def fields_of_snapshot(
    connection: Connection[Any], settings: Settings, end: Offset, taken: Collection[Request] = ()
) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a connector's offset for the snapshots under way at `end`, and sentences about them.

    `taken`: what the job has taken over of a connector's snapshot. If the connector cannot go on in such a range of
    keys, it reads the whole table anew. Raise ConfigError if the connector would never read the tables.
    """
    snapshot, lines = end.snapshot, list[str]()
    fields: dict[str, Any] = {}
    begun: list[Request] = []
    for scan in snapshot.scans:
        goes_on = not begun and _is_of_debezium(scan.request, begun=True)
        keys = _keys(connection, settings.columns, end, scan) if goes_on else None
        if keys is not None:
            last, maximum = keys
            fields["incremental_snapshot_primary_key"] = write_key(last).hex()
            fields["incremental_snapshot_maximum_key"] = write_key(maximum).hex()
            lines.append(f"The snapshot of {scan.table} goes on behind the key {last}.")
            begun.append(scan.request)
    unfinished = [*(scan.request for scan in snapshot.scans), *snapshot.queue]
    anew = [each for each in unfinished if each not in begun and (each in taken or _is_of_debezium(each, begun=False))]
    for each in unfinished:
        if each not in begun and each not in anew:
            lines.append(f"{each.table}: Debezium cannot read rows that a signal chooses. Signal them later.")
    if anew:
        lines.append(f"Snapshots begin at the first row of: {', '.join(str(each.table) for each in anew)}.")
    waiting = [*begun, *anew]
    if waiting:
        _require_reader(settings, waiting)
        if snapshot.paused:
            lines.append("The snapshot is paused in the job. The connector keeps no pause: it reads on when it starts.")
        fields[_COLLECTIONS] = json.dumps([_collection(each) for each in waiting], separators=(",", ":"))
        fields["incremental_snapshot_correlation_id"] = id_of(waiting[0].signal)
    return fields, lines


def sent_up_to(scan: Scan, windows: Iterable[Window]) -> Key | None:
    """Return the last key up to which all rows of a table were sent; None if there is none or this is not known.

    `windows` are those in flight, in the order in which they were planned. A range that is read again is planned behind
    ranges that follow it. So the key is known only if the windows follow each other up to the end of what is planned.
    """
    if scan.again or scan.quarantine or scan.descending:
        return None
    flying = [window for window in windows if window.scan == scan.number]
    if not flying:
        return scan.boundary
    ends = [*(window.lower for window in flying[1:]), scan.boundary]
    return flying[0].lower if [window.upper for window in flying] == ends else None


def _require_reader(settings: Settings, waiting: Iterable[Request]) -> None:
    """Raise ConfigError if the connector would stream and never read these tables.

    Debezium marks the beginning and the end of a chunk by rows of the signal table, which reach it by the channel
    `source`. With `read.only=true` it goes by GTIDs instead.
    """
    if settings.read_only or "source" in settings.signals.channels:
        return
    tables = shorten(", ".join(str(each.table) for each in waiting))
    raise ConfigError(
        f"the snapshot of {tables} is under way, and the connector would not read the rest: it reads no signal table",
        "Start the job (incsnap run) and let the snapshot end, or stop it by the signal stop-snapshot. Then try again."
        " Or give the connector signal.data.collection with the channel `source` in signal.enabled.channels, or"
        " read.only=true, here and in Kafka Connect.",
    )


def _is_of_debezium(request: Request, *, begun: bool) -> bool:
    """Whether Debezium can read the rows of a request. It can go on in a range of keys, but not begin one."""
    chosen = request.collection.chosen
    return chosen is None or (begun and _is_range(chosen))


def _is_range(chosen: ChosenRows) -> bool:
    return bool(chosen.first or chosen.last) and not chosen.every


def _collection(request: Request) -> dict[str, str | None]:
    collection = request.collection
    return {
        f"{_COLLECTIONS}_id": str(collection.table),
        f"{_COLLECTIONS}_additional_condition": collection.condition or None,
        f"{_COLLECTIONS}_surrogate_key": collection.surrogate or None,
    }


def _keys(
    connection: Connection[Any], rules: ColumnRules, end: Offset, scan: Scan
) -> tuple[list[int | str], list[int | str]] | None:
    """Return the last key that was sent without a gap, and the maximum key; None if the table is to begin anew."""
    last, maximum = sent_up_to(scan, end.snapshot.in_flight), scan.last or scan.maximum
    shape = catalog.shape_of(connection, scan.table)
    if last is None or maximum is None or shape is None:
        return None
    if scan.columns != columns_of_debezium(shape, rules, scan.request.collection.surrogate):
        return None
    keys = [as_values(shape, scan.columns, key) for key in (last, maximum)]
    return None if keys[0] is None or keys[1] is None else (keys[0], keys[1])


def columns_of_debezium(shape: TableShape, rules: ColumnRules, surrogate: str) -> tuple[str, ...]:
    """Return the names of the columns by which Debezium reads a table in chunks, in their order.

    They are the surrogate key alone, or else those of the record's key. `surrogate` is "" for none.
    """
    return (surrogate,) if surrogate else tuple(field.column.name for field in view_of(shape, rules).key)


def as_values(shape: TableShape, columns: Sequence[str], key: Key) -> list[int | str] | None:
    """Return a key as Debezium has it in Java; None if a column is neither an integer nor a text.

    Return None too for an integer that is no long in Java, and for a text that the key has as bytes in hexadecimal
    digits.
    """
    described = {column.name: column for column in shape.columns}
    values: list[int | str] = []
    for name, text in zip(columns, key, strict=False):
        column = described.get(name)
        if text is None or column is None:
            return None
        if column.type in _INTEGERS and int(text) < _TOO_LARGE:
            values.append(int(text))
        elif column.type in _TEXTS and can_be_limit(column):
            values.append(text)
        else:
            return None
    return values if len(values) == len(columns) else None
