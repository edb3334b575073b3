"""What all settings are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that cannot be changed, and that is not made of fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
