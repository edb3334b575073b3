"""A connector's file becomes ``Settings``, or one error that lists everything wrong with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from incsnap.config import (
    columns,
    converters,
    outbox,
    record_settings,
    sections,
    snapshot,
    transforms,
    unsupported,
    unwrap,
)
from incsnap.config.documents import read_document
from incsnap.config.explained import Explained, explained
from incsnap.config.heartbeats import heartbeats
from incsnap.config.monitoring import monitoring
from incsnap.config.names import sort_names
from incsnap.config.object_store import is_object_store, store_access
from incsnap.config.oversized import oversized_changes
from incsnap.config.reading import SettingsReader
from incsnap.config.references import providers_of
from incsnap.config.settings import Settings
from incsnap.config.topics import control_topics
from incsnap.config.worker import inherited
from incsnap.errors import ConfigError

log = logging.getLogger(__name__)

_POLL_INTERVAL = "poll.interval.ms"


@dataclass(frozen=True, slots=True)
class Loaded:
    settings: Settings
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a file says, and what becomes of it. ``problem``: why it is no settings for a job, "" where it is."""

    settings: tuple[Explained, ...]
    warnings: tuple[str, ...]
    problem: str


def load(path: str | Path, worker: str | Path | None = None) -> Settings:
    """The settings in ``path``; warnings go to the log. Raises ``ConfigError``.

    ``worker``: the file of a Kafka Connect worker, whose addresses, converters and producers' settings hold for the
    connector where it has none of its own.
    """
    loaded = read(path, worker)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded.settings


def read(path: str | Path, worker: str | Path | None = None) -> Loaded:
    """As ``load``, with the warnings handed back."""
    return _settings(_reading(path, worker)[0], str(path))


def explain(path: str | Path, worker: str | Path | None = None) -> Explanation:
    """Each setting of the file and each default. Raises ``ConfigError`` only where there is no such file."""
    reading, own, of_worker = _reading(path, worker)
    problem = ""
    try:
        warnings = _settings(reading, str(path)).warnings
    except ConfigError as error:
        problem, warnings = error.message, tuple(reading.warnings)
    return Explanation(explained(reading, own, of_worker), warnings, problem)


def _reading(path: str | Path, worker: str | Path | None) -> tuple[SettingsReader, frozenset[str], frozenset[str]]:
    """With the names that are the connector's own, and those that it has of its worker."""
    own = read_document(path)
    of_worker = {} if worker is None else read_document(worker)
    taken = inherited(of_worker, own)
    # Secrets are the worker's affair: its file says what their providers are called.
    reading = SettingsReader({**taken, **own}, providers=providers_of({**of_worker, **own}))
    return reading, frozenset(own), frozenset(taken)


def from_properties(
    properties: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
    source: str = "the settings",
    *,
    to_kafka: bool = True,
) -> Loaded:
    """Settings of names and values. Raises ``ConfigError`` with one line for each problem. ``to_kafka``: records go
    there, so its address is needed."""
    return _settings(SettingsReader(properties, environment), source, to_kafka=to_kafka)


def _settings(reading: SettingsReader, source: str, *, to_kafka: bool = True) -> Loaded:
    sorted_names = sort_names(reading.names(), converters.names(reading))
    unsupported.refuse(reading)
    prefix = sections.topic_prefix(reading)
    kafka = sections.kafka(reading, needed=to_kafka)
    failures = record_settings.failures(reading)
    formats = record_settings.formats(reading)
    signals = sections.signals(reading, kafka.bootstrap_servers)
    delimiter, read_only = sections.topic_delimiter(reading), reading.flag("read.only", False)
    location = sections.checkpoint_location(reading)
    interval = 0
    if is_object_store(location):
        interval = reading.integer(_POLL_INTERVAL, 500, 0, 60_000)
    elif reading.given(_POLL_INTERVAL):
        reading.idle[_POLL_INTERVAL] = "batches follow each other at once, unless the checkpoint is in a bucket"
    batch_rows = reading.integer("max.batch.size", 0, 1)
    spark = {f"spark.{name}": value for name, value in reading.prefixed("spark.").items()}
    # Reading the parts first and building the whole from them lets every part report its problems.
    settings = Settings(
        mysql=sections.mysql(reading),
        topic_prefix=prefix,
        topic_delimiter=delimiter,
        unicode_topics=record_settings.unicode_topics(reading),
        tables=sections.tables(reading, signals.data_collection if "source" in signals.channels else None),
        signals=signals,
        read_only=read_only,
        snapshot=snapshot.snapshot(reading),
        start=snapshot.start_place(reading),
        kafka=kafka,
        topic_creation=sections.topic_creation(reading),
        modes=record_settings.modes(reading, failures.converting),
        columns=columns.column_rules(reading, formats),
        transforms=transforms.chain(reading),
        formats=formats,
        failures=failures,
        oversized=oversized_changes(reading, prefix, delimiter),
        tombstones_on_delete=reading.flag("tombstones.on.delete", True),
        skipped_operations=record_settings.skipped_operations(reading),
        skip_unchanged=reading.flag("skip.messages.without.change", False),
        transaction_metadata=reading.flag("provide.transaction.metadata", False),
        transaction_topic=reading.text("topic.transaction", "transaction"),
        include_query=reading.flag("include.query", False),
        include_schema_changes=reading.flag("include.schema.changes", True),
        max_batch_rows=batch_rows or None,
        max_queue_bytes=reading.integer("max.queue.size.in.bytes", 0, 0) or 64 << 20,
        batch_interval_ms=interval,
        retries=sections.retries(reading),
        notifications=sections.notifications(reading),
        heartbeat=heartbeats(reading, prefix, delimiter, read_only=read_only),
        monitoring=monitoring(reading),
        checkpoint_location=location,
        store=store_access(location, spark, os.environ),
        spark=spark,
    )
    problems = [*_problems(settings, reading), *_misspelt(sorted_names.unknown, reading)]
    if problems:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise ConfigError(f"{source} has {count}:{lines}", "Correct these settings and start again.")
    idle = [_POLL_INTERVAL] if _POLL_INTERVAL in reading.idle else []
    elsewhere = tuple(sorted((*sorted_names.elsewhere, *idle)))
    return Loaded(settings, (*reading.warnings, *_about_names(elsewhere, sorted_names.unknown)))


def _problems(settings: Settings, reading: SettingsReader) -> list[str]:
    problems = [
        *reading.problems,
        *outbox.problems(settings.transforms, settings.formats),
        *unwrap.problems(settings.transforms, settings.formats),
    ]
    try:
        control_topics(settings)
    except ConfigError as error:
        problems.append(f"{error.message}; {error.hint}")
    return problems


def _misspelt(unknown: tuple[tuple[str, str | None], ...], reading: SettingsReader) -> list[str]:
    """Return a problem for each name that looks like a setting that matters and is not given itself."""
    return [
        f"{name}: not a setting; did you mean {meant}?{_NARROWING.get(meant, '')}"
        for name, meant in unknown
        if meant is not None and not reading.given(meant) and (meant in _NEEDED or meant in _NARROWING)
    ]


#: Without these a job cannot start, so a misspelling of one is a problem and not a warning.
_NEEDED = frozenset({"database.hostname", "database.user", "topic.prefix", "bootstrap.servers", "checkpoint.location"})
#: Without these more is sent than is meant.
_NARROWING = {
    **dict.fromkeys(
        ("database.include.list", "database.exclude.list", "table.include.list", "table.exclude.list"),
        " Without it tables would be captured that are not meant",
    ),
    **dict.fromkeys(
        ("column.include.list", "column.exclude.list"), " Without it columns would be sent that are not meant"
    ),
}


def _about_names(elsewhere: tuple[str, ...], unknown: tuple[tuple[str, str | None], ...]) -> list[str]:
    parts = []
    if elsewhere:
        parts.append("they are of Debezium or Kafka Connect and do not apply: " + ", ".join(elsewhere))
    if unknown:
        guesses = [f"{name} (did you mean {meant}?)" if meant else name for name, meant in unknown]
        parts.append("nobody knows them: " + ", ".join(guesses))
    return ["Settings without effect; " + "; ".join(parts)] if parts else []
