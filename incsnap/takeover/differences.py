"""The differences between a connector and the job that takes it over, as lines of text: what consumers see, and the
settings that have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from incsnap.config.explained import DEFAULT, IDLE, UNKNOWN
from incsnap.config.job_file import StrPath
from incsnap.config.load import explain


def differences(file: StrPath, worker: str | None) -> Sequence[str]:
    """Return what differs for consumers, and the settings of a connector's file that have no effect, in lines.

    `worker`: file of its worker. Raise ConfigError if a file cannot be read.
    """
    explanation = explain(file, worker)
    idle = [each for each in explanation.settings if each.fate in (IDLE, UNKNOWN)]
    # The defaults are incsnap's, and not those of Connect's converters.
    given = {each.name: each.value for each in explanation.settings if each.origin != DEFAULT}
    lines = [f"  {each.name}: {each.fate}{f'. {each.note}' if each.note else ''}" for each in idle]
    return (
        "Records differ from the connector's (docs/migrate-from-debezium.md, `What consumers see`):",
        *(f"  {each}" for each in _seen(given)),
        *(["These settings have no effect on the job:", *lines] if lines else []),
        *(f"Note: {each}" for each in explanation.warnings if not each.startswith("Settings without effect:")),
    )


def _seen(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the commonest differences that consumers see, as far as the given `settings` make them true."""
    yield "source.version is incsnap's."
    yield "Each transaction takes one more offset. Consumers need isolation.level=read_committed."
    if settings.get("value.converter.replace.null.with.default", "").lower() != "false":
        yield "A NULL in a column with a DEFAULT stays NULL (replace.null.with.default has no effect)."
    if settings.get("provide.transaction.metadata", "").lower() == "true":
        yield "A transaction without captured rows has no BEGIN and END (provide.transaction.metadata)."
