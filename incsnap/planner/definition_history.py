"""The known definitions of tables, followed from statement to statement of the stream, and the rows read by them.

Rows of a batch whose table maps do not name the columns lie between two statements of the batch. Their definition is
certain if it was the same after each statement that may lie before them, and if it fits their table maps.

The functions are pure: another module asks the server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from incsnap.binlog.buffer_position import UnnamedRows
from incsnap.binlog.table_rows import Charsets, misfit
from incsnap.config.patterns import TableFilter
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.ddl.follow import Followed, follow
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.errors import shorten
from incsnap.events import SchemaChange
from incsnap.planner.choices import digest_of
from incsnap.planner.definitions import defines
from incsnap.tables import TableId, TableShape

#: Most definitions that are kept of tables in databases without captured tables. Each file of definitions has all of
#: them.
_MOST_FAR = 500


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The definitions that are known at one place of the stream."""

    definitions: Definitions = field(default_factory=Definitions)  #: definitions that are certain
    #: Tables whose definition was followed by a statement and not compared with the server's since then.
    unconfirmed: frozenset[TableId] = frozenset()
    #: Tables that may exist and whose definition is not known -> why it is not known.
    lost: Mapping[TableId, str] = field(default_factory=dict)
    complete: bool = False  #: whether every captured table that exists is in `definitions` or in `lost`
    unread: frozenset[TableId] = frozenset()  #: tables of which rows were left out and that were not read again

    @classmethod
    def of(cls, stored: BatchDefinitions, concerns: Callable[[TableId], bool], captured_by: str) -> KnownTables:
        """Return what a batch has stored about the tables that `concerns` selects: those whose statements the stream
        brings.

        `captured_by` is the digest of the present settings, as in `BatchDefinitions`. If another digest is stored,
        tables that are captured now may exist without being stored, and databases may have been altered unseen.
        """
        same = stored.captured_by == captured_by
        tables = {each.shape.id: each for each in stored.tables if concerns(each.shape.id)}
        return cls(
            Definitions(tables, dict(stored.databases if same else ())),
            frozenset(stored.unconfirmed) & tables.keys(),
            {table: why for table, why in stored.lost if concerns(table)},
            stored.complete and same,
            frozenset(filter(concerns, stored.unread)),
        )

    def stored(self, before: Sequence[TableShape], captured_by: str) -> BatchDefinitions:
        """Return the known definitions in the form that is stored with a batch.

        `before`: the definitions at the beginning of the batch. `captured_by`: the digest of the settings that decide
        which tables are captured.
        """
        tables = self.definitions.tables
        return BatchDefinitions(
            before=tuple(before),
            definitions=tuple(tables[table] for table in sorted(tables)),
            databases=tuple(sorted(self.definitions.databases.items())),
            unconfirmed=tuple(sorted(self.unconfirmed)),
            lost=tuple(sorted(self.lost.items())),
            complete=self.complete,
            unread=tuple(sorted(self.unread)),
            captured_by=captured_by,
        )

    def shape(self, table: TableId) -> TableShape | None:
        """Return the columns of a table; None if they are not known."""
        definition = self.definitions.tables.get(table)
        return definition.shape if definition is not None else None

    def after(
        self,
        change: SchemaChange,
        concerns: Callable[[TableId], bool],
        captured: Callable[[TableId], bool],
        letter_case: int,
    ) -> KnownTables:
        """Return what is known right after the statement `change`. `self` is what is known right before it.

        `concerns`: whether the stream brings all statements about a table. `captured`: whether a table is captured.
        `letter_case`: the server's lower_case_table_names.
        """
        followed = self._followed(change, captured, letter_case)
        tables = {table: each for table, each in followed.known.tables.items() if concerns(table)}
        why = {table: f"{reason} ({quoted(change)})" for table, reason in followed.lost.items() if concerns(table)}
        left = {table: reason for table, reason in self.lost.items() if table not in followed.gone}
        # A tool's swap gives the table, which has the same rows, back its name.
        kept = frozenset(table for table in self.unread if change.online.keeps(table))
        # If another table with left out rows was renamed, these rows are missing under its new name.
        renamed = (followed.changed | why.keys()) if followed.gone & self.unread - kept else frozenset[TableId]()
        return KnownTables(
            Definitions(tables, followed.known.databases),
            (self.unconfirmed | followed.changed) & tables.keys(),
            # The first reason counts.
            {table: reason for table, reason in {**why, **left}.items() if table not in tables},
            self.complete and not (change.tables is None and not change.database),
            (self.unread - followed.gone) | kept | renamed,
        )

    def _followed(self, change: SchemaChange, captured: Callable[[TableId], bool], letter_case: int) -> Followed:
        if not change.session.client and not change.sql.isascii():
            # The text may be garbled.
            touched = [table for table in self.definitions.tables if change.touches(table)]
            tables = {table: each for table, each in self.definitions.tables.items() if table not in touched}
            return Followed(Definitions(tables), dict.fromkeys(touched, "the client's character set is not known"))
        # The server is asked for captured tables only. Another table may exist although nothing is known about it.
        absent = lambda table: self.complete and captured(table) and table not in self.lost  # noqa: E731
        return follow(change, self.definitions, letter_case=letter_case, absent=absent)


def redefines(change: SchemaChange, table: TableId) -> bool:
    """Whether the statement may give the table other columns or another key, whatever the table was before the
    statement.

    A statement that changes neither returns False here: it adds an index that is not unique, or sets the table's
    comment. `definitions.redefined` counts such statements too.
    """
    if not defines(change) or not change.touches(table):
        return False
    if not change.session.client and not change.sql.isascii():
        return True
    # No statement that changes columns or keys can be followed from a definition that has only the table's name.
    unknown = Definitions({table: TableDefinition(TableShape(table, ()))})
    # Names are compared in any letter case, as `touches` does: 2.
    return follow(change, unknown, letter_case=2).known.tables.get(table) != unknown.tables[table]


def difference(followed: TableShape, served: TableShape) -> str:
    """Return how the server's definition of a table differs from the followed one."""
    if len(followed.columns) != len(served.columns):
        return f"it has {len(served.columns)} columns there, and {len(followed.columns)} by its statements"
    for number, (ours, theirs) in enumerate(zip(followed.columns, served.columns, strict=True), 1):
        if ours != theirs:
            return f"its column {number} is {theirs} there, and {ours} by its statements"
    return f"its key has the columns {served.key} there, and {followed.key} by its statements"


def quoted(change: SchemaChange) -> str:
    """Return the statement in quotes, and its place in the binlog."""
    where = f" at {change.origin.file}:{change.origin.pos}" if change.origin is not None else ""
    return f"{shorten(change.sql)!r}{where}"


def without(known: KnownTables, tables: Mapping[TableId, str]) -> KnownTables:
    """Return `known` without the definitions of these tables. The values of `tables` say why they are not known."""
    left = {table: each for table, each in known.definitions.tables.items() if table not in tables}
    return replace(
        known,
        definitions=Definitions(left, known.definitions.databases),
        unconfirmed=known.unconfirmed - tables.keys(),
        lost={**known.lost, **tables},
    )


def bounded(known: KnownTables, may_be_captured: Callable[[str], bool]) -> KnownTables:
    """Return `known` with at most 500 tables of databases without captured tables. A server may have very many of them.

    `may_be_captured`: whether a database may have captured tables.
    """
    tables = known.definitions.tables
    far = [table for table in tables if not may_be_captured(table.database)]
    gone = frozenset(far[:-_MOST_FAR])
    return replace(
        known,
        definitions=replace(known.definitions, tables={each: tables[each] for each in tables if each not in gone}),
        unconfirmed=known.unconfirmed - gone,
        lost={table: why for table, why in known.lost.items() if may_be_captured(table.database)},
    )


@dataclass(frozen=True, slots=True)
class RowsWithoutDefinition:
    """Rows of a batch for which no definition is known."""

    at: UnnamedRows  #: the rows: their table and place, and the statements around them
    why: str  #: why no definition is known; "" if nobody knows yet
    misfit: bool = False  #: whether a definition was known that does not fit the rows' table map

    def __str__(self) -> str:
        return f"{self.at.place}: rows of {self.at.table} were written with binlog_row_metadata=MINIMAL"


def definitions_of_rows(
    unnamed: Sequence[UnnamedRows],
    history: Sequence[KnownTables],
    maps: Mapping[TableId, Collection[bytes]],
    charsets: Charsets,
) -> tuple[dict[TableId, TableShape], dict[TableId, RowsWithoutDefinition]]:
    """Return the definitions by which the rows are read, and the rows without a known definition, by table.

    `history` is what was known before the batch's first statement and after each statement. `maps` are the table maps
    of the rows.
    """
    read_by: dict[TableId, TableShape] = {}
    missing: dict[TableId, RowsWithoutDefinition] = {}
    for rows in unnamed:
        table = rows.table
        shapes = {each.shape(table) for each in history[rows.first : rows.last + 1]}
        shape = shapes.pop() if len(shapes) == 1 else None
        if shape is None:
            missing[table] = RowsWithoutDefinition(rows, history[rows.first].lost.get(table, ""))
        elif differs := first_misfit(maps.get(table, ()), shape, charsets):
            why = f"by another definition than is known: {differs}"
            missing[table] = RowsWithoutDefinition(rows, why, misfit=True)
        else:
            read_by[table] = shape
    return read_by, missing


def first_misfit(maps: Collection[bytes], shape: TableShape, charsets: Charsets) -> str:
    """Return how the first table map that does not fit the definition differs from it; "" if all fit."""
    return next(filter(None, (misfit(each, shape, charsets) for each in maps)), "")


def captured_by(included: TableFilter) -> str:
    """Return a digest of the settings that decide which tables are captured. It is stored in
    `BatchDefinitions.captured_by`.
    """
    return digest_of(included.model_dump_json(exclude_defaults=True))
