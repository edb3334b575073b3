"""Finding the rows that a signal chooses: how they are ordered, between which keys they lie, and which list names them.

A list of keys is read from its source once, checked, put in order, and written beside the checkpoint. Its chunks are
ranges of places in the list. A range of keys gives the table's order two limits. A range of another column than the
key's first is read in the order of an index that begins with this column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pymysql.connections import Connection

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import keys_beside
from incsnap.checkpoint.key_lists import KeyLists, list_at
from incsnap.checkpoint.object_store import set_access
from incsnap.config.settings import Settings
from incsnap.config.topics import table_with_same_keys, tables_by_topic
from incsnap.envelope.key_order import in_order
from incsnap.envelope.listed_keys import KeyRefused, ListedKeys, refusal_of_deletions, refusal_of_keys
from incsnap.envelope.table_format import TableFormat
from incsnap.envelope.table_view import TableView, ViewField
from incsnap.errors import ChunkFailed, ServerUnreachable, StoreRefused, shorten
from incsnap.kafka.client_settings import ClientSettings
from incsnap.mysql.column_defaults import shape_with_defaults
from incsnap.mysql.online_tables import captured_tables
from incsnap.planner.key_sources import is_in_bucket, keys_of
from incsnap.planner.table_ordering import CatalogEntry, Ordering, TableRefused, ordering_of
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.commands import ChosenRows
from incsnap.snapshot.keys import Key, can_be_limit, key_literal
from incsnap.tables import Column
from incsnap.tasks.formats import format_of
from incsnap.types.given_values import compared, printed
from incsnap.types.modes import Modes

#: Keys whose form is checked at a time.
_CHECKED = 5_000
#: Types whose values may be given as MySQL writes them.
_TIMES = ("date", "time", "datetime", "timestamp")


class ChosenRowsOf:
    """The rows that signals of one job choose. `files` is incsnap's part of the checkpoint."""

    def __init__(self, settings: Settings, files: Files) -> None:
        self._settings = settings
        self._kafka = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._files = files
        self.lists = KeyLists(files)

    def listed(
        self, connection: Connection[Any], entry: CatalogEntry, chosen: ChosenRows, name: str
    ) -> tuple[Ordering, str, int]:
        """Return the order of the key's columns, the name of the list of keys, and how many keys it has.

        `name` is that of the list if it was written before. Raise TableRefused if the rows cannot be found by keys.
        Raise ChunkFailed or StoreFailed if the list's source or the checkpoint does not answer now.
        """
        format_ = self._format(connection, entry)
        reason = refusal_of_keys(format_)
        if not reason and chosen.deletes:
            reason = refusal_of_deletions(format_) or self._sharing(connection, format_)
            reason = reason and f"incsnap-absent=delete cannot be obeyed: {reason}"
        if reason:
            raise _refused(reason)
        columns = tuple(field.column for field in format_.view.key)
        order = Ordering.by(columns, entry.index_of(columns))
        if not order.index and not chosen.walks:
            names = ", ".join(column.name for column in columns)
            raise _refused(
                f"no index begins with the key's columns {names}, so each chunk would walk through the whole table:"
                " create an index, or allow the walk with incsnap-whole-table=true"
            )
        name = name or list_at(chosen.files)
        if not name:
            name = self._written(chosen, format_)
            return order, name, self.lists.count(name)
        count = self.lists.count(name)
        # A DDL statement may have changed the form of the keys since the list was written.
        for _ in _read(
            format_, (self.lists.read(name, begin, begin + _CHECKED) for begin in range(0, count, _CHECKED))
        ):
            pass
        return order, name, count

    def range(
        self, entry: CatalogEntry, view: TableView, chosen: ChosenRows, surrogate: str
    ) -> tuple[Ordering, Key | None, Key | None]:
        """Return the order of the rows, and the least and greatest values of its leading columns.

        Raise TableRefused if the signal names columns that the order does not begin with, or values of another form.
        """
        first, last = (json.loads(text, parse_float=Decimal) if text else None for text in (chosen.first, chosen.last))
        named = first if first is not None else last
        if named is None:
            return ordering_of(entry, view, surrogate), None, None
        fields = {field.name: field for field in _all_fields(view)}
        unknown = [name for name in named if name not in fields]
        if unknown:
            raise _refused(f"the table has no column {', '.join(unknown)}")
        columns = [fields[name].column for name in named]
        order = _order_of_range(entry, view, surrogate, columns)
        if not order.index and not chosen.walks:
            raise _no_index(list(named))
        modes = self._settings.modes
        limits = [
            None if given is None else tuple(_limit(fields[name], modes, given[name]) for name in named)
            for given in (first, last)
        ]
        return order, limits[0], limits[1]

    def _format(self, connection: Connection[Any], entry: CatalogEntry) -> TableFormat:
        shape = entry.shape
        if self._settings.asks_for_columns:
            shape = shape_with_defaults(connection, shape, definitions=self._settings.columns.needs_definitions)
        return format_of(self._settings, shape)

    def _written(self, chosen: ChosenRows, format_: TableFormat) -> str:
        """Read the list from its source and write it. Return its name. The list may be empty. Raise as `listed`."""
        # A list of this job's own lies beside the checkpoint.
        own = keys_beside(self._files, chosen.files)
        given = chosen if own is None else replace(chosen, keys=own.decode())
        try:
            if is_in_bucket(given.files):
                set_access(given.files, self._settings.store_of(given.files))
            keys = in_order(keys_of(given, self._kafka))
        except KeyRefused as error:
            raise _refused(str(error)) from None
        except StoreRefused as error:
            raise _refused(f"the keys cannot be read: {error.message}") from None
        except ServerUnreachable as error:
            # This is not MySQL, so no connection of the planner is lost.
            raise ChunkFailed(f"the keys cannot be read now: {error.message}", error.hint) from None
        blocks = (keys.slice(begin, _CHECKED).to_pylist() for begin in range(0, len(keys), _CHECKED))
        texts = [pa.array(part.texts(), pa.large_string()) for part in _read(format_, blocks)]
        # Two spellings of a key would count twice.
        is_same = pa.chunked_array(texts, pa.large_string()).equals(pa.chunked_array([keys]))
        return self.lists.write(keys if is_same else in_order(text for part in texts for text in part.to_pylist()))

    def _sharing(self, connection: Connection[Any], format_: TableFormat) -> str:
        """Return a refusal if another table's records have the same topic and keys of the same form, else ""."""
        owners = tables_by_topic(self._settings, captured_tables(connection, self._settings))
        own = format_.view.shape.id
        others = [table for table in owners.get(format_.topic, ()) if table != own]
        same = table_with_same_keys(self._settings, own, others)
        return f"{same} has the same topic {format_.topic}, and a key does not tell the table" if same else ""


def _read(format_: TableFormat, keys: Iterable[list[str]]) -> Iterator[ListedKeys]:
    """Yield the parts of a list of keys. Raise TableRefused if a key has not the form of the table's record keys."""
    try:
        for part in keys:
            yield ListedKeys.read(format_, part)
    except KeyRefused as error:
        raise _refused(str(error)) from None


def _order_of_range(entry: CatalogEntry, view: TableView, surrogate: str, columns: list[Column]) -> Ordering:
    """Return an order that begins with `columns`: that of the key, or for one other column that of an index.

    The order has no index if no index begins with this column.
    """
    names = [column.name for column in columns]
    if view.identity or surrogate:
        order = ordering_of(entry, view, surrogate)
        if [column.name for column in order.columns[: len(names)]] == names:
            return order
    if len(columns) > 1 or surrogate:
        raise _refused(f"the order of the rows does not begin with {', '.join(names)}: name leading columns of the key")
    try:
        return ordering_of(entry, view, names[0])
    except TableRefused:
        raise _no_index(names) from None


def _no_index(names: list[str]) -> TableRefused:
    listed = ", ".join(names)
    return _refused(
        f"no index begins with {listed}, so each chunk would walk through the whole table: create an index, allow the"
        f" walk with incsnap-whole-table=true, or give an additional condition on {listed} in place of the range"
    )


def _limit(field: ViewField, modes: Modes, value: object) -> str | None:
    """Return a value of a range for SQL: in the form of records, or for times as MySQL writes them."""
    if value is None:
        return None
    column = field.column
    if not can_be_limit(column):
        raise _refused(f"{field.name}: a range of a column of the character set {column.charset} is not supported")
    try:
        is_iso = isinstance(value, str) and ("T" in value or value.endswith("Z"))
        if isinstance(value, str) and column.type in _TIMES and not is_iso:
            key_literal(column, value)
            return value  # as MySQL writes it
        text = printed(column, field.schema(modes).name or "", modes, value, boolean=field.boolean)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise _refused(f"{field.name}: {shorten(value)} is not a value of the column: {shorten(error)}") from None
    limit = compared(column, text)
    if limit is None:
        raise _refused(f"{field.name}: {shorten(value)} is not a value of the column")
    return limit


def _all_fields(view: TableView) -> list[ViewField]:
    known: Mapping[int, ViewField] = {field.index: field for field in (*view.fields, *view.key)}
    shape = view.shape
    return [known.get(index, ViewField(index, each.name, each, shape.id)) for index, each in enumerate(shape.columns)]


def _refused(reason: str) -> TableRefused:
    return TableRefused(notes.SKIPPED, reason)
