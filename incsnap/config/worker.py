"""What a connector inherits from the worker that it runs in: Kafka's addresses, converters, its producers' settings.

A connector's file from Kafka Connect has none of them. The rest of a worker's file is about the worker.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONVERTERS = ("key.converter", "value.converter")
_INHERITED = ("bootstrap.servers", *_CONVERTERS)
_INHERITED_PREFIXES = ("producer.", *(f"{name}." for name in _CONVERTERS))


def inherited(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Those of the worker's names and values that hold for this connector."""
    own = tuple(f"{name}." for name in _CONVERTERS if connector.get(name))
    return {
        name: value
        for name, value in worker.items()
        # A connector with a converter of its own gets none of the worker's settings for the other one.
        if (name in _INHERITED or name.startswith(_INHERITED_PREFIXES))
        and not connector.get(name)
        and not name.startswith(own)
    }
