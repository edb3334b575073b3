"""The form of the keys of a connector's records behind its offset: whether the job writes the same bytes.

The take-over joins records partition by partition, and the job chooses a partition by the bytes of the key. So with
another form of keys rows would be lost or come twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
import pyarrow.compute as pc

from incsnap.columns.arrow import Array, BytesArray
from incsnap.columns.variable import Bools
from incsnap.config.apicurio_settings import URL
from incsnap.config.settings import Settings
from incsnap.envelope.avro_format import AvroRows
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.envelope.format import KeyFormat
from incsnap.envelope.json_format import JsonRows
from incsnap.kafka.refusals import SinkRefused
from incsnap.tables import TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import for_table

#: Beginnings of keys: JSON with its schema, JSON with the id of its schema, and other records with such an id.
_SCHEMA, _SCHEMA_ID, _ID = '{"schema":{"type":', '{"schemaId":', "\x00"
#: Stands for a value in a template. The constant parts of a key never have these bytes.
_MARK = b"\x00\xff\x00"
#: The bytes before and behind the values of a key.
_Ends = tuple[bytes, bytes]


class KeyForm:
    """The form of the keys of one topic.

    `tables`: tables of the topic, as they are now. `altered`: whether one of them was altered behind the offset, so
    that earlier keys may have other columns.
    """

    def __init__(self, settings: Settings, tables: Sequence[TableShape], *, altered: bool = False) -> None:
        self._settings, self._tables, self._altered = settings, tables, altered
        self._ends: frozenset[_Ends] | None = None

    def strange(self, keys: BytesArray, partitions: int) -> Bools:
        """Return a mask of the keys that the job writes otherwise. `keys` has no nulls.

        `partitions`: how many the topic has. With several ones the schema of a key counts too, because it is a part of
        the bytes that choose the partition. Raise ServerUnreachable if the registry does not answer.
        """
        is_own = _is_of(keys, self._settings.formats.key)
        if partitions > 1 and not self._altered:
            if self._ends is None:
                self._ends = frozenset(self._ends_of_tables())
            between = (pc.and_(pc.starts_with(keys, head), pc.ends_with(keys, tail)) for head, tail in self._ends)
            is_own = pc.and_(is_own, reduce(pc.or_, between, pc.is_null(keys)))
        return np.asarray(pc.invert(is_own).to_numpy(zero_copy_only=False))

    def _ends_of_tables(self) -> Iterator[_Ends]:
        """Yield what stands before and behind the values of the tables' keys. No schema is registered.

        A table whose schema is not in the registry has no keys yet.
        """
        settings = _looking_up(self._settings)
        for shape in self._tables:
            try:
                encoders = format_of(settings, shape).encoders.values()
            except SinkRefused:
                continue
            for key in {each.key for each in encoders if each is not None and each.key is not None}:
                yield _ends_of(key)


def _is_of(keys: BytesArray, choice: FormatChoice) -> Array:
    """Return a mask of the keys that may be of this format."""
    if choice.kind == "ext-json":
        return pc.starts_with(keys, _SCHEMA_ID)
    if choice.is_registered:
        # With the id in a header nothing is certain.
        return pc.starts_with(keys, _ID if choice.frame in ("", "wide") else "")
    if choice.kind == "json" and choice.schemas:
        return pc.starts_with(keys, _SCHEMA)
    others = [_SCHEMA, _SCHEMA_ID, _ID, *(['{"'] if choice.kind == "text" else ["Struct{"])]
    return pc.invert(reduce(pc.or_, (pc.starts_with(keys, other) for other in others)))


def _ends_of(key: KeyFormat) -> _Ends:
    """Return what stands before and behind the values of a key; empty bytes if that is unknown."""
    if not isinstance(key, JsonRows | AvroRows):
        return b"", b""
    template = key.template()
    (row,) = template.rows([[_MARK]] * len(template.texts), 1)
    return row[: row.find(_MARK)], row[row.rfind(_MARK) + len(_MARK) :]


def _looking_up(settings: Settings) -> Settings:
    """Return settings with which formats of keys look schemas up, and values are JSON."""
    formats = settings.formats
    registry = formats.key_registry.model_copy(update={"client": _without_registration(formats.key_registry.client)})
    changed = {"value": for_table(settings).formats.value, "key_registry": registry}
    return settings.model_copy(update={"formats": formats.model_copy(update=changed)})


def _without_registration(client: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a registry's client with which it finds the id that it would register."""
    if URL not in client:
        return {**client, "auto.register.schemas": "false"}
    registers = client.get("apicurio.registry.auto-register", "false").lower() == "true"
    latest = {"apicurio.registry.find-latest": "false"} if registers else {}
    return {**client, **latest, "apicurio.registry.auto-register": "false"}
