"""The base class of all settings, and the link from a field to the declaration of its setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from incsnap.config.declarations import SETTINGS

if TYPE_CHECKING:
    from incsnap.config.reader import SettingsReader


def of(name: str) -> Any:
    """Return the field of a class for the setting `name`: with the declared default, unless a value is needed."""
    setting = SETTINGS[name]
    if setting.is_needed:
        return Field(title=name)
    return Field(default=setting.value, title=name, validate_default=True)


class Frozen(BaseModel):
    """An immutable pydantic model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, reader: SettingsReader, **values: Any) -> Self:
        """Return an instance with `values`. Other fields that name a setting by `of` get its value from `reader`."""
        settings = {field: info.title for field, info in cls.model_fields.items() if info.title}
        return cls(**{field: reader[name] for field, name in settings.items() if field not in values}, **values)
