"""The names that settings give: topics, the envelope's source."""

from __future__ import annotations

from incsnap import __version__
from incsnap.config.settings import Settings
from incsnap.envelope.envelope_settings import EnvelopeSettings
from incsnap.envelope.topic_names import topic_name
from incsnap.tables import TableId


def topic_of(settings: Settings, table: TableId) -> str:
    return topic_name(settings.topic_prefix, settings.topic_delimiter, table)


def envelope_settings(settings: Settings) -> EnvelopeSettings:
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
    )
