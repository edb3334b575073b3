"""The formats that the settings ask for, and the schema registries that these need.

Each process makes and keeps them.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from incsnap.config.apicurio_settings import URL
from incsnap.config.servers import RegistrySettings
from incsnap.config.settings import Settings
from incsnap.config.topics import context_headers, topic_of
from incsnap.envelope.avro_format import Register
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.format import StructFormat
from incsnap.envelope.table_format import Registers, TableFormat, struct_format, table_format
from incsnap.kafka.apicurio import ApicurioRegistry
from incsnap.kafka.registry import Registry
from incsnap.kafka.registry_answers import reach
from incsnap.tables import TableShape
from incsnap.version import __version__


def format_of(settings: Settings, shape: TableShape) -> TableFormat:
    """Return the format of a table's records.

    Raise UnsupportedType if a column's type has no format. Errors of the schema registry pass through.
    """
    return table_format(shape, topic_of(settings, shape.id), _envelope(settings), _registers(settings))


def format_key(settings: Settings) -> Hashable:
    """Return a key of the settings that formats depend on. Settings with equal keys give a table the same format."""
    return _envelope(settings), _registers(settings), settings.topic_delimiter, settings.unicode_topics


def struct_formats(settings: Settings) -> tuple[StructFormat, StructFormat]:
    """Return the formats for keys and values of records that are not rows, for example notifications."""
    formats, registers = settings.formats, _registers(settings)
    return struct_format(formats.key, registers.key), struct_format(formats.value, registers.value)


def reach_registries(settings: Settings) -> None:
    """Check that each schema registry that the settings need answers. Raise ServerUnreachable or ConfigError."""
    formats = settings.formats
    for choice, registry in ((formats.key, formats.key_registry), (formats.value, formats.value_registry)):
        if choice.is_registered:
            reach(_registry(registry.url, tuple(sorted(registry.client.items())), choice.kind))


def _registers(settings: Settings) -> Registers:
    formats = settings.formats
    return Registers(
        _register(formats.key_registry, formats.key.kind) if formats.key.is_registered else None,
        _register(formats.value_registry, formats.value.kind) if formats.value.is_registered else None,
    )


def _register(settings: RegistrySettings, kind: str) -> Register:
    # Bound methods of one object are equal. So a format with this registry is found again, not made again.
    return _registry(settings.url, tuple(sorted(settings.client.items())), kind).register


@lru_cache(maxsize=4)
def _registry(url: str, client: tuple[tuple[str, str], ...], kind: str) -> Registry | ApicurioRegistry:
    options = dict(client)
    return ApicurioRegistry(options, kind) if URL in options else Registry(url, options, kind)


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
        headers=context_headers(settings),
        marked=settings.frame is not None,
    )
