"""Stand-ins for a schema registry that only number schemas."""

from __future__ import annotations


class NumberedSchemas:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        return self._known.setdefault((subject, schema), len(self._known))


class SchemasFrom300:
    """A registry in memory: numbers from 300 on, so that more than one byte of them is tried."""

    def __init__(self) -> None:
        self.schemas: list[tuple[str, str]] = []

    def __call__(self, subject: str, schema: str) -> int:
        if (subject, schema) not in self.schemas:
            self.schemas.append((subject, schema))
        return 300 + self.schemas.index((subject, schema))

    def schema_of(self, data: bytes, subject: str) -> str:
        """Return the schema of a record in Confluent's wire format, which must be registered under `subject`."""
        known_subject, schema = self.schemas[int.from_bytes(data[1:5], "big") - 300]
        assert known_subject == subject
        return schema
