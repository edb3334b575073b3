"""The rest of a connector's incremental snapshot, as requests of the job."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.config.settings import Settings
from incsnap.errors import IncsnapError
from incsnap.mysql import catalog
from incsnap.mysql.session import connect
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.table_ordering import CatalogEntry, TableRefused, check_types
from incsnap.snapshot.commands import ChosenRows, DataCollection
from incsnap.snapshot.context import Request
from incsnap.tables import TableId
from incsnap.takeover.connector_offset import RunningSnapshot
from incsnap.types.modes import Modes
from signals import exact_json

#: Writes limits with all characters as they are.
_LINE = json.JSONEncoder(ensure_ascii=False)


def requests_of(
    settings: Settings, running: RunningSnapshot, captured: Mapping[str, TableId], keys: Mapping[str, Sequence[str]]
) -> tuple[tuple[Request, ...], list[str]]:
    """Return what is left of an incremental snapshot, and sentences about it.

    `captured`: captured tables by name. `keys`: names of the columns of each table's key.
    """
    lines: list[str] = []
    requests: list[Request] = []
    for number, waiting in enumerate(running.tables):
        table = captured.get(waiting.name)
        if table is None:
            lines.append(f"{waiting.name} was to be read and is not captured: it is left out.")
            continue
        columns = (waiting.surrogate,) if waiting.surrogate else keys.get(waiting.name, ())
        chosen, problem = _rest(running, columns, settings.modes) if number == 0 else (None, "")
        if chosen is not None and not _can_be_read(settings, table, waiting.surrogate, chosen):
            chosen = None
        requests.append(Request(running.signal, DataCollection(table, waiting.condition, waiting.surrogate, chosen)))
        where = "begins at its first row" if chosen is None else f"goes on behind the key {chosen.first}"
        if problem:
            where += f", because the connector's last key cannot be read: {problem}"
        lines.append(f"The snapshot of {waiting.name} (signal {running.signal}) {where}.")
    return tuple(requests), lines


def _can_be_read(settings: Settings, table: TableId, surrogate: str, chosen: ChosenRows) -> bool:
    """Whether the job can read a range of the table: the order of its rows, or an index, begins with these columns."""
    with closing(connect(settings.mysql)) as connection:
        shape = catalog.shape_of(connection, table)
        collations, indexes = catalog.collations_of(connection, [table]), catalog.indexes_of(connection, [table])
    named = json.loads(chosen.first)
    # A driver of Java gives the bits of a BIT in another order than records have them.
    if shape is None or any(column.type == "bit" for column in shape.columns if column.name in named):
        return False
    entry = CatalogEntry(shape, collations.get(table, {}), indexes.get(table, ()))
    rows = ChosenRowsOf(settings, Files(own_part(settings.checkpoint_location)))
    try:
        rows.range(entry, check_types(entry, settings.columns), chosen, surrogate)
    except (TableRefused, IncsnapError):
        return False
    return True


def _rest(running: RunningSnapshot, columns: Sequence[str], modes: Modes) -> tuple[ChosenRows | None, str]:
    """Return the rows of the first table that are not read; None if the table is to be read from its beginning.

    The text says why the last key cannot be read; "" if it can, or if the reason is not its values. The row of the last
    key is read again, because a range contains its ends.
    """
    if running.last_key is None or running.maximum_key is None:
        return None, running.problem
    try:
        first, last = (
            exact_json.written({name: _limit(value, modes) for name, value in zip(columns, key, strict=True)}, _LINE)
            for key in (running.last_key, running.maximum_key)
        )
    except TypeError as error:
        return None, str(error)
    except ValueError:
        return None, ""
    return ChosenRows(first=first, last=last), ""


def _limit(value: Any, modes: Modes) -> int | float | Decimal | str:
    """Return a value of a key in a form that a range takes. Raise TypeError, which names the value, if it has none."""
    if isinstance(value, int | float | Decimal | str) and not isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        if modes.binary_handling == "hex":
            return value.hex()
        is_safe = modes.binary_handling == "base64-url-safe"
        return base64.b64encode(value, b"-_" if is_safe else None).decode()
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise TypeError("an instant of a DATETIME or TIMESTAMP, whose time zone the offset does not have")
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    raise TypeError(f"a value of the type {type(value).__name__}")
