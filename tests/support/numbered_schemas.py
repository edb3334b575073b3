"""A stand-in for a schema registry that only numbers schemas."""

from __future__ import annotations


class NumberedSchemas:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        return self._known.setdefault((subject, schema), len(self._known))
