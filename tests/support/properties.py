"""The properties of a job that a test reads settings from: what each needs, and names that Python can spell."""

from __future__ import annotations

from collections.abc import Mapping

#: What no job can do without. Nothing is reached by it.
NEEDED: Mapping[str, str] = {
    "database.hostname": "db",
    "database.user": "cdc",
    "topic.prefix": "shop",
    "bootstrap.servers": "k:9092",
    "checkpoint.location": "/state",
}
#: With these nothing is warned of: there is no snapshot at the start, and a signal channel that needs no table.
QUIET: Mapping[str, str] = {**NEEDED, "snapshot.mode": "no_data", "signal.enabled.channels": "file"}


def dotted(options: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Keyword arguments as properties: two underscores stand for a dot. ``prefix`` is put before each name."""
    return {prefix + name.replace("__", "."): value for name, value in options.items()}
