"""The columns of a DataFrame of changes: marks of each change (`change_marks`), then the row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.config.settings import FrameSettings
from incsnap.errors import IncsnapError
from incsnap.gtid import GtidSet
from incsnap.tasks.change_marks import CHANGE_FIELDS, Marks

#: The columns before the marks, if the DataFrame has records of several tables in Kafka's form.
RECORD = pa.schema([("topic", pa.string()), ("table", pa.string()), ("key", pa.binary()), ("value", pa.binary())])


class SchemaChanged(IncsnapError):
    """An error: the table's columns are no longer those of the DataFrame, which cannot change its columns."""

    hint = (
        "Make the stream anew (spark.readStream...load()) and start the query again on the same checkpoint: columns are"
        " asked for then, and nothing is lost. A sink that has a schema of its own needs the new columns too."
    )
    resumable = False


class FrameColumns:
    """The columns of one batch of changes.

    `schema`: the DataFrame's, in Arrow. `older`: transactions that the server had executed before it was asked for the
    schema. Changes of these may have other columns, which are cast to the schema. `reached`: transactions that this
    batch or an earlier one has sent some event of.
    """

    def __init__(self, frame: FrameSettings, schema: pa.Schema, older: GtidSet, batch: int, reached: GtidSet) -> None:
        self._frame, self._schema, self._older = frame, schema, older
        self._marks = Marks(batch, of_one_table=frame.table is not None)
        self._reads_are_older = reached <= older
        #: The fields behind the marks.
        self._body = list(schema)[len(CHANGE_FIELDS) :]
        self._row = pa.struct(schema.field("after").type if frame.envelope else self._body)

    def of(self, topic: str, table: str, records: Any) -> Any:
        """Return records as a record batch of the DataFrame's schema.

        Raise SchemaChanged if the columns of a change that is not `older` differ from the schema, or if a cast fails.
        """
        metadata = self._marks.of(records)
        if self._frame.table is None:
            n = len(records)
            # An outbox event names its own topic.
            own = "topic" in records.schema.names
            topics = records.column("topic") if own else pa.repeat(pa.scalar(topic), n)
            names = [topics, pa.repeat(pa.scalar(table or None, pa.string()), n)]
            return self._batch_of([*names, records.column("key"), records.column("value"), *metadata])
        value = records.column("value")
        if not pa.types.is_struct(value.type):
            return self._batch_of([*metadata, *(pa.nulls(len(records), field.type) for field in self._body)])
        if not self._frame.envelope:
            return self._batch_of([*metadata, *self._fitting(table, value, records)])
        images = []
        for image in value.flatten():
            columns = self._fitting(table, image, records)
            images.append(pa.StructArray.from_arrays(columns, fields=list(self._row), mask=image.is_null()))
        return self._batch_of([*metadata, *images])

    def _batch_of(self, arrays: list[Any]) -> Any:
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    # -- the row

    def _fitting(self, table: str, rows: Any, records: Any) -> list[Any]:
        """Return the columns of `rows` with the names, types and order of the DataFrame.

        Columns of changes that are older than the DataFrame are cast to its types. Raise SchemaChanged if the columns
        do not fit.
        """
        if rows.type.equals(self._row):
            return list(rows.flatten())
        have, want = _types(rows.type), _types(self._row)
        differ = [
            *(f"{name} is gone" for name in want if name not in have),
            *(f"{name} is new" for name in have if name not in want),
            *(
                f"{name} is {have[name]}, and was {want[name]}"
                for name in want
                if name in have and have[name] != want[name]
            ),
        ]
        what = f"{table}: its columns are not those of the DataFrame any more: {', '.join(differ) or 'another order'}"
        if not self._is_older(records):
            raise SchemaChanged(what)
        return [self._older_column(what, rows, name, type_) for name, type_ in want.items()]

    def _is_older(self, records: Any) -> bool:
        """Return True if all records were changed or read before the DataFrame was made.

        A column that such records lack was then added later. For rows of a window the transactions of the batch decide:
        the batch has passed the window's high watermark, so it has reached whatever the SELECT saw. A batch that is
        repeated after an ALTER TABLE brings such rows as they were read.
        """
        gtids = pc.unique(records.column("marks").field("gtid")).to_pylist()
        return self._reads_are_older if None in gtids else GtidSet.parse(",".join(gtids)) <= self._older

    def _older_column(self, what: str, rows: Any, name: str, type_: pa.DataType) -> Any:
        """Return the column `name` of older rows as `type_`, all null if they lack it.

        Raise SchemaChanged if a cast fails.
        """
        if rows.type.get_field_index(name) < 0:
            return pa.nulls(len(rows), type_)
        values = rows.flatten()[rows.type.get_field_index(name)]
        try:
            return values.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise SchemaChanged(
                f"{what}; and what {name} held before cannot be a {type_}",
                "Begin anew: other checkpoints for the query and for checkpoint.location, and snapshot.mode=initial.",
            ) from None


def _types(struct: pa.StructType) -> dict[str, pa.DataType]:
    return {struct.field(i).name: struct.field(i).type for i in range(struct.num_fields)}
