"""The records that another engine has sent are left out, also where tables with and without a key have one topic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from incsnap.envelope.change_records import change_records
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.row_changes import changes_of_table
from incsnap.envelope.seam import Keyless, PartitionEnd, RecordPlace, Seam
from incsnap.envelope.table_format import table_format
from incsnap.tables import Column, TableId, TableShape
from tests.support.source_columns import source_columns

_TOPIC, _INSERT = "all", 30
_SEAM = Seam(
    "uuid", RecordPlace(-1, 0), (PartitionEnd(_TOPIC, 0, RecordPlace(-1, 2)),), (Keyless(_TOPIC, ((-1, 1, 0),)),)
)


@pytest.mark.parametrize(("key", "ids"), [((0,), [3, 4]), ((), [1, 3, 4])])
def test_the_end_of_a_partition_counts_for_records_with_a_key_only(key: tuple[int, ...], ids: list[int]) -> None:
    shape = TableShape(TableId("d", "t"), (Column("id", "int"),), key=key)
    format_ = table_format(shape, _TOPIC, EnvelopeSettings("p", "1"))
    # Each event has one row. Its place is its number: the file's name has none, and counts as -1.
    events = np.arange(4, dtype=np.int32)
    laid = changes_of_table(format_, [pa.array([1, 2, 3, 4], pa.int64())], events, np.full(4, _INSERT, np.uint8))
    [made] = change_records(laid, replace(source_columns(4), seam=_SEAM), None, {_TOPIC: 1}, now_us=0)

    partitions = made.records.column("partition").to_pylist()

    assert [number for number, partition in enumerate(partitions, 1) if partition >= 0] == ids
