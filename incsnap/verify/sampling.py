"""Samples of keys: one key in so many, by the CRC32 of the record key's JSON.

MySQL computes CRC32 too. So the server leaves out the rows of other keys, where it can write the JSON of a key: for
keys of whole numbers. Other keys are read alone, and then the chosen rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from incsnap.columns.arrow import BytesArray
from incsnap.columns.hashing import crc32
from incsnap.connect.json_text import literal
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.table_format import TableFormat
from incsnap.tables import quote

_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of one key in `every`. Samples with other numbers have other keys."""

    every: int = 1  #: 1: all keys
    number: int = 0  #: which of the samples, from 0 on

    @property
    def is_all(self) -> bool:
        """Whether all keys are in the sample."""
        return self.every == 1

    def has(self, keys: BytesArray) -> npt.NDArray[np.bool_]:
        """Return True for each of `keys` that is in the sample. A null has the CRC32 of no bytes."""
        if self.is_all:
            return np.ones(len(keys), np.bool_)
        return np.asarray(crc32(keys) % np.uint32(self.every) == self.number)

    def condition(self, format_: TableFormat) -> str | None:
        """Return the SQL condition for the rows of the sample; None if the server cannot write the table's keys."""
        read = format_.encoders[READ]
        if read is None or read.spec.key_fields or not format_.view.key:
            return None
        texts, comma = [], "{"
        for field in format_.view.key:
            column, schema = field.column, field.schema(format_.envelope.key_modes)
            is_changed = field.boolean or field.masked is not None or schema.name is not None or column.nullable
            if column.type not in _WHOLE or is_changed or (column.type == "bigint" and column.unsigned):
                return None
            text = f"{comma}{literal(field.name)}:"
            # The sum has no ZEROFILL.
            texts += [f"_utf8mb4 x'{text.encode().hex()}'", f"{quote(column.name)} + 0"]
            comma = ","
        return f"CRC32(CONCAT({', '.join(texts)}, '}}')) % {self.every:d} = {self.number:d}"


ALL_KEYS = Sample()
