"""Each setting with where it comes from and what becomes of it: what ``incsnap config`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from incsnap.config import converters
from incsnap.config.columns import without_salt
from incsnap.config.names import ELSEWHERE, sort_names
from incsnap.config.reading import SettingsReader
from incsnap.config.references import is_reference
from incsnap.config.secrets import is_secret
from incsnap.config.transforms import is_unasked

OBEYED, OTHERWISE, IDLE, REFUSED, UNKNOWN = "obeyed", "another meaning", "without effect", "refused", "unknown"
FILE, WORKER, DEFAULT = "file", "worker", "default"
_HIDDEN = "**********"
#: Given, they are obeyed, but not for what Debezium does with them.
_MEANINGS = {
    "max.batch.size": "binlog events of one micro-batch, each of many rows; Debezium's are records",
    "max.queue.size.in.bytes": "binlog that is read ahead; Debezium's is a queue of records",
    "poll.interval.ms": "from one batch to the next where the checkpoint is in a bucket; elsewhere there is no pause",
    "snapshot.max.threads": "chunks read at once, of incremental snapshots too",
    "database.ssl.truststore": "a PEM file, not a Java key store",
    "database.ssl.keystore": "a PEM file, not a Java key store",
    "snapshot.select.statement.overrides": "the WHERE of each statement, as an additional condition of its table",
}
#: Not given, they are what Debezium's are not; those without a value follow from something else.
_DEFAULTS = {
    "database.server.id": (True, "by topic.prefix; Debezium draws one"),
    "incremental.snapshot.chunk.size": (False, "by what a table's rows take; Debezium's 1024"),
    "max.batch.size": (True, "binlog events of one micro-batch; Debezium's 2048 are records"),
    "max.queue.size.in.bytes": (False, "64 MiB of binlog that is read ahead"),
    "signal.poll.interval.ms": (True, "Debezium's 5000"),
    "snapshot.max.threads": (False, "by Spark's slots; Debezium's 1"),
}


@dataclass(frozen=True, slots=True)
class Explained:
    """``value``: as written, a secret hidden. ``note``: what one must know of it, "" where that is nothing."""

    name: str
    value: str
    origin: str
    fate: str
    note: str = ""


def explained(reading: SettingsReader, own: frozenset[str], inherited: frozenset[str]) -> tuple[Explained, ...]:
    """Each setting of a ``reading`` that was asked for everything: what is given first, then the defaults, both in
    order of names.

    ``own``: names of the connector's file, ``inherited``: those of its worker's.
    """
    sorted_names = sort_names(reading.names(), converters.names(reading))
    elsewhere, unknown = set(sorted_names.elsewhere), dict(sorted_names.unknown)
    problems = {problem.partition(":")[0]: problem.partition(": ")[2] for problem in reading.problems}
    given = []
    for name in sorted({*own, *inherited}):
        origin = FILE if name in own else WORKER
        value = reading.written(name)
        if is_secret(name) and not is_reference(value):
            value = _HIDDEN if value else ""
        shown = without_salt(name)
        if shown in problems:
            fate, note = REFUSED, problems[shown]
        elif name in elsewhere or is_unasked(reading, name):
            fate, note = IDLE, ""
        elif name in unknown:
            fate, note = UNKNOWN, f"did you mean {unknown[name]}?" if unknown[name] else ""
        else:
            fate, note = (OTHERWISE, _MEANINGS[name]) if name in _MEANINGS else (OBEYED, "")
        given.append(Explained(shown, value, origin, fate, note))
    defaults = [
        _default(name, reading.defaults[name])
        for name in sorted(reading.defaults)
        if not reading.given(name) and name not in ELSEWHERE
    ]
    return (*given, *defaults)


def _default(name: str, value: str) -> Explained:
    has_value, note = _DEFAULTS.get(name, (True, ""))
    return Explained(name, value if has_value else "", DEFAULT, OBEYED, note)
