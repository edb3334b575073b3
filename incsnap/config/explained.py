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

OBEYED, IDLE, REFUSED, UNKNOWN = "obeyed", "without effect", "refused", "unknown"
FILE, WORKER, DEFAULT = "file", "worker", "default"
_HIDDEN = "**********"
#: What one must know of a setting that is given and obeyed.
_NOTES = {
    "max.batch.size": "changed rows of a micro-batch; a small one makes the stream slow: each batch costs 60-100 ms",
    "max.queue.size.in.bytes": "what is read ahead, counted as bytes of the binlog",
    "poll.interval.ms": "from one batch to the next, at least",
    "snapshot.max.threads": "chunks read at once at most, of every snapshot",
    "database.ssl.truststore": "a PEM file; Java key stores are refused",
    "database.ssl.keystore": "a PEM file; Java key stores are refused",
    "snapshot.select.statement.overrides": "a statement that does more than narrow rows by a WHERE is refused",
}
#: Not given, they are what Debezium's are not; those without a value follow from something else.
_DEFAULTS = {
    "database.server.id": (True, "by topic.prefix; Debezium draws one"),
    "incremental.snapshot.chunk.size": (False, "by what a table's rows take; Debezium's 1024"),
    "max.batch.size": (False, "by bytes of the binlog and of the output; Debezium's 2048"),
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
        elif name in elsewhere or name in reading.idle or is_unasked(reading, name):
            fate, note = IDLE, reading.idle.get(name, "")
        elif name in unknown:
            fate, note = UNKNOWN, f"did you mean {unknown[name]}?" if unknown[name] else ""
        else:
            fate, note = OBEYED, _NOTES.get(name, "")
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
