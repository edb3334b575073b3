"""Payloads of outbox events that are JSON, as structs: table.expand.json.payload.

What is no JSON object stays the text that it is, as Debezium leaves what it cannot read. (There an array, or a number
beyond 64 bits, also stops the connector: it gives the schema of what it has read to the text that it has kept.)
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa

from incsnap.connect.json_expansion import NotExpandedError, expanded
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.envelope.json_format import around
from incsnap.envelope.json_rows import join
from incsnap.envelope.table_view import Columns, ViewField
from incsnap.transforms.form import Event
from incsnap.types.modes import Modes

_log = logging.getLogger(__name__)


class ExpandedPayload:
    """The payload of ``event``, which is a text, in the column of ``field``."""

    name = "payload"

    def __init__(self, field: ViewField, event: Event) -> None:
        self._field, self._event = field, event

    def encode(self, columns: Columns, modes: Modes) -> Encoded:
        """The payloads' JSON, null for null."""
        return Encoded(self._payloads(columns, modes)[1])

    def alone(self, columns: Columns, modes: Modes, *, schemas: bool) -> Any:
        """``pa.binary()``; with ``schemas`` each behind the one that it has itself."""
        known, texts = self._payloads(columns, modes)
        if not schemas:
            return join([texts])
        own = self._field.schema(modes)
        heads, end = [around(schema or own)[0] for schema in known], around(own)[1]
        return join([pa.array(heads, pa.string()), texts, end])

    def _payloads(self, columns: Columns, modes: Modes) -> tuple[list[Schema | None], Any]:
        """Schemas, None where the payload stays a text, and JSON (``pa.string()``)."""
        schemas: list[Schema | None] = []
        written: list[str | None] = []
        left = 0
        texts = self._field.connect(columns, modes).to_pylist()
        for text, as_text in zip(texts, self._field.encode(columns, modes).complete().to_pylist(), strict=True):
            payload: tuple[Schema | None, str | None] = (None, as_text)
            if text is not None:
                try:
                    payload = expanded(text, self._event.payload, keep_nulls=self._event.keeps_nulls)
                except NotExpandedError as error:
                    left, why = left + 1, error
            schemas.append(payload[0])
            written.append(payload[1])
        if left:
            _log.warning("%s: %d payloads are not expanded, they stay text; the last: %s", self._field.table, left, why)
        return schemas, pa.array(written, pa.string())
