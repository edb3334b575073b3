"""Keys and values as JSON in Confluent's wire format: a zero byte, the id of a JSON Schema in 4 bytes, then the JSON.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.connect.draft_schema import draft_schema
from incsnap.connect.schema import Schema
from incsnap.envelope.avro_format import Register, framed_id
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.format import Changes, EnvelopeFormat, KeyFormat, StructFormat, ValueFormat
from incsnap.envelope.sources import SourceConstants


def json_head(register: Register, subject: str, schema: Schema, choice: FormatChoice) -> bytes:
    """Register the schema under `subject`. Return the five bytes that begin each record.

    Raise what `register` raises if the registry fails.
    """
    return framed_id(register(subject, draft_schema(schema, decimals=choice.decimals, closed=choice.closed)))


class FramedKeys:
    """Keys of `inner`, each behind the bytes `head`."""

    def __init__(self, inner: KeyFormat, head: bytes) -> None:
        self._inner, self._head = inner, head

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""
        return with_head(self._head, self._inner.keys(columns))


class FramedValues:
    """Values of `inner`, each behind the bytes `head`."""

    def __init__(self, inner: ValueFormat, head: bytes) -> None:
        self._inner, self._head = inner, head

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        return with_head(self._head, self._inner.reads(columns, source, now_us))

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        return with_head(self._head, self._inner.changes(images, what))


class FramedEnvelopes(FramedValues):
    """Envelopes of `envelopes`, each behind the bytes `head`."""

    def __init__(self, envelopes: EnvelopeFormat, head: bytes) -> None:
        super().__init__(envelopes, head)
        self._envelopes = envelopes

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        return self._head + self._envelopes.truncation(source, now_us)


class FramedStructs:
    """An encoder for keys or values that come one at a time, whose schemas it registers."""

    def __init__(self, inner: StructFormat, register: Register, choice: FormatChoice) -> None:
        self._inner, self._register, self._choice = inner, register, choice

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` in the wire format. Raise what `register` raises."""
        return json_head(self._register, subject, schema, self._choice) + self._inner.struct(subject, schema, value)


def with_head(head: bytes, texts: BytesArray) -> BytesArray:
    """Return each text behind `head`; null stays null."""
    return pc.binary_join_element_wise(pa.scalar(head, pa.binary()), texts, pa.scalar(b"", pa.binary()))
