"""Which columns are written, how, and under which names: Debezium's ``column.*`` settings and message.key.columns.

Patterns are Java regexes, matched wholly and without regard to letter case against ``db.table.column``.
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
    """``setting`` is its name without the salt, for messages."""

    setting: str
    patterns: tuple[str, ...]
    transform: Transform


@dataclass(frozen=True, slots=True)
class ColumnRules:
    """``include``, ``exclude``: column.include.list, column.exclude.list. ``keys``: message.key.columns, pairs of a
    pattern for ``db.table`` and patterns for columns. ``field_names``: field.name.adjustment.mode. ``booleans``: of
    TINYINTs that are written as booleans (TinyIntOneToBooleanConverter), ``narrow_booleans`` where they were defined as
    TINYINT(1). ``typed``, ``typed_as``: of columns
    (``db.table.column``) and of types (``db.table.TYPE``) whose schemas show how the column was defined. ``comments``:
    include.schema.comments, schemas show the comments of columns.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    transforms: tuple[TransformRule, ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    field_names: str = "none"
    booleans: tuple[str, ...] = ()
    narrow_booleans: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    typed_as: tuple[str, ...] = ()
    comments: bool = False

    def written(self, name: str) -> bool:
        """Is the column ``name`` (``db.table.column``) part of a row?"""
        if self.include:
            return matches(self.include, name)
        return not matches(self.exclude, name)

    def transform(self, name: str) -> Transform | None:
        """What is done to the column's values. Raises ``ConfigError`` when two settings want to: one would undo what
        the other hides.
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
        """May it matter to any record how a column was defined?  Then the server must be asked."""
        return bool(self.typed or self.typed_as or self.comments or self.narrow_booleans)

    def is_boolean(self, name: str, type_: str, source: SourceType | None) -> bool:
        """Is the column of MySQL's ``type_`` written as a boolean?  ``source``: as it was defined, None where nobody
        knows."""
        if type_ != "tinyint":
            return False
        narrow = source is not None and source.length == 1
        return matches(self.booleans, name) or (narrow and matches(self.narrow_booleans, name))

    def shows_type(self, table: TableId, column: str, source: SourceType) -> bool:
        """Does the schema of the column show that it was defined as ``source``?"""
        return matches(self.typed, f"{table}.{column}") or matches(self.typed_as, f"{table}.{source.name}")

    def key_patterns(self) -> tuple[str, ...]:
        """A pattern for ``db.table.column`` for each part of a key, in the key's order."""
        return tuple(f"{table}.{column}" for table, columns in self.keys for column in columns)

    def without_match(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Gives (setting, pattern) of the patterns for columns that none of these (``db.table.column``) matches: one
        that is misspelt hides nothing."""
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
        """For eyes that may not see them."""
        return replace(
            self,
            transforms=tuple(
                replace(rule, transform=replace(rule.transform, salt="**********" if rule.transform.salt else ""))
                for rule in self.transforms
            ),
        )


def matches(patterns: tuple[str, ...], name: str) -> bool:
    return any_matches(patterns, name, ignore_case=True)
