"""Keys and values as JSON in Confluent's wire format: a zero byte, the id of a JSON Schema in 4 bytes, then the JSON.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.connect.draft_schema import draft_schema
from incsnap.connect.json_schema import schema_json
from incsnap.connect.schema import Schema
from incsnap.envelope.avro_format import Register, framed_id
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.format import Changes, EnvelopeFormat, KeyFormat, ValueFormat
from incsnap.envelope.json_format import JsonStructs
from incsnap.envelope.sources import SourceConstants


def json_head(register: Register, subject: str, schema: Schema, choice: FormatChoice) -> bytes:
    """Register the schema under `subject`. Return the five bytes that begin each record.

    Raise what `register` raises if the registry fails.
    """
    return framed_id(register(subject, draft_schema(schema, decimals=choice.decimals, closed=choice.closed)))


def id_around(register: Register, subject: str, schema: Schema) -> tuple[str, str]:
    """Register the schema under `subject`. Return the texts before and behind the JSON of each record, as Apicurio's
    ExtJsonConverter writes them: `{"schemaId":1,"payload":` and `}`.

    Raise what `register` raises if the registry fails.
    """
    return f'{{"schemaId":{register(subject, schema_json(schema))},"payload":', "}"


def json_ends(register: Register, subject: str, schema: Schema, choice: FormatChoice) -> tuple[bytes, bytes]:
    """Register the schema under `subject`. Return the bytes before and behind the JSON of each record.

    `choice`: its kind is json-schema or ext-json. Raise what `register` raises if the registry fails.
    """
    if choice.kind == "json-schema":
        return json_head(register, subject, schema, choice), b""
    head, tail = id_around(register, subject, schema)
    return head.encode(), tail.encode()


class FramedKeys:
    """Keys of `inner`, each between the bytes `head` and `tail`."""

    def __init__(self, inner: KeyFormat, head: bytes, tail: bytes = b"") -> None:
        self._inner, self._head, self._tail = inner, head, tail

    def keys(self, columns: Columns) -> BytesArray:
        """Return the key of each row (`pa.binary()`)."""
        return between(self._head, self._inner.keys(columns), self._tail)


class FramedValues:
    """Values of `inner`, each between the bytes `head` and `tail`."""

    def __init__(self, inner: ValueFormat, head: bytes, tail: bytes = b"") -> None:
        self._inner, self._head, self._tail = inner, head, tail

    def reads(self, columns: Columns, source: SourceConstants, now_us: int) -> BytesArray:
        """Return the value of each row that a SELECT has read (`pa.binary()`)."""
        return between(self._head, self._inner.reads(columns, source, now_us), self._tail)

    def changes(self, images: Columns, what: Changes) -> BytesArray:
        """Return the value of each record of `what` (`pa.binary()`)."""
        return between(self._head, self._inner.changes(images, what), self._tail)


class FramedEnvelopes(FramedValues):
    """Envelopes of `envelopes`, each between the bytes `head` and `tail`."""

    def __init__(self, envelopes: EnvelopeFormat, head: bytes, tail: bytes = b"") -> None:
        super().__init__(envelopes, head, tail)
        self._envelopes = envelopes

    def truncation(self, source: SourceConstants, now_us: int) -> bytes:
        """Return the value of the record of a TRUNCATE."""
        return self._head + self._envelopes.truncation(source, now_us) + self._tail


class FramedStructs:
    """An encoder for keys or values that come one at a time, whose schemas it registers."""

    def __init__(self, inner: JsonStructs, register: Register, choice: FormatChoice) -> None:
        self._inner, self._register, self._choice = inner, register, choice

    def struct(self, subject: str, schema: Schema, value: Any) -> bytes:
        """Return `value` in the wire format. Raise what `register` raises."""
        head, tail = json_ends(self._register, subject, schema, self._choice)
        return head + self._inner.struct(subject, schema, value) + tail


def with_head(head: bytes, texts: BytesArray) -> BytesArray:
    """Return each text behind `head`; null stays null."""
    return between(head, texts, b"")


def between(head: bytes, texts: BytesArray, tail: bytes) -> BytesArray:
    """Return each text between `head` and `tail`; null stays null."""
    ends = [pa.scalar(end, pa.binary()) for end in (head, tail, b"")]
    return pc.binary_join_element_wise(ends[0], texts, *ends[1:])
