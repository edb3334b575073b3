"""JSON payloads of outbox events as structs: table.expand.json.payload.

A payload that is no JSON object stays text, as Debezium leaves a payload that it cannot read. Debezium's connector
stops at an array, or at a number beyond 64 bits: it gives the schema of what it has read to the text that it has kept.
Here such a payload stays text.
"""

from __future__ import annotations

import logging
from typing import Any

import pyarrow as pa

from incsnap.columns.arrow import BytesArray, Columns
from incsnap.connect.json_expansion import NotExpandedError, expanded
from incsnap.connect.json_text import Encoded
from incsnap.connect.schema import Schema
from incsnap.envelope.json_rows import around, join
from incsnap.envelope.table_view import ViewField
from incsnap.transforms.record_spec import OutboxEvent
from incsnap.types.modes import Modes

_log = logging.getLogger(__name__)


class ExpandedPayload:
    """The payload of outbox events. `field`: the text column with the JSON."""

    name = "payload"

    def __init__(self, field: ViewField, event: OutboxEvent) -> None:
        self._field, self._event = field, event

    def encode(self, columns: Columns, modes: Modes) -> Encoded:
        """Return the JSON of each payload, null for null."""
        return Encoded(self._payloads(columns, modes)[1])

    def alone(self, columns: Columns, modes: Modes, *, schemas: bool) -> BytesArray:
        """Return the values of events that have nothing beside their payload: the JSON of each payload (`pa.binary()`).

        `schemas`: whether each value begins with the schema of its payload.
        """
        known, texts = self._payloads(columns, modes)
        if not schemas:
            return join([texts])
        own = self._field.schema(modes)
        heads, end = [around(schema or own)[0] for schema in known], around(own)[1]
        return join([pa.array(heads, pa.string()), texts, end])

    def _payloads(self, columns: Columns, modes: Modes) -> tuple[list[Schema | None], Any]:
        """Return the schema of each payload, None for one that stays text, and its JSON (`pa.string()`)."""
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
            _log.warning(
                "%s: %d payloads stay text, because they cannot be expanded as JSON; the last reason: %s",
                self._field.table,
                left,
                why,
            )
        return schemas, pa.array(written, pa.string())
