"""A lake's table that follows the columns of a MySQL table.

A property of the table tells which columns the stream has brought and which statement was the last one. The property is
written before a statement changes the first column. So a batch that runs again finds out that its rows are in the table
already, and each step may be done twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import lit, unhex
from pyspark.sql.types import (
    BinaryType,
    DataType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from incsnap.errors import ConfigError, shorten
from incsnap.spark.lake_columns import NamesSwapped, NotFollowed, Steps, StreamColumns, steps, unsure_keys
from incsnap.spark.lake_state import PROPERTY, LakeState, read_state
from incsnap.tables import quote
from incsnap.tasks.described_rows import Alteration

log = logging.getLogger(__name__)

#: Name of the view that holds DEFAULTs of new columns.
_DEFAULTS = "incsnap_defaults"
#: Most characters of an error of Spark. Java's errors begin with long names of classes.
_MOST_OF_ERROR = 300
_BY_HAND = "Or change the lake's table by hand so that its columns are those of MySQL, and start the query again."
_ANEW = (
    "Make the lake's table anew: drop it, and begin with other checkpoints for the query and for checkpoint.location,"
    " and snapshot.mode=initial."
)


class LakeTable:
    """A table of a lake. `name`: as Spark names it. `kind`: the format, such as delta.

    `keys`: columns that the user calls the key; empty: the key is that of MySQL.
    """

    def __init__(self, spark: SparkSession, name: str, kind: str, keys: tuple[str, ...] = ()) -> None:
        self._spark, self._name, self._kind, self._keys = spark, name, kind, keys
        self._known: LakeState | None = None
        #: Columns that the table has followed last, which is most batches.
        self._followed: StreamColumns | None = None

    def create(self, columns: StreamColumns) -> None:
        """Create the table unless it exists. Raise ConfigError if it cannot be read or created."""
        try:
            if not self._exists():
                empty = self._spark.createDataFrame([], StructType(list(columns.fields)))
                empty.writeTo(self._name).using(self._kind).create()
                self._write(LakeState(tuple(columns.names), keys=self._keys_of(columns)))
            elif not self._state.columns:
                # A table of an earlier release, or one that the user has made.
                have = {name.lower() for name in self._spark.table(self._name).columns}
                self._write(LakeState(tuple(name for name in columns.names if name.lower() in have)))
        except (AnalysisException, Py4JJavaError) as error:
            raise ConfigError(
                f"The {self._kind} table {self._name} cannot be read or created: {_reason(error)}",
                f"Give the session a release of {self._kind} that is made for Spark {self._spark.version}, and its"
                " settings: docs/spark.md lists the releases.",
            ) from error

    def is_behind(self, alteration: Alteration) -> bool:
        """Return True if the rows of the batch that ends with this statement are in the table already."""
        return self._state.altered == alteration.id

    def alter(self, alteration: Alteration, columns: StreamColumns | None) -> None:
        """Follow a statement. `columns` are those behind it; None: the next rows will tell.

        Raise ConfigError if the lake's format cannot follow. The statement is followed when the batch runs again.
        """
        state = self._state
        if state.altered != alteration.id:
            pending = alteration if state.pending is None else alteration.behind(state.pending)
            self._write(replace(state, altered=alteration.id, pending=pending))
        self._followed = None
        left = self._state.pending
        if columns is not None and left is not None:
            self.follow(columns, is_definition=left.is_one)

    def follow(self, columns: StreamColumns, *, by_statements: bool = True, is_definition: bool = False) -> None:
        """Give the table these columns. Columns that the stream has never brought stay as they are.

        `by_statements`: follow the statements since; without it, columns are added and widened only. `is_definition`:
        whether the DEFAULTs in `columns` are those of the one statement since. Raise ConfigError if the lake's format
        cannot follow, or if rows have null in a new column of the key.
        """
        if columns == self._followed:
            return
        state = self._state
        pending = state.pending if by_statements else None
        have = {each.name.lower(): each for each in self._spark.table(self._name).schema.fields}
        try:
            needed = steps(columns, have, state.columns, pending)
        except NotFollowed as error:
            raise self._not_followed(str(error), "" if isinstance(error, NamesSwapped) else _BY_HAND) from None
        keys = self._keys_of(columns)
        unsure = unsure_keys(keys, self._known_keys(state, keys), state.columns, needed)
        self._alter_columns(needed)
        state = self._state
        # Rows show the present DEFAULTs of MySQL. A later statement may have changed these.
        values = columns.defaults if is_definition else {}
        # The values of a column that somebody else has added are not the query's.
        adding = [each for each in columns.fields if each.name.lower() in state.adding]
        # A statement since an earlier attempt may hide where the columns of that attempt come from.
        self._warn_of_null(each.name for each in adding if each not in needed.new)
        self._fill([each for each in needed.new if each in adding], values, {} if pending is None else pending.defaults)
        self._check_values(unsure, keys)
        pending = None if by_statements else state.pending
        self._write(replace(state, columns=needed.columns, pending=pending, adding=(), keys=keys))
        self._followed = columns

    def delete_all(self) -> None:
        """Delete all rows."""
        self._spark.sql(f"DELETE FROM {self._name}")

    # -- the table's key

    def _keys_of(self, columns: StreamColumns) -> tuple[str, ...]:
        """Return the columns by which rows are merged, in lower case."""
        return tuple(name.lower() for name in self._keys or columns.keys)

    def _known_keys(self, state: LakeState, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns by which rows were merged until now. An earlier release has not recorded them.

        A column that the user has named may have had null all the time. A column of MySQL's key has none.
        """
        if state.keys is not None:
            return state.keys
        return keys if self._keys else ()

    def _check_values(self, unsure: Iterable[str], keys: tuple[str, ...]) -> None:
        """Raise ConfigError if rows have null in one of the columns `unsure` of the key.

        The rows have other values in MySQL, so a MERGE by this key would not find them. It would add a second row for
        an update, and would do nothing for a deletion.
        """
        rows = self._spark.table(self._name)
        # The MERGE refuses a key of the user that the table does not have.
        have = {name.lower() for name in rows.columns}
        empty = [name for name in unsure if name in have and not rows.where(f"{quote(name)} IS NULL").isEmpty()]
        if empty:
            names, pending = ", ".join(empty), self._state.pending
            by = "" if pending is None else f" behind {pending.sql}"
            raise ConfigError(
                f"merge_into cannot merge into {self._name} by the key ({', '.join(keys)}){by}: old rows have null in"
                f" {names} there, and no event has brought their values",
                f"Delete all rows of {self._name}, start the query again, and send the signal execute-snapshot for the"
                f" MySQL table. Or give the rows their values of {names} by hand, and start the query again.",
            )

    # -- the table's property

    @property
    def _state(self) -> LakeState:
        if self._known is None:
            try:
                self._known = read_state(self._spark, self._name)
            except ValueError as error:
                raise ConfigError(
                    f"merge_into cannot read the property {PROPERTY} of {self._name}: {shorten(error)}",
                    f"Give the property its former value, if you know it. Otherwise: {_ANEW}",
                ) from None
        return self._known

    def _write(self, state: LakeState) -> None:
        if state != self._known:
            self._set(PROPERTY, state.dump())
            self._known = state

    # -- the table's columns

    def _exists(self) -> bool:
        try:
            return bool(self._spark.catalog.tableExists(self._name))
        except AnalysisException:
            # Delta Lake raises this for a path without a table. The attempt to create the table reports any other
            # cause.
            return False

    def _alter_columns(self, needed: Steps) -> None:
        """Drop, rename, widen and add columns. Raise ConfigError if the format cannot do it."""
        if self._kind == "delta":
            self._allow(needed)
        state = self._state
        for former, name in needed.were_renamed:
            state = state.with_name(former, name)
        self._write(state)
        for name in needed.dropped:
            self._alter(f"DROP COLUMN {quote(name)}", f"drop column {name}")
            self._write(self._state.without(name))
        for former, name in needed.renamed:
            self._alter(f"RENAME COLUMN {quote(former)} TO {quote(name)}", f"rename column {former} to {name}")
            self._write(self._state.with_name(former, name))
        for present, target in needed.widened:
            types = f"{target.dataType.simpleString()} now, and {present.dataType.simpleString()} in the lake"
            self._alter(
                f"ALTER COLUMN {quote(present.name)} TYPE {target.dataType.simpleString()}",
                f"change column {present.name}, which is {types}",
            )
        if needed.added:
            self._add(needed.added, needed.new)

    def _add(self, added: list[StructField], new: list[StructField]) -> None:
        """Add columns. Record before which of these are in `new`, so that they get their DEFAULT after a crash too."""
        before = self._state
        # An earlier attempt may have added columns that still lack their DEFAULT.
        adding = dict.fromkeys((*before.adding, *(each.name.lower() for each in added if each in new)))
        self._write(replace(before, adding=tuple(adding)))
        columns = ", ".join(f"{quote(each.name)} {each.dataType.simpleString()}" for each in added)
        try:
            self._alter(f"ADD COLUMNS ({columns})", f"add {', '.join(each.name for each in added)}")
        except ConfigError:
            with suppress(PySparkException, Py4JError):
                # The catalog may have added the columns, and its answer was lost.
                self._spark.sql(f"REFRESH TABLE {self._name}")
                have = {name.lower() for name in self._spark.table(self._name).columns}
                if have.isdisjoint(each.name.lower() for each in added):
                    # The user may add the columns by hand now, with values.
                    self._write(before)
            raise
        self._warn_of_null(each.name for each in added if each not in new)

    def _warn_of_null(self, names: Iterable[str]) -> None:
        if columns := ", ".join(names):
            log.warning(
                "%s: old rows have null in the new columns %s: the query knows no statement that gives them a DEFAULT."
                " Send the signal execute-snapshot for the MySQL table to read its rows again.",
                self._name,
                columns,
            )

    def _fill(self, new: list[StructField], values: Mapping[str, pa.Array], texts: Mapping[str, str]) -> None:
        """Give each row the DEFAULTs of new columns, as MySQL does.

        `values`: DEFAULTs by the names of columns. `texts`: those of statements, by names in lower case; they count
        where `values` has none.
        """
        known = [each.name for each in new if each.name in values]
        others = [each for each in new if each.name not in values and each.name.lower() in texts]
        # The DEFAULT of a TIMESTAMP is a time of the session's zone.
        others = [each for each in others if not isinstance(each.dataType, TimestampType)]
        if not known and not others:
            return
        row = self._spark.range(1)
        if known:
            row = self._spark.createDataFrame(pa.table([values[name] for name in known], known))
        row = row.withColumns({each.name: _value(texts[each.name.lower()], each.dataType) for each in others})
        row.createOrReplaceTempView(_DEFAULTS)
        sets = ", ".join(f"t.{quote(name)} = s.{quote(name)}" for name in [*known, *(each.name for each in others)])
        self._spark.sql(
            f"MERGE INTO {self._name} AS t USING {_DEFAULTS} AS s ON true WHEN MATCHED THEN UPDATE SET {sets}"
        )

    def _allow(self, needed: Steps) -> None:
        """Make Delta Lake accept the steps."""
        if needed.dropped or needed.renamed:
            # It then tells columns apart by ids.
            self._set("delta.columnMapping.mode", "name")
        if needed.widened:
            self._set("delta.enableTypeWidening", "true")
        targets = [*needed.added, *(target for _, target in needed.widened)]
        if any(isinstance(each.dataType, TimestampNTZType) for each in targets):
            # Without this Delta Lake takes timestamps without a zone only when a table is created.
            self._set("delta.feature.timestampNtz", "supported")

    def _set(self, name: str, value: str) -> None:
        """Set a property of the table."""
        self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('{name}' = '{value}')")

    def _alter(self, clause: str, what: str) -> None:
        """Run ALTER TABLE. Raise ConfigError if the format cannot do it."""
        try:
            self._spark.sql(f"ALTER TABLE {self._name} {clause}")
        except (AnalysisException, Py4JJavaError) as error:
            raise self._not_followed(f"{self._kind} cannot {what}: {_reason(error)}") from error
        log.info("%s: %s", self._name, clause)

    def _not_followed(self, why: str, by_hand: str = _BY_HAND) -> ConfigError:
        pending = self._state.pending
        by = "" if pending is None else f" behind {pending.sql}"
        return ConfigError(
            f"merge_into cannot follow MySQL's columns into {self._name}{by}: {why}", f"{_ANEW} {by_hand}".rstrip()
        )


def _value(text: str, kind: DataType) -> Column:
    """Return the DEFAULT `text` of a statement (`ddl.column_defaults.default_text`) as a value of the lake's type."""
    if isinstance(kind, BinaryType):
        try:
            octets = text.encode("latin-1")
        except UnicodeEncodeError:  # an earlier release wrote the text itself
            octets = text.encode()
        return unhex(lit(octets.hex()))
    return lit(text).try_cast(kind)


def _reason(error: AnalysisException | Py4JJavaError) -> str:
    """Return what went wrong. An error of Java: classes are missing, or were made for another Spark."""
    why = error.java_exception if isinstance(error, Py4JJavaError) else error
    return shorten(why, _MOST_OF_ERROR)
