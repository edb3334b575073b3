"""Settings of a job with a signal topic, from properties that a test can change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from incsnap.config.load import Loaded, from_properties
from incsnap.errors import ConfigError
from tests.support.properties import QUIET, dotted

#: The fewest properties of such a job.
LEAST: Mapping[str, str] = {**QUIET, "bootstrap.servers": "k1:9092,k2:9092", "signal.enabled.channels": "kafka"}


def loaded_with(**changes: str | None) -> Loaded:
    """Return the settings of `LEAST` with `changes`.

    In names two underscores stand for a dot. None removes a property.
    """
    added = dotted({name: value for name, value in changes.items() if value is not None})
    removed = {name.replace("__", ".") for name, value in changes.items() if value is None}
    properties = {name: value for name, value in {**LEAST, **added}.items() if name not in removed}
    return from_properties(properties, {"PASS": "s3cret", "PORT": "3307"})


def problems_with(**changes: str | None) -> str:
    """Return the error with which the settings of `LEAST` with `changes` are refused."""
    with pytest.raises(ConfigError) as raised:
        loaded_with(**changes)
    return str(raised.value)
