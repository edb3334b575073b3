"""The formats of lakes for tests, each with the Spark that it is made for."""

from __future__ import annotations

import pytest

from incsnap.errors import ServerUnreachable
from lab.fetched_lake import LAKES, Lake


def fetched(kind: str) -> Lake:
    """Return a format after its Spark was fetched. Skip the test if it cannot be fetched."""
    lake = LAKES[kind]
    try:
        lake.environment()
    except ServerUnreachable as error:
        pytest.skip(f"{lake.title} and the Spark that it is made for cannot be fetched: {error}")
    return lake
