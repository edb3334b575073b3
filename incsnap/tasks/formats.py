"""The formats that the settings ask for, and the registry they need. Made once per process and kept."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from incsnap import __version__
from incsnap.config.servers import RegistrySettings
from incsnap.config.settings import Settings
from incsnap.config.topics import topic_of
from incsnap.envelope.avro_format import Register
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import StructFormat
from incsnap.envelope.table_format import Registers, TableFormat, struct_format, table_format
from incsnap.kafka.registry import Registry
from incsnap.tables import TableShape


def format_of(settings: Settings, shape: TableShape) -> TableFormat:
    """Raises ``UnsupportedType`` and what the registry refuses."""
    return table_format(shape, topic_of(settings, shape.id), _envelope(settings), _registers(settings))


def format_key(settings: Settings) -> Hashable:
    """Settings with equal ones give a table the same format."""
    return _envelope(settings), _registers(settings), settings.topic_delimiter, settings.unicode_topics


def struct_formats(settings: Settings) -> tuple[StructFormat, StructFormat]:
    """For keys and for values of records that are no rows."""
    formats, registers = settings.formats, _registers(settings)
    return struct_format(formats.key, registers.key), struct_format(formats.value, registers.value)


def reach_registries(settings: Settings) -> None:
    """Does each registry that is needed answer?  Raises ``ServerUnreachable`` or ``ConfigError``."""
    formats = settings.formats
    for choice, registry in ((formats.key, formats.key_registry), (formats.value, formats.value_registry)):
        if choice.kind == "avro":
            _registry(registry.url, tuple(sorted(registry.client.items()))).reach()


def _registers(settings: Settings) -> Registers:
    formats = settings.formats
    return Registers(
        _register(formats.key_registry) if formats.key.kind == "avro" else None,
        _register(formats.value_registry) if formats.value.kind == "avro" else None,
    )


def _register(settings: RegistrySettings) -> Register:
    # Bound methods of one object are equal, so a format is made once.
    return _registry(settings.url, tuple(sorted(settings.client.items()))).register


@lru_cache(maxsize=4)
def _registry(url: str, client: tuple[tuple[str, str], ...]) -> Registry:
    return Registry(url, dict(client))


def _envelope(settings: Settings) -> EnvelopeSettings:
    return EnvelopeSettings(
        name=settings.topic_prefix,
        version=__version__,
        modes=settings.modes,
        tombstones=settings.tombstones_on_delete,
        rules=settings.columns,
        skipped=settings.skipped_operations,
        key=settings.formats.key,
        value=settings.formats.value,
        transactions=settings.transaction_metadata,
        schema_names=settings.formats.schema_names,
        transforms=settings.transforms,
        skip_unchanged=settings.skip_unchanged,
        marked=settings.frame is not None,
    )
