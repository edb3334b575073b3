"""The steps by which a lake's table follows the columns of a MySQL table: decided here, done by `lake_table`.

The decision is pure. It compares the columns of the stream with those of the lake, by what statements say of the
origins of columns. A step that was done already is no step any more, so the decision may be made again after a crash.
For that each dropped or renamed column is recorded before the next step: otherwise a new column could be taken for the
renamed one whose name it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.types import StructField

from incsnap.spark.common_types import holds
from incsnap.tasks.described_rows import Alteration


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """The columns of a stream, at one moment."""

    fields: tuple[StructField, ...]  #: columns of the table, without marks and without metadata
    keys: tuple[str, ...] = ()  #: columns that tell rows apart; empty: none
    #: column -> array of one value, its DEFAULT in MySQL; columns without a constant DEFAULT are left out
    defaults: Mapping[str, pa.Array] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the columns' names."""
        return [each.name for each in self.fields]


@dataclass(frozen=True, slots=True)
class Steps:
    """The changes of a lake's table, in the order in which they are made."""

    dropped: list[str]  #: columns to drop
    were_renamed: list[tuple[str, str]]  #: (name, new name) of columns that an earlier attempt has renamed
    renamed: list[tuple[str, str]]  #: (name, new name) of columns; each new name is free when its turn comes
    widened: list[tuple[StructField, StructField]]  #: columns with a new type: as they are, and as MySQL has them
    added: list[StructField]  #: columns to add
    #: columns that statements have certainly added: rows get their DEFAULT, unless somebody else has added them to the
    #: lake
    new: list[StructField]
    columns: tuple[str, ...]  #: all columns that the stream has brought


class NotFollowed(Exception):
    """An error: the lake's table cannot follow. Its text says why."""


class NamesSwapped(NotFollowed):
    """An error: columns have swapped their names. The lake's columns do not show whether somebody has done so there."""


def steps(
    stream: StreamColumns, lake: Mapping[str, StructField], brought: tuple[str, ...], pending: Alteration | None
) -> Steps:
    """Return the steps that give the lake's table the columns of the stream.

    `lake`: the table's columns by their names in lower case. `brought`: columns that the stream has brought before.
    `pending`: the statements since, as one; None: no statement, but settings may have changed.

    Raise NotFollowed if it is not clear which column became which, or if a name is taken. Raise NamesSwapped if columns
    have swapped their names.
    """
    target = {each.name.lower(): each for each in stream.fields}
    known = {name.lower() for name in brought}
    origins = {} if pending is None or pending.origins is None else pending.origins
    before = {name: origins.get(name, name) for name in target}
    renamed = {former: name for name, former in before.items() if former and former != name}
    is_unclear = pending is not None and pending.origins is None
    # Columns that settings show since, or that another table brings, have other values in old rows than their DEFAULT.
    unclear = [name for name in target if name not in known] if is_unclear else []
    stated = {} if pending is None else pending.defaults
    new = [name for name, former in before.items() if former is None or (name in unclear and name in stated)]
    # Settings may have left out a column since. Only a statement takes a column away.
    gone = known - set(before.values()) if pending is not None else set()
    have, moved = dict(lake), []
    lost, unknown = [name for name in lake if name in gone], [name for name in unclear if name not in lake]
    if lost and unknown:
        raise NotFollowed(f"columns {', '.join(lost)} may be {', '.join(unknown)} under new names")
    # After an earlier attempt a renamed column may have the name of a lost one.
    taken = {name for former, name in renamed.items() if former not in lake}
    dropped = [have.pop(name).name for name in lost if name not in taken]
    waiting = {former: name for former, name in renamed.items() if former in have}
    while waiting:
        former = next((each for each, name in waiting.items() if name not in have), "")
        if not former:
            # A column that the stream has not brought can be renamed or dropped by hand.
            others = {each: name for each, name in waiting.items() if name not in waiting}
            former, name = next(iter((others or waiting).items()))
            why = f"column {former} has the name {name} now, which another column has in the lake"
            raise NotFollowed(why) if others else NamesSwapped(why)
        name = waiting.pop(former)
        moved.append((have[former].name, target[name].name))
        have[name] = have.pop(former)
    return Steps(
        dropped,
        [(former, name) for former, name in renamed.items() if former not in lake],
        moved,
        [
            (StructField(each.name, have[name].dataType), each)
            for name, each in target.items()
            if name in have and not holds(have[name].dataType, each.dataType)
        ],
        [each for name, each in target.items() if name not in have],
        [target[name] for name in new],
        (*stream.names, *(name for name in brought if name.lower() not in {*target, *gone, *renamed})),
    )


def unsure_keys(keys: Iterable[str], known: Iterable[str], brought: Iterable[str], needed: Steps) -> list[str]:
    """Return the columns of the key that old rows in the lake may have no value in, in lower case.

    `keys`: columns by which rows are merged from now on, in lower case. `known`: those until now. `brought`: columns
    that the stream has brought before. `needed`: the steps since.
    """
    new = {each.name.lower() for each in needed.new}
    sure = ({*known} & {name.lower() for name in brought}) - new
    return [name for name in keys if name not in sure]
