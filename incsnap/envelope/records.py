"""The Arrow schema of all records, and the identities of the rows that records are about.

A record overtakes a row of a window if both have the same identity: the row is then older, and is discarded.

The identity and the bucket of a record depend only on its row, not on what a transform makes of the record. So a record
that a transform drops, or sends to another topic, overtakes the rows of windows like any other record.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray, MapArray, RecordBatch, StructArray
from incsnap.envelope.added_fields import HEADERS
from incsnap.envelope.format import OPERATIONS

#: The columns of a batch of records.
#:
#: A batch may have more columns behind these: `HEADERS` if a transform adds headers, then one to three of `OWN` if the
#: rows say where they go, then `MARKS` for a DataFrame or `OPERATION` for changes that go to Kafka.
RECORDS = pa.schema(
    [
        ("partition", pa.int32()),  # -1: a transform drops the record, which still overtakes rows of windows
        ("key", pa.binary()),
        ("value", pa.binary()),  # null: a tombstone. For a DataFrame a struct of columns (`frame_format`)
        ("old_key", pa.binary()),  # the header __debezium.oldkey, or null
        ("new_key", pa.binary()),  # the header __debezium.newkey, or null
        ("identity", pa.binary()),  # tells the row apart when rows of windows are discarded; null: the key does
        ("old_identity", pa.binary()),  # identity of the row before an update that changed the identity
    ]
)

#: A column that records have if `EnvelopeSettings.marked` is set: what a DataFrame shows of a record beside its value.
MARKS = pa.struct(
    [
        ("op", pa.int8()),  # index into `MARKED_OPERATIONS`, null for a tombstone
        ("ts_us", pa.int64()),  # of the source, microseconds since 1970
        ("gtid", pa.string()),  # of the source
        ("event", pa.int64()),  # number of the event in the batch, -1 for rows read by SELECT
        ("row", pa.int64()),  # number of the record in its event
    ]
)
MARKED_OPERATIONS = (*OPERATIONS, "r")
_MARKS_COLUMN = pa.field("marks", MARKS)
#: A column of changes that go to Kafka: an index into `OPERATIONS`, or `record_images.TOMBSTONE`. The sink counts
#: events by it. Rows of windows and control records lack the column.
OPERATION = pa.field("op", pa.int8(), nullable=False)
#: Columns of records whose rows say where they go, in this order: topic, time (milliseconds since 1970), partition.
#: Without a partition, or with null, the record goes to the partition of its key.
OWN = (pa.field("topic", pa.string()), pa.field("timestamp", pa.int64()), pa.field("place", pa.int32()))

_VALUE = RECORDS.get_field_index("value")


def overtaken_by(records: RecordBatch) -> BytesArray:
    """Return the identities (`pa.binary()`) of the rows that the records (RECORDS) are about."""
    now = pc.coalesce(records.column("identity"), records.column("key"))
    return pa.concat_arrays([now, records.column("old_identity").drop_null()])


def shares_identity(records: RecordBatch) -> bool:
    """Return True if two rows have the same identity, so that nothing tells them apart."""
    return len(pc.unique(overtaken_by(records))) < len(records)


def batch_of(
    arrays: Sequence[Array], headers: MapArray | None, own: Sequence[Array] = (), marks: StructArray | None = None
) -> RecordBatch:
    """Return a RecordBatch of records.

    `arrays`: the columns of RECORDS in order. Behind them stand `headers`, the first columns of OWN (`own`), and
    `marks`; None for a column that is not there.
    """
    fields = [*RECORDS.set(_VALUE, pa.field("value", arrays[_VALUE].type))]
    more = []
    for field, values in ((HEADERS, headers), *zip(OWN, own, strict=False), (_MARKS_COLUMN, marks)):
        if values is not None:
            fields.append(field)
            more.append(values)
    return pa.RecordBatch.from_arrays([*arrays, *more], schema=pa.schema(fields))
