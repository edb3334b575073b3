"""What is known of tables from statement to statement of the stream. Pure: the server is asked elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.ddl.follow import Followed, follow
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.errors import shorten
from incsnap.events import SchemaChange
from incsnap.planner.definitions import defines
from incsnap.tables import TableId, TableShape


@dataclass(frozen=True, slots=True)
class KnownTables:
    """What is known of tables at one place of the stream."""

    definitions: Definitions = field(default_factory=Definitions)
    #: Tables whose definition was followed by a statement and not compared with the server's since.
    unconfirmed: frozenset[TableId] = frozenset()
    #: Tables that may exist and whose definition is not known, and why.
    lost: Mapping[TableId, str] = field(default_factory=dict)
    complete: bool = False  #: whether every captured table that exists is in `definitions` or in `lost`
    unread: frozenset[TableId] = frozenset()  #: tables of which rows were left out and that were not read again

    @classmethod
    def of(cls, stored: BatchDefinitions, concerns: Callable[[TableId], bool], captured_by: str) -> KnownTables:
        """Return what a batch has stored, of the tables that `concerns` names: others' statements do not come by.

        `captured_by`: as in `BatchDefinitions`, of the settings now. Where it is another one, tables that are captured
        now may exist and not be stored, and databases may have been altered unseen.
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

    def stored(self, before: Sequence[TableShape]) -> BatchDefinitions:
        """Return the form that is stored beside the checkpoint; `before` as there."""
        tables = self.definitions.tables
        return BatchDefinitions(
            before=tuple(before),
            definitions=tuple(tables[table] for table in sorted(tables)),
            databases=tuple(sorted(self.definitions.databases.items())),
            unconfirmed=tuple(sorted(self.unconfirmed)),
            lost=tuple(sorted(self.lost.items())),
            complete=self.complete,
            unread=tuple(sorted(self.unread)),
        )

    def shape(self, table: TableId) -> TableShape | None:
        """Return the columns of a table, None where they are not known."""
        definition = self.definitions.tables.get(table)
        return definition.shape if definition is not None else None

    def behind(
        self,
        change: SchemaChange,
        concerns: Callable[[TableId], bool],
        captured: Callable[[TableId], bool],
        letter_case: int,
    ) -> KnownTables:
        """Return what is known behind a statement. `concerns`: whether statements about a table come by. `captured`:
        whether a table is captured. `letter_case`: the server's lower_case_table_names."""
        followed = self._followed(change, captured, letter_case)
        tables = {table: each for table, each in followed.known.tables.items() if concerns(table)}
        why = {table: f"{reason} ({quoted(change)})" for table, reason in followed.lost.items() if concerns(table)}
        left = {table: reason for table, reason in self.lost.items() if table not in followed.gone}
        # Of a table that was renamed the rows that were left out are missing under its new name.
        renamed = (followed.changed | why.keys()) if followed.gone & self.unread else frozenset[TableId]()
        return KnownTables(
            Definitions(tables, followed.known.databases),
            (self.unconfirmed | followed.changed) & tables.keys(),
            {table: reason for table, reason in {**why, **left}.items() if table not in tables},  # the first one counts
            self.complete and not (change.tables is None and not change.database),
            (self.unread - followed.gone) | renamed,
        )

    def _followed(self, change: SchemaChange, captured: Callable[[TableId], bool], letter_case: int) -> Followed:
        if not change.session.client and not change.sql.isascii():
            # Its text may be garbled.
            touched = [table for table in self.definitions.tables if change.touches(table)]
            tables = {table: each for table, each in self.definitions.tables.items() if table not in touched}
            return Followed(Definitions(tables), dict.fromkeys(touched, "the client's character set is not known"))
        # The server is asked for captured tables only: another one may exist though nothing is known of it.
        absent = lambda table: self.complete and captured(table) and table not in self.lost  # noqa: E731
        return follow(change, self.definitions, letter_case=letter_case, absent=absent)


def redefines(change: SchemaChange, table: TableId) -> bool:
    """Whether the statement may give the table other columns or another key, whatever the table was before it."""
    if not defines(change) or not change.touches(table):
        return False
    if not change.session.client and not change.sql.isascii():
        return True
    # Of a definition that tells nothing but the table's name, a statement that changes more cannot be followed.
    unknown = Definitions({table: TableDefinition(TableShape(table, ()))})
    # Names are compared in any letter case, as `touches` does: 2.
    return follow(change, unknown, letter_case=2).known.tables.get(table) != unknown.tables[table]


def difference(followed: TableShape, served: TableShape) -> str:
    """Return how the server's definition of a table differs from the one that statements were followed to."""
    if len(followed.columns) != len(served.columns):
        return f"it has {len(served.columns)} columns there, and {len(followed.columns)} by its statements"
    for number, (ours, theirs) in enumerate(zip(followed.columns, served.columns, strict=True), 1):
        if ours != theirs:
            return f"its column {number} is {theirs} there, and {ours} by its statements"
    return f"its key has the columns {served.key} there, and {followed.key} by its statements"


def quoted(change: SchemaChange) -> str:
    """Return the statement in quotes, and where it stands."""
    where = f" at {change.origin.file}:{change.origin.pos}" if change.origin is not None else ""
    return f"{shorten(change.sql)!r}{where}"


def without(known: KnownTables, tables: Mapping[TableId, str]) -> KnownTables:
    """Return `known` without the definitions of these tables; the values say why they are not known."""
    left = {table: each for table, each in known.definitions.tables.items() if table not in tables}
    return replace(
        known,
        definitions=Definitions(left, known.definitions.databases),
        unconfirmed=known.unconfirmed - tables.keys(),
        lost={**known.lost, **tables},
    )
