"""The rows of a DataFrame that `merge_into` reads: blocks of changes that describe their own columns, and alterations.

A DataFrame's columns never change, but those of a MySQL table do. So each row of this DataFrame holds a whole block of
changes as an Arrow IPC stream, with the description of its columns beside it. A statement that alters the table is a
row of its own. A batch has at most one, because a batch ends with the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from incsnap.ddl.column_origins import composed
from incsnap.tasks import blocks
from incsnap.tasks.change_marks import CHANGE_FIELDS, Marks

#: Columns of the DataFrame.
DESCRIBED_ROWS = pa.schema(
    [
        #: Arrow's schema of `changes`, or of the table behind the alteration; null if the latter is not certain.
        ("described", pa.binary()),
        ("altered", pa.binary()),  #: an Alteration as JSON; null for changes
        ("changes", pa.binary()),  #: an Arrow IPC stream of marks and the row's columns; null for an alteration
    ]
)


@dataclass(frozen=True, slots=True)
class Alteration:
    """A statement that has altered the table."""

    id: str  #: tells the statement from all others of the stream
    sql: str  #: the statement, for people
    #: Name of a column behind the statement -> its name before, None for a new column; both in lower case. Columns that
    #: are not named have kept their name. None: the statement is not understood.
    origins: dict[str, str | None] | None
    #: New column in lower case -> its DEFAULT as the statement tells it (`column_defaults.default_text`).
    #: A byte string has a character for each byte.
    defaults: dict[str, str] = field(default_factory=dict)
    is_one: bool = True  #: False for several statements as one

    def behind(self, before: Alteration) -> Alteration:
        """Return `before` and this statement as one."""
        if self.origins is None:
            # The columns may be those of another table, which has other values.
            return replace(self, is_one=False)
        origins = self.origins
        names = {former: name for name, former in origins.items() if former}
        # A name in `origins` that is no former name is another column's now.
        same = {name: default for name, default in before.defaults.items() if name in names or name not in origins}
        earlier = {names.get(name, name): default for name, default in same.items()}
        return replace(
            self,
            origins=composed(before.origins, self.origins),
            defaults={**earlier, **self.defaults},
            is_one=False,
        )

    def to_json(self) -> bytes:
        """Return the alteration as JSON."""
        return _ALTERATION.dump_json(self)

    @classmethod
    def from_json(cls, text: bytes) -> Alteration:
        """Return the alteration that `to_json` wrote."""
        return _ALTERATION.validate_json(text)


_ALTERATION = TypeAdapter(Alteration)


class DescribedRows:
    """The rows of one batch."""

    def __init__(self, batch: int) -> None:
        self._marks = Marks(batch, of_one_table=True)

    def of(self, records: Any) -> Any:
        """Return records as a record batch of DESCRIBED_ROWS.

        Records whose values are no rows are alterations if they have keys, else truncations.
        """
        value = records.column("value")
        is_row = pa.types.is_struct(value.type)
        if not is_row and records.column("key").null_count == 0:
            return _rows(value.to_pylist(), records.column("key").to_pylist(), [None] * len(records))
        fields = list(value.type) if is_row else []
        schema = pa.schema([*CHANGE_FIELDS, *fields])
        arrays = [*self._marks.of(records), *(value.flatten() if is_row else ())]
        changes = pa.RecordBatch.from_arrays(arrays, schema=schema)
        return _rows([schema.serialize().to_pybytes()], [None], [blocks.encode(changes)])


def _rows(described: list[Any], altered: list[Any], changes: list[Any]) -> Any:
    return pa.record_batch([described, altered, changes], schema=DESCRIBED_ROWS)
