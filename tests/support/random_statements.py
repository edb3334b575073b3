"""Random statements about tables, with all clauses that `incsnap.ddl.follow` understands, and hostile names and texts.

A server accepts about half of them. A refused statement is in no binlog.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from incsnap.ddl.table_definition import PRIMARY, TableDefinition
from incsnap.tables import TableId
from tests.support.random_columns import CHARSETS, COLLATIONS, RandomColumns

_COLUMNS = 9
_COMMAS = (", ", ",\n", ",")
_CHANGES_OF_DEFAULTS = ("set default 1", "set default (1)", "drop default", "set invisible", "set visible")
_MANNERS = ("force", "algorithm=copy", "lock=default", "enable keys", "algorithm default", "without validation")


@dataclass(frozen=True, slots=True)
class RandomStatement:
    """A statement and the tables that it names."""

    sql: str
    tables: frozenset[TableId]
    alters: bool = False  #: whether it changes a table that is there: ALTER TABLE, CREATE INDEX or DROP INDEX


class RandomStatements(RandomColumns):
    """A generator of statements about the tables `known`, which the server has, and about new tables."""

    def __init__(self, rng: random.Random, databases: Sequence[str]) -> None:
        super().__init__(rng)
        self._databases = databases
        self.parent = f"{databases[0]}.parent"
        self.known: dict[TableId, TableDefinition] = {}
        self.session_database = databases[0]

    def next(self) -> RandomStatement:
        """Return a statement about one or more tables."""
        if len(self.known) < 3:
            return self._create()
        if len(self.known) > 8:
            return self._drop()
        weights: dict[Callable[[], RandomStatement], int] = {
            self._alter: 80, self._create: 6, self._like: 3, self._rename: 4, self._drop: 2, self._create_index: 3,
            self._drop_index: 2,
        }  # fmt: skip
        return self.rng.choices(list(weights), list(weights.values()))[0]()

    def _table(self, table: TableId) -> str:
        if table.database == self.session_database and self.some(0.7):
            return self.quoted(table.table)
        return f"{self.quoted(table.database)}{self.rng.choice(('.', ' . '))}{self.quoted(table.table)}"

    def _new_table(self) -> TableId:
        database = self.rng.choice(self._databases)
        taken = [table.table for table in self.known if table.database == database]
        # A server bug: it loses the file of a table whose name begins with a number sign.
        return TableId(database, self.new_name([*taken, "#c"]))

    def _known_table(self) -> TableDefinition:
        return self.rng.choice(sorted(self.known.values(), key=lambda each: each.shape.id))

    def _create(self) -> RandomStatement:
        names: list[str] = []
        for _ in range(self.rng.randint(1, 6)):
            names.append(self.new_name(names))
        keys = [self.key(names) for _ in range(self.rng.choice((0, 0, 1, 2)))]
        body = self.rng.choice(_COMMAS).join([*map(self.column, names), *keys])
        options = self.rng.choice((", ", " ")).join(self._option() for _ in range(self.rng.choice((0, 0, 1, 2))))
        hash_ = "partition by hash (1 + 2) (partition p0, partition p1)"
        partitions = self.rng.choice(("", "", "", "partition by key () partitions 2", hash_))
        exists, table = self.rng.choice(("", "", "if not exists")), self._new_table()
        return self._of([table], "create table", exists, self._table(table), f"({body})", options, partitions)

    def _like(self) -> RandomStatement:
        table, source = self._new_table(), self._known_table().shape.id
        like = f"like {self._table(source)}"
        return self._of([table], "create table", self._table(table), like if self.some(0.5) else f"({like})")

    def _rename(self) -> RandomStatement:
        first, between = self._known_table().shape.id, self._new_table()
        pairs = [(first, between)]
        if self.some(0.4):
            second = self._known_table().shape.id
            pairs += [(second, first), (between, second)]
        text = ", ".join(f"{self._table(old)} to {self._table(new)}" for old, new in pairs)
        tables = [table for pair in pairs for table in pair]
        return self._of(tables, "rename", self.rng.choice(("table", "tables")), text)

    def _drop(self) -> RandomStatement:
        tables = sorted({self._known_table().shape.id for _ in range(self.rng.choice((1, 1, 2)))})
        exists, last = self.rng.choice(("", "if exists")), self.rng.choice(("", "cascade"))
        return self._of(tables, "drop table", exists, ", ".join(map(self._table, tables)), last)

    def _create_index(self) -> RandomStatement:
        shape = self._known_table().shape
        kind = self.rng.choice(("", "unique", "unique", "fulltext"))
        how = self.rng.choice(("", "algorithm=inplace", "lock none algorithm default"))
        name, parts = self.quoted(self.new_name()), self.parts([column.name for column in shape.columns])
        return self._altering([shape.id], "create", kind, "index", name, "on", self._table(shape.id), parts, how)

    def _drop_index(self) -> RandomStatement:
        table = self._known_table()
        return self._altering([table.shape.id], "drop index", self._key_name(table), "on", self._table(table.shape.id))

    def _key_name(self, table: TableDefinition) -> str:
        return self.quoted(self.rng.choice([key.name for key in table.keys if key.name] or [PRIMARY]))

    def _alter(self) -> RandomStatement:
        table = self._known_table()
        tables = [table.shape.id]
        clauses = [self._clause(table, tables) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4)))]
        last = self.rng.choice((*[""] * 20, "partition by key () partitions 3", "remove partitioning"))
        return self._altering(
            tables, "alter table", self._table(table.shape.id), self.rng.choice(_COMMAS).join(clauses), last
        )

    def _clause(self, table: TableDefinition, tables: list[TableId]) -> str:
        """Return a clause of an ALTER TABLE. A new name of the table joins `tables`."""
        names = [column.name for column in table.shape.columns]
        adds = 2 if len(names) > _COLUMNS else 8
        weights: dict[Callable[[list[str]], str], int] = {
            self._add: adds, self._drop_column: 5, self._change: 5, self._rename_column: 2, self._other: 5,
        }  # fmt: skip
        chosen = self.rng.choices([*weights, None], [*weights.values(), 5])[0]
        return chosen(names) if chosen else self._clause_of_table(table, names, tables)

    def _word(self) -> str:
        return self.rng.choice(("", "column"))

    def _place(self, names: list[str]) -> str:
        return self.rng.choice(("", "", "", "first", f"after {self.any_case(self.rng.choice(names))}"))

    def _add(self, names: list[str]) -> str:
        new = self.new_name(names)
        if self.some(0.7):
            return self.join("add", self._word(), self.column(new), self._place(names))
        elements = [self.column(new), self.column(self.new_name([*names, new]))]
        if self.some(0.3):
            elements.append(self.key([*names, new]))
        return self.join("add", self._word(), f"({', '.join(elements)})")

    def _drop_column(self, names: list[str]) -> str:
        name = self.any_case(self.rng.choice(names))
        return self.join("drop", self._word(), name, self.rng.choice(("", "", "restrict")))

    def _change(self, names: list[str]) -> str:
        name = self.rng.choice(names)
        if self.some(0.6):
            return self.join("modify", self._word(), self.column(name), self._place(names))
        column = self.column(self.rng.choice((self.new_name(names), name)))
        return self.join("change", self._word(), self.any_case(name), column, self._place(names))

    def _rename_column(self, names: list[str]) -> str:
        old, new = self.rng.choice(names), self.new_name(names)
        first = self.join("rename column", self.any_case(old), "to", self.quoted(new))
        other = self.rng.choice(names)
        if other == old or self.some(0.8):
            return first
        # A second column takes the name that the first column had.
        return first + self.join(",", "rename column", self.quoted(other), "to", self.quoted(old))

    def _other(self, names: list[str]) -> str:
        name = self.any_case(self.rng.choice(names))
        return self.rng.choice(
            (
                self.join("add", self.key(names)),
                self.join("add", self.key(names)),
                "drop primary key",
                self.join("alter", self._word(), name, self.rng.choice(_CHANGES_OF_DEFAULTS)),
                self.join("order by", name, self.rng.choice(("", "desc"))),
                self.rng.choice(_MANNERS),
            )
        )

    def _clause_of_table(self, table: TableDefinition, names: list[str], tables: list[TableId]) -> str:
        key = self._key_name(table)
        match self.rng.randrange(7):
            case 0 | 1:
                return self.join("drop", self.rng.choice(("index", "key", "constraint")), key)
            case 2:
                new = self.quoted(self.new_name())
                return self.join("rename", self.rng.choice(("index", "key")), key, "to", new)
            case 3 | 4:
                word = self.rng.choice(("character set", "charset"))
                return self.join("convert to", word, self.rng.choice(CHARSETS))
            case 5:
                tables.append(self._new_table())
                return self.join("rename", self.rng.choice(("", "to", "as", "=")), self._table(tables[-1]))
        if self.some(0.3):
            return f"alter index {key} visible"
        return self.join(self._option(), self._option() if self.some(0.3) else "")

    def _option(self) -> str:
        choice = self.rng.choice
        return choice(
            (
                choice(("engine=innodb", "engine innodb", "auto_increment 100", "row_format=dynamic", "max_rows 100")),
                choice(("stats_persistent=default", "stats_sample_pages=10 avg_row_length 10")),
                f"comment{choice(('=', ' '))}{self.text()}",
                f"{choice(('default ', ''))}{choice(('charset=', 'character set '))}{choice(CHARSETS)}",
                f"{choice(('default ', ''))}collate{choice((' ', ' = '))}{choice(COLLATIONS)}",
            )
        )

    def _of(self, tables: Sequence[TableId], *parts: str) -> RandomStatement:
        return RandomStatement(self.join(*parts), frozenset(tables))

    def _altering(self, tables: Sequence[TableId], *parts: str) -> RandomStatement:
        return RandomStatement(self.join(*parts), frozenset(tables), alters=True)
