"""Headers with ids of schemas, as Apicurio's AvroConverter writes them: `apicurio.value.globalId` in eight bytes."""

from __future__ import annotations

from incsnap.envelope.avro_format import Register
from incsnap.envelope.envelope_settings import EnvelopeSettings, FormatChoice
from incsnap.envelope.format import KeyFormat, ValueFormat
from incsnap.transforms.record_spec import BytesHeader

_HEADERS = ("globalId", "contentId")


class IdHeaders:
    """The headers of a table's records. Functions that register schemas pass through it, so it sees the ids."""

    def __init__(self, envelope: EnvelopeSettings, key: Register | None, value: Register | None) -> None:
        self._choices = {"key": envelope.key, "value": envelope.value}
        self._registers = {"key": key, "value": value}
        #: of each side the id that was registered last
        self._last: dict[str, int] = {}
        self._of_keys: dict[KeyFormat, int] = {}

    def register_key(self, subject: str, schema: str) -> int:
        """Register the schema of a key, and return its id."""
        return self._register("key", subject, schema)

    def register_value(self, subject: str, schema: str) -> int:
        """Register the schema of a value, and return its id."""
        return self._register("value", subject, schema)

    def of(self, key: KeyFormat | None, value: ValueFormat | None) -> tuple[BytesHeader, ...]:
        """Return the headers of records with these formats, the second of which was made just now."""
        headers: list[BytesHeader] = []
        if key is not None and self._choices["key"].frame in _HEADERS:
            # A format of keys is made once, and then serves several kinds of records.
            number = self._of_keys.setdefault(key, self._last["key"])
            headers += _headers("key", self._choices["key"], number)
        if value is not None and self._choices["value"].frame in _HEADERS:
            headers += _headers("value", self._choices["value"], self._last["value"])
        return tuple(headers)

    def _register(self, side: str, subject: str, schema: str) -> int:
        register = self._registers[side]
        assert register is not None
        number = self._last[side] = register(subject, schema)
        return number


def _headers(side: str, choice: FormatChoice, number: int) -> list[BytesHeader]:
    return [
        BytesHeader(f"apicurio.{side}.{choice.frame}", "", number.to_bytes(8, "big")),
        BytesHeader(f"apicurio.{side}.encoding", "", b"BINARY"),
    ]
