"""The rules of the settings for columns: which are written, under which names, how changed, and which form the key.

They come from Debezium's `column.*` settings and message.key.columns. Patterns are Java regexes. A pattern must match
the whole of `db.table.column`; letter case does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from incsnap.envelope.masks import Transform
from incsnap.errors import ConfigError
from incsnap.tables import SourceType, TableId
from signals.regex import any_matches


@dataclass(frozen=True, slots=True)
class TransformRule:
    """A mask, hash or truncation, and the columns it is for."""

    setting: str  #: name of the setting without the salt, for messages
    patterns: tuple[str, ...]  #: on `db.table.column`
    transform: Transform  #: what is done to the values


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """The rules of a job for columns."""

    include: tuple[str, ...] = ()  #: column.include.list
    exclude: tuple[str, ...] = ()  #: column.exclude.list
    transforms: tuple[TransformRule, ...] = ()  #: column.mask.*, column.truncate.*
    #: message.key.columns: pairs of a pattern on `db.table` and patterns on columns
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    field_names: str = "none"  #: field.name.adjustment.mode
    booleans: tuple[str, ...] = ()  #: TINYINTs that are written as booleans (TinyIntOneToBooleanConverter)
    narrow_booleans: tuple[str, ...] = ()  #: TINYINTs that are written as booleans if they were defined as TINYINT(1)
    typed: tuple[str, ...] = ()  #: columns (`db.table.column`) whose schemas show how the column was defined
    typed_as: tuple[str, ...] = ()  #: types (`db.table.TYPE`) whose columns' schemas show how the column was defined
    comments: bool = False  #: include.schema.comments: schemas show the comments of columns

    def includes(self, name: str) -> bool:
        """Return True if the column `name` (`db.table.column`) is part of a row."""
        if self.include:
            return matches(self.include, name)
        return not matches(self.exclude, name)

    def transform(self, name: str) -> Transform | None:
        """Return the mask, hash or truncation of the column `name`, or None.

        Raise ConfigError if two settings match the column: one would undo what the other hides.
        """
        matching = [rule for rule in self.transforms if matches(rule.patterns, name)]
        if len(matching) > 1:
            raise ConfigError(
                f"{' and '.join(rule.setting for rule in matching)} both match {name}",
                "Change their patterns so that one setting matches the column.",
            )
        return matching[0].transform if matching else None

    @property
    def needs_definitions(self) -> bool:
        """Whether a record may depend on how a column was defined (type, length, comment).

        The binlog does not tell the definition, so the planner must then ask the server.
        """
        return bool(self.typed or self.typed_as or self.comments or self.narrow_booleans)

    def is_boolean(self, name: str, type_: str, source: SourceType | None) -> bool:
        """Return True if the column `name` (`db.table.column`) of MySQL's `type_` is written as a boolean.

        `source`: the type as the column was defined; None if the definition is unknown.
        """
        if type_ != "tinyint":
            return False
        narrow = source is not None and source.length == 1
        return matches(self.booleans, name) or (narrow and matches(self.narrow_booleans, name))

    def shows_type(self, table: TableId, column: str, source: SourceType) -> bool:
        """Return True if the column's schema shows that the column was defined as `source`."""
        return matches(self.typed, f"{table}.{column}") or matches(self.typed_as, f"{table}.{source.name}")

    def key_patterns(self) -> tuple[str, ...]:
        """Return the patterns of message.key.columns on `db.table.column`, in the order of the key's columns."""
        return tuple(f"{table}.{column}" for table, columns in self.keys for column in columns)

    def without_match(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (setting, pattern) for each pattern on columns that matches none of `names` (`db.table.column`).

        A misspelt pattern hides nothing, so the user must hear of it.
        """
        known = tuple(names)
        settings = (
            ("column.include.list", self.include),
            ("column.exclude.list", self.exclude),
            *((rule.setting, rule.patterns) for rule in self.transforms),
            ("message.key.columns", self.key_patterns()),
            ("column.propagate.source.type", self.typed),
        )
        for setting, patterns in settings:
            for pattern in patterns:
                if not any(matches((pattern,), name) for name in known):
                    yield setting, pattern

    def without_salts(self) -> ColumnRules:
        """Return a copy with asterisks in place of the salts, for output that people see."""
        return replace(
            self,
            transforms=tuple(
                replace(rule, transform=replace(rule.transform, salt="**********" if rule.transform.salt else ""))
                for rule in self.transforms
            ),
        )


def matches(patterns: tuple[str, ...], name: str) -> bool:
    """Return True if one of the Java regexes matches the whole of `name`, without regard to letter case."""
    return any_matches(patterns, name, ignore_case=True)
