"""The settings of a Kafka Connect worker that apply to a connector, and the connector's own that give way to them."""

from __future__ import annotations

from collections.abc import Mapping

#: Settings that a connector inherits from the file of its Kafka Connect worker. Others concern only the worker.
CONVERTERS = ("key.converter", "value.converter")
_INHERITED = ("bootstrap.servers", "header.converter", *CONVERTERS)
#: A setting of workers. Kafka Connect does not read it from a connector's file.
_OF_WORKER_ALONE = "topic.creation.enable"
_INHERITED_PREFIXES = ("producer.", *(f"{name}." for name in CONVERTERS))


def inherited(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of `worker` that apply to this connector."""
    own = tuple(f"{name}." for name in CONVERTERS if connector.get(name))
    idle = options_without_converter(worker, connector)
    return {
        name: value
        for name, value in worker.items()
        # A connector with its own converter does not inherit options of the worker's converter.
        if name == _OF_WORKER_ALONE
        or (
            (name in _INHERITED or name.startswith(_INHERITED_PREFIXES))
            and (not connector.get(name) or name in idle)
            and not name.startswith(own)
        )
    }


def options_without_converter(worker: Mapping[str, str], connector: Mapping[str, str]) -> dict[str, str]:
    """Return the options of converters in `connector` that Kafka Connect ignores.

    A connector that does not name a converter uses the worker's converter, which has the worker's options alone.
    """
    of_worker = tuple(f"{name}." for name in CONVERTERS if worker.get(name) and not connector.get(name))
    return {name: value for name, value in connector.items() if name.startswith(of_worker)}
