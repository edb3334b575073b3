"""Properties of a job for tests of settings, and a spelling of their names for Python."""

from __future__ import annotations

from collections.abc import Mapping

#: The properties that every job needs. No server is reached with them.
NEEDED: Mapping[str, str] = {
    "database.hostname": "db",
    "database.user": "cdc",
    "topic.prefix": "shop",
    "bootstrap.servers": "k:9092",
    "checkpoint.location": "/state",
}
#: Properties that cause no warning: no snapshot at the start, and a signal channel without a table.
QUIET: Mapping[str, str] = {**NEEDED, "snapshot.mode": "no_data", "signal.enabled.channels": "file"}


def dotted(options: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return keyword arguments as properties: two underscores stand for a dot. `prefix` is put before each name."""
    return {prefix + name.replace("__", "."): value for name, value in options.items()}
