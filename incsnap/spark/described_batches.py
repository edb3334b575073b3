"""The batches of a stream with described rows (`tasks.described_rows`), as DataFrames with the table's columns."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import StructField

from incsnap.config.frames import DESCRIBES
from incsnap.envelope.frame_format import DEFAULT_MARK, KEY_MARK
from incsnap.spark.lake_columns import StreamColumns
from incsnap.spark.spark_release import spark_schema
from incsnap.tasks import blocks
from incsnap.tasks.change_marks import CHANGE_FIELDS
from incsnap.tasks.described_rows import Alteration

#: Spark's name of the plan of a stream as `load()` returns it.
_STREAM = "StreamingRelationV2"


@dataclass(frozen=True, slots=True)
class DescribedBatch:
    """A batch of a stream with described rows."""

    changes: DataFrame | None  #: marks and columns; None if the batch has no change of a row
    columns: tuple[StreamColumns, ...]  #: the columns of blocks of `changes`; more than one: equal but for DEFAULTs
    is_truncated: bool  #: whether the batch ends with a TRUNCATE
    alteration: Alteration | None  #: the statement with which the batch ends; None if it ends with none
    behind: StreamColumns | None  #: columns behind the alteration; None: not certain, or no such table


def described_stream(changes: DataFrame, name: str) -> DataFrame | None:
    """Return the stream of `changes` with described rows.

    Return None if `changes` is not what `load()` of the format `name` has returned: it has columns of its own then.
    """
    frame = getattr(changes, "_jdf", None)  # Spark Connect has none
    plan = None if frame is None else frame.queryExecution().analyzed()
    if plan is None or plan.getClass().getSimpleName() != _STREAM or plan.sourceName() != name:
        return None
    options = dict(plan.extraOptions().asCaseSensitiveMap())
    return changes.sparkSession.readStream.format(name).options(**options).option(DESCRIBES, "true").load()


def described_batch(batch: DataFrame) -> DescribedBatch:
    """Return what `batch`, a batch of a stream with described rows, holds. `batch` should be persisted."""
    kinds = batch.select("described", "altered").distinct().collect()
    changes: DataFrame | None = None
    columns: list[StreamColumns] = []
    is_truncated, alteration, behind = False, None, None
    for described, altered in kinds:
        if altered is not None:
            alteration = Alteration.from_json(bytes(altered))
            behind = None if described is None else stream_columns(pa.ipc.read_schema(pa.py_buffer(described)))
            continue
        schema = pa.ipc.read_schema(pa.py_buffer(described))
        if len(schema) == len(CHANGE_FIELDS):
            is_truncated = True
        else:
            # A statement may leave the columns as they are. Its row has the same description then.
            of_kind = batch.where((col("described") == described) & col("altered").isNull()).select("changes")
            rows = of_kind.mapInArrow(_unpacked, spark_schema(schema))
            changes = rows if changes is None else changes.unionByName(rows, allowMissingColumns=True)
            columns.append(stream_columns(schema))
    return DescribedBatch(changes, tuple(columns), is_truncated, alteration, behind)


def stream_columns(schema: pa.Schema) -> StreamColumns:
    """Return the columns behind the marks of `schema`, by the metadata of its fields."""
    fields = list(schema)[len(CHANGE_FIELDS) :]
    plain = [StructField(each.name, each.dataType) for each in spark_schema(pa.schema(fields)).fields]
    marks = {each.name: each.metadata or {} for each in fields}
    defaults = {name: given[DEFAULT_MARK] for name, given in marks.items() if DEFAULT_MARK in given}
    return StreamColumns(
        tuple(plain),
        tuple(name for name, given in marks.items() if KEY_MARK in given),
        {name: blocks.decode(base64.b64decode(value))[0].column(0) for name, value in defaults.items()},
    )


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the changes of blocks. Spark calls this in a task."""
    for batch in batches:
        for block in batch.column(0):
            yield from blocks.decode(block.as_buffer())
