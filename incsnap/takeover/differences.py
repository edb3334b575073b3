"""The settings of a connector's file that have no effect on the job, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from incsnap.config.explained import IDLE, UNKNOWN
from incsnap.config.load import explain


def differences(file: str, worker: str | None) -> Sequence[str]:
    """Return the settings of a connector's file that have no effect, in lines. `worker`: file of its worker.

    Raise ConfigError if a file cannot be read.
    """
    explanation = explain(file, worker)
    idle = [each for each in explanation.settings if each.fate in (IDLE, UNKNOWN)]
    lines = [f"  {each.name}: {each.fate}{f'. {each.note}' if each.note else ''}" for each in idle]
    return (
        "Records differ from the connector's as tests/golden/differences.py lists, such as in source.version.",
        *(["These settings have no effect on the job:", *lines] if lines else []),
        *(f"Note: {each}" for each in explanation.warnings if not each.startswith("Settings without effect:")),
    )
