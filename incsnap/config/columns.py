"""Rules for columns, from `column.*` and `message.key.columns`."""

from __future__ import annotations

import re

from incsnap.config.converters import booleans
from incsnap.config.declarations.kinds import COLUMNS, one_of
from incsnap.config.declarations.records import ADJUSTMENTS
from incsnap.config.reader import SettingsReader
from incsnap.config.secrets import without_salt
from incsnap.config.sections import refuse_both
from incsnap.config.settings import Formats
from incsnap.envelope.column_rules import ColumnRules, TransformRule
from incsnap.envelope.masks import DIGESTS, Transform

_NUMBER = re.compile(r"column\.(?:mask\.with|truncate\.to)\.(?P<number>.+)\.chars")
_HASH = re.compile(r"column\.mask\.(?P<kind>hash|hash\.v2)\.(?P<algorithm>[^.]+)\.with\.salt\.(?P<salt>.+)")
_FORMS = (
    "column.truncate.to.N.chars, column.mask.with.N.chars, column.mask.hash.ALGORITHM.with.salt.SALT,"
    " column.mask.hash.v2.ALGORITHM.with.salt.SALT"
)
_LARGEST = 2**31 - 1

_KEYS = "message.key.columns"


def column_rules(reader: SettingsReader, formats: Formats) -> ColumnRules:
    """Return the rules for columns. Add problems to `reader`."""
    refuse_both(reader, "column")
    every, narrow = booleans(reader)
    return ColumnRules(
        include=reader["column.include.list"],
        exclude=reader["column.exclude.list"],
        transforms=_transforms(reader),
        keys=_keys(reader),
        field_names=_field_names(reader, formats),
        booleans=every,
        narrow_booleans=narrow,
        typed=reader["column.propagate.source.type"],
        typed_as=reader["datatype.propagate.source.type"],
        comments=reader["include.schema.comments"],
    )


def _field_names(reader: SettingsReader, formats: Formats) -> str:
    """Return `field.name.adjustment.mode`. `sanitize.field.names` is its older name.

    Debezium always adjusts the names of fields for an Avro converter, even if the setting is none.
    """
    older = "avro" if reader["sanitize.field.names"] else "none"
    mode: str = reader.read("field.name.adjustment.mode", one_of(*ADJUSTMENTS), older)
    return "avro" if mode == "none" and "avro" in (formats.key.kind, formats.value.kind) else mode


def _transforms(reader: SettingsReader) -> tuple[TransformRule, ...]:
    """Return a rule for each `column.mask.*` and `column.truncate.*` setting, in the order of names."""
    rules = []
    for name in sorted(reader.names()):
        if not name.startswith(("column.mask.", "column.truncate.")) or not reader.given(name):
            continue
        shown = without_salt(name)
        transform = _transform(reader, name, shown)
        patterns = tuple(each for each in COLUMNS.parse(reader.text(name)) if reader.is_regex(shown, each))
        if transform is not None and patterns:
            rules.append(TransformRule(shown, patterns, transform))
    return tuple(rules)


def _transform(reader: SettingsReader, name: str, shown: str) -> Transform | None:
    """Return the mask or truncation that the name of a setting asks for, or None if there is a problem."""
    if match := _NUMBER.fullmatch(name):
        number = match["number"]
        if number.isascii() and number.isdigit() and int(number) <= _LARGEST:
            return Transform("mask" if name.startswith("column.mask.") else "truncate", int(number))
        reader.problems.append(f"{shown}: {number!r} is not a whole number from 0 to {_LARGEST}")
    elif match := _HASH.fullmatch(name):
        algorithm = match["algorithm"].upper()
        if algorithm in DIGESTS:
            return Transform(match["kind"].replace(".", "_"), algorithm=algorithm, salt=match["salt"])
        reader.problems.append(f"{shown}: {match['algorithm']} is not one of: {', '.join(DIGESTS)}")
    else:
        reader.problems.append(f"{shown}: unknown setting; known are {_FORMS}")
    return None


def _keys(reader: SettingsReader) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the key columns of `db.table:column,column;...` as pairs of a table pattern and its column patterns.

    A column belongs to a table's key if it matches a pattern of any entry that matches the table.
    """
    keys: list[tuple[str, tuple[str, ...]]] = []
    for entry in reader.text(_KEYS).rstrip("; ").split(";") if reader.given(_KEYS) else ():
        table, colon, rest = (part.strip() for part in entry.partition(":"))
        columns = tuple(column.strip() for column in rest.split(","))
        if not table or not colon or not all(columns) or ":" in rest:
            reader.problems.append(f"{_KEYS}: {entry.strip()!r} is not of the form database.table:column,column")
        elif re.search(r"(?<!\\),", table):
            reader.problems.append(f"{_KEYS}: {table!r} is not one pattern; write a comma in it as \\,")
        elif len({column.lower() for column in columns}) < len(columns):
            reader.problems.append(f"{_KEYS}: {entry.strip()!r} names a column twice")
        else:
            plain = table.replace(r"\,", ",")
            if all(reader.is_regex(_KEYS, f"{plain}.{column}") for column in columns):
                keys.append((plain, columns))
    return tuple(keys)
