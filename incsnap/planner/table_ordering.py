"""What orders the chunks of a table, or why it cannot be read in chunks. Pure: all that the catalog says is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from incsnap.envelope.column_rules import ColumnRules
from incsnap.envelope.table_view import TableView, view_of
from incsnap.errors import UnsupportedType
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.keys import can_order, key_select
from incsnap.tables import Column, Index, TableShape, quote
from incsnap.types.column_type import describe

_NO_IDENTITY = (
    "it has no primary key and no unique key without NULLs, so its rows cannot be told apart: give it one (ALTER TABLE"
    " ... ADD COLUMN my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY), or name columns that no"
    " two of its rows share with message.key.columns"
)


class TableRefused(Exception):
    """The table cannot be read; ``status``: of its notification TABLE_SCAN_COMPLETED."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What information_schema says of a table. ``collations``: by column; ``indexes``: see ``catalog.indexes_of``."""

    shape: TableShape
    collations: Mapping[str, str]
    indexes: Sequence[Index]

    def index_of(self, columns: Sequence[Column]) -> Index | None:
        """An index that begins with these columns in this order (the primary key's and unique ones first), or None."""
        names = tuple(column.name for column in columns)
        return next((index for index in self.indexes if index.columns[: len(names)] == names), None)

    def in_order(self, index: Index) -> Index:
        """Return ``index`` with all columns in whose order it has the rows.

        InnoDB puts the primary key's columns behind those of every other index, and MySQL's optimiser reads that order
        without a sort. https://dev.mysql.com/doc/refman/en/index-extensions.html
        """
        key = tuple(self.shape.columns[place].name for place in self.shape.key)
        clustered = next((each for each in self.indexes if each.columns == key), None)
        if clustered is None or not key:
            return index
        behind = tuple(name for name in key if name not in index.columns)
        descending = tuple(name for name in clustered.descending if name in behind)
        return Index(index.name, index.columns + behind, index.descending + descending)


@dataclass(frozen=True, slots=True)
class Ordering:
    """``columns`` order the rows, those named in ``descending`` from their greatest value down; ``index`` begins with
    them ("": none does)."""

    columns: tuple[Column, ...]
    index: str
    descending: tuple[str, ...] = ()

    @classmethod
    def by(cls, columns: tuple[Column, ...], index: Index | None) -> Ordering:
        """In the order in which ``index`` has them, always forward.

        The server reads ranges of an index backward too, but not of one whose columns run both ways: for any order but
        the index's own it sorts the rest of the table for each border. One that descends throughout could be read
        either way, and is read as the others are: the 50,000th key takes 10 to 32 ms forward, 21 to 28 backward.
        """
        if index is None:
            return cls(columns, "")
        return cls(columns, index.name, tuple(each.name for each in columns if each.name in index.descending))


def check_types(entry: CatalogEntry, rules: ColumnRules) -> TableView:
    """The table's view. ``TableRefused`` where a column of it cannot be read."""
    shape = entry.shape
    view = view_of(shape, rules)
    try:
        for needed in sorted(view.needed):
            describe(shape.columns[needed], shape.id)
    except UnsupportedType as error:
        raise TableRefused(notes.SKIPPED, f"{error.message}. {error.hint}") from None
    return view


def ordering_of(entry: CatalogEntry, view: TableView, surrogate: str) -> Ordering:
    """What orders the table's rows: the column ``surrogate``, or what tells the table's rows apart where it is "".
    Raises ``TableRefused``."""
    if not view.identity:
        # Also with a surrogate key: de-duplication needs what tells rows apart in events too.
        raise TableRefused(notes.NO_PRIMARY_KEY, _NO_IDENTITY)
    if surrogate:
        order = _by_surrogate(entry, view, surrogate)
    else:
        columns = tuple(entry.shape.columns[place] for place in view.identity)
        order = Ordering.by(columns, entry.index_of(columns))
    try:
        for column in order.columns:
            key_select(column)
    except UnsupportedType as error:
        raise TableRefused(notes.NO_PRIMARY_KEY, error.message) from None
    return order


def _by_surrogate(entry: CatalogEntry, view: TableView, name: str) -> Ordering:
    """Return the order by the column ``name`` and, behind it, by what tells rows apart.

    By the column alone all rows of one value would be one chunk, however many they are. Raise ``TableRefused`` where no
    index begins with the column.
    """
    by_name = {column.name: column for column in entry.shape.columns}
    if name not in by_name:
        raise TableRefused(notes.NO_PRIMARY_KEY, f"it has no column {name} (its surrogate-key)")
    begin = [entry.in_order(index) for index in entry.indexes if index.columns[:1] == (name,)]
    if not begin:
        repair = f"CREATE INDEX ... ON {entry.shape.id.sql} ({quote(name)})"
        raise TableRefused(notes.NO_PRIMARY_KEY, f"no index begins with its surrogate-key: {repair}")
    identity = [entry.shape.columns[place].name for place in view.identity]
    orders = [(index, names) for index in begin if (names := _up_to(index, {name, *identity}, by_name))]
    if not orders:
        return Ordering(tuple(by_name[each] for each in dict.fromkeys((name, *identity))), "")
    index, names = min(orders, key=lambda order: len(order[1]))
    return Ordering.by(tuple(by_name[each] for each in names), index)


def _up_to(index: Index, needed: Collection[str], by_name: Mapping[str, Column]) -> list[str]:
    """Return the columns that the index begins with, up to the last of ``needed``. [] where it has not all of them, or
    one between them that orders nothing."""
    names: list[str] = []
    left = set(needed)
    for name in index.columns:
        if not left:
            break
        if name is None or not can_order(by_name[name]):
            return []
        names.append(name)
        left.discard(name)
    return [] if left else names
