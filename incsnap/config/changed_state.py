"""Settings of Debezium's ExtractChangedRecordState."""

from __future__ import annotations

from incsnap.config.reader import SettingsReader
from incsnap.transforms.changed_state import ExtractChangedRecordState


def extract_changed_record_state(reader: SettingsReader, name: str) -> ExtractChangedRecordState:
    """Return the transform `name`. Warn if it adds no header."""
    start = f"transforms.{name}."
    changed, unchanged = reader.text(start + "header.changed.name"), reader.text(start + "header.unchanged.name")
    if not (changed or unchanged):
        reader.warnings.append(
            f"{start}type: the transform adds nothing. Set header.changed.name or header.unchanged.name"
        )
    return ExtractChangedRecordState(changed, unchanged)
