"""Names for Arrow's arrays and batches by what they hold.

PyArrow has no types of its own that mypy could check, so each name is `Any`. The names tell the reader which array a
function takes and returns. An array has one element per row, event or record, as the docstring says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Array = Any  #: an array of any type
TextArray = Any  #: `pa.string()`
BytesArray = Any  #: `pa.binary()`
IntArray = Any  #: `pa.int64()` or another type of integers
StructArray = Any  #: structs
MapArray = Any  #: maps of text to bytes
RecordBatch = Any  #: a batch of records: columns of equal length

#: Columns of one table in the order of its columns; None for a column that is not needed.
Columns = Sequence[Array]
