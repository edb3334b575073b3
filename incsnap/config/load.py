"""Loading a connector's file into `Settings`, or into one error that lists all problems."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from incsnap.config import (
    columns,
    converters,
    outbox,
    overlooked,
    record_settings,
    sections,
    transforms,
    unsupported,
    unwrap,
)
from incsnap.config.corrections import Change, corrections
from incsnap.config.declarations import SETTINGS
from incsnap.config.documents import Document, open_document, open_worker, read_document, read_text, read_worker
from incsnap.config.explained import Explained, Origins, explained
from incsnap.config.job_file import StrPath, options_of
from incsnap.config.names import NARROWING, UnusedNames, is_important, unused_names
from incsnap.config.object_store import StoreAccess, is_object_store, store_access
from incsnap.config.of_worker import inherited, options_without_converter
from incsnap.config.reader import SettingsReader
from incsnap.config.references import providers_of, resolved
from incsnap.config.rewriting import rewritten
from incsnap.config.secrets import without_salt
from incsnap.config.settings import FailureHandling, RetrySettings, Settings
from incsnap.config.snapshot import snapshot, start_place
from incsnap.config.topics import control_topics, topics_of
from incsnap.errors import ConfigError
from incsnap.tables import TableId
from incsnap.transforms.chain import asks_for_topics

log = logging.getLogger(__name__)

_POLL_INTERVAL, _BROKERS = "poll.interval.ms", "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings with the warnings about them."""

    settings: Settings  #: settings of the job
    warnings: tuple[str, ...]  #: one line each, for the log


@dataclass(frozen=True, slots=True)
class Explanation:
    """The content of a settings file and its effect."""

    settings: tuple[Explained, ...]  #: given ones, then defaults
    warnings: tuple[str, ...]  #: one line each
    problem: str  #: all problems as one text; "" if a job can start with the file


@dataclass(frozen=True, slots=True)
class Corrected:
    """A settings file with its corrections."""

    text: str  #: the whole file, in its own form
    changes: tuple[Change, ...]  #: the corrections that `text` has
    problem: str  #: all problems that remain, as one text; "" if a job can start with the file
    warnings: tuple[str, ...]  #: about the old document, one line each
    only_unfilled: bool  #: whether the problems are only values that are still to be filled in


class _InvalidSettings(ConfigError):
    """An error: the settings have `problems`, one line each."""

    problems: tuple[str, ...] = ()


def load(path: StrPath, worker: StrPath | None = None) -> Settings:
    """Return the settings in the file `path`, and log warnings. Raise ConfigError that lists all problems.

    `worker` is the file of a Kafka Connect worker. The connector inherits the worker's Kafka addresses, converters and
    producer settings unless it has its own.
    """
    loaded = read(path, worker)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded.settings


def read(path: StrPath, worker: StrPath | None = None) -> Loaded:
    """Return the settings in the file `path` like `load`, but return the warnings instead of logging them.

    Raise ConfigError that lists all problems.
    """
    return _settings(_reader(path, worker)[0], str(path))


def explain(path: StrPath, worker: StrPath | None = None) -> Explanation:
    """Return each setting of the file and each default. Raise ConfigError only if the file cannot be read or parsed."""
    reader, origins = _reader(path, worker)
    problem = ""
    problems: Sequence[str] = reader.problems
    try:
        warnings = _settings(reader, str(path)).warnings
    except ConfigError as error:
        problem, warnings = error.message, tuple(reader.warnings)
        problems = error.problems if isinstance(error, _InvalidSettings) else reader.problems
    return Explanation(explained(reader, origins, problems), warnings, problem)


def correct(path: StrPath, worker: StrPath | None = None) -> Corrected:
    """Return the file `path` with its older names and values replaced by present ones.

    Raise ConfigError if the file cannot be read or parsed, or if a setting cannot be replaced.
    """
    document, of_worker = open_document(os.fspath(path)), read_worker(worker)
    before = _reader_of(document.values, of_worker)[0]
    from_worker = inherited(of_worker, document.values)
    changes = corrections(document.values, from_worker, document.outside, before.hides)
    text = rewritten(document, changes)
    corrected = {**read_text(text, str(path), form=document.form).values, **options_of(path)}
    reader = _reader_of(corrected, of_worker)[0]
    problem, only_unfilled = "", False
    try:
        _settings(reader, str(path))
    except _InvalidSettings as error:
        problem, only_unfilled = error.message, set(error.problems) <= set(map(reader.without_hidden, reader.unfilled))
    return Corrected(text, changes, problem, _remarks(path, document), only_unfilled)


def given_names(path: StrPath, worker: StrPath | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return the names and values in the file of a connector and in that of its worker, those of Kafka Connect too.

    References in values are resolved where that is possible here. Raise ConfigError if a file cannot be parsed.
    """
    own, of_worker = read_document(path), read_worker(worker)
    providers = providers_of({**of_worker, **own})
    return resolved(own, providers), resolved(of_worker, providers)


def log_format_of(path: StrPath, worker: StrPath | None = None) -> str:
    """Return `incsnap.log.format` of the file, also if other settings are wrong.

    Raise ConfigError if the file cannot be read or parsed.
    """
    return str(_reader(path, worker)[0]["incsnap.log.format"])


def checkpoint_of(path: StrPath, worker: StrPath | None = None) -> tuple[str, StoreAccess]:
    """Return the checkpoint's location in the file `path`, and the access to its bucket.

    References in other values, such as passwords, are not resolved. Raise ConfigError if the file cannot be parsed, or
    if a needed reference cannot be resolved.
    """
    of_worker = read_worker(worker)
    own = {
        name: value
        for name, value in read_document(path).items()
        if name in ("checkpoint.location", "topic.prefix") or name.startswith("spark.")
    }
    reader = SettingsReader(own, providers=providers_of({**of_worker, **own}))
    if not reader.given("checkpoint.location"):
        reader.required("topic.prefix", "the job's prefix, by which its checkpoint is found")
    location = sections.checkpoint_location(reader)
    if reader.problems:
        raise ConfigError(f"{path}: {'; '.join(reader.problems)}", "Correct the file, or set the variables.")
    spark = {f"spark.{name}": value for name, value in reader.prefixed("spark.").items()}
    return location, store_access(location, spark, os.environ)


def _reader(path: StrPath, worker: StrPath | None) -> tuple[SettingsReader, Origins]:
    """Return a reader for both files, and where its settings come from."""
    document, of_worker = open_document(path), None if worker is None else open_worker(worker)
    made = _reader_of(document.values, {} if of_worker is None else of_worker.values)
    made[0].warnings += [*_remarks(path, document), *(_remarks(worker, of_worker) if worker and of_worker else ())]
    return made


def _remarks(path: StrPath, document: Document) -> tuple[str, ...]:
    """Return a warning for each name that a file gives more than once, and for a connector that is not to run."""
    repeated = [
        f"{path}: {without_salt(name)} stands more than once; the last value is used" for name in document.repeated
    ]
    idle = f"{path}: {document.not_run} has no effect: the job runs as soon as it is started"
    return (*repeated, *([idle] if document.not_run else ()))


def _reader_of(own: Mapping[str, str], of_worker: Mapping[str, str]) -> tuple[SettingsReader, Origins]:
    """Return what `_reader` returns, for the settings `own` of a connector and those of its worker."""
    from_worker, idle = inherited(of_worker, own), options_without_converter(of_worker, own)
    obeyed = {name: value for name, value in own.items() if name not in idle}
    # The worker's file declares the configuration providers that references to secrets use.
    providers = providers_of({**of_worker, **own})
    reader = SettingsReader({**obeyed, **from_worker}, providers=providers, has_worker=bool(of_worker))
    if idle:
        reader.warnings.append(
            f"Settings without effect, because the worker's file has the converter and this file has not:"
            f" {', '.join(sorted(idle))}. Kafka Connect uses the worker's options alone. Set the converter here too"
        )
    return reader, Origins(frozenset(obeyed), frozenset(from_worker), idle)


def from_properties(
    properties: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
    source: str = "the settings",
    *,
    to_kafka: bool = True,
) -> Loaded:
    """Return the settings for `properties`. Raise ConfigError with one line for each problem.

    `environment` resolves references (by default the process's environment). `source` names the settings in the error.
    With `to_kafka` the address of Kafka is required.
    """
    return _settings(SettingsReader(properties, environment), source, to_kafka=to_kafka)


def _settings(reader: SettingsReader, source: str, *, to_kafka: bool = True) -> Loaded:
    unused = unused_names(reader.names(), converters.names(reader))
    unsupported.refuse(reader)
    overlooked.refuse_patterns(reader)
    overlooked.warn_of_amazons_driver(reader)
    is_connectors = reader.given("connector.class") and not reader.has_worker
    hints = {
        "topic.prefix": "Debezium 1 called it database.server.name" if reader.given("database.server.name") else "",
        _BROKERS: "a worker has them: name its file with --worker" if is_connectors else "",
    }
    for name, setting in SETTINGS.items():
        if setting.is_needed and not unsupported.of_debezium_server(reader) and (to_kafka or name != _BROKERS):
            meaning, hint = setting.meaning.partition(".")[0], hints.get(name)
            reader.required(name, meaning[0].lower() + meaning[1:] + (f" ({hint})" if hint else ""))
    signals = sections.signals(reader)
    formats = record_settings.formats(reader)
    if to_kafka:
        overlooked.warn_of_converters(reader, formats)
    location = sections.checkpoint_location(reader)
    interval = 0
    if is_object_store(location):
        interval = reader.read(_POLL_INTERVAL, SETTINGS[_POLL_INTERVAL].kind, "500")
    elif reader.given(_POLL_INTERVAL):
        reader.idle[_POLL_INTERVAL] = "batches follow each other at once, unless the checkpoint is in a bucket"
    spark = {f"spark.{name}": value for name, value in reader.prefixed("spark.").items()}
    # Read all sections before the error is raised, so that each section reports its problems.
    settings = Settings.read(
        reader,
        mysql=sections.mysql(reader),
        unicode_topics=record_settings.unicode_topics(reader),
        tables=sections.tables(reader, signals.data_collection if "source" in signals.channels else None),
        signals=signals,
        snapshot=snapshot(reader),
        start=start_place(reader),
        kafka=sections.kafka(reader),
        topic_creation=sections.topic_creation(reader),
        modes=record_settings.modes(reader),
        columns=columns.column_rules(reader, formats),
        transforms=transforms.chain(reader),
        formats=formats,
        run_id=str(uuid4()) if to_kafka and record_settings.extended_headers(reader) else "",
        failures=FailureHandling.read(reader),
        oversized=sections.oversized_changes(reader),
        # Debezium's 0 means no limit, which would fill the memory.
        max_queue_bytes=reader["max.queue.size.in.bytes"] or SETTINGS["max.queue.size.in.bytes"].value,
        batch_interval_ms=interval,
        retries=RetrySettings.read(reader),
        notifications=sections.notifications(reader),
        heartbeat=sections.heartbeats(reader),
        monitoring=sections.monitoring(reader),
        verify=sections.verification(reader),
        checkpoint_location=location,
        store=store_access(location, spark, os.environ),
        spark=spark,
    )
    problems = [reader.without_hidden(each) for each in (*_problems(settings, reader), *_misspelt(unused, reader))]
    if problems:
        count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "".join(f"\n  {problem}" for problem in problems)
        error = _InvalidSettings(f"{source} has {count}:{lines}", "Correct these settings and start again.")
        error.problems = tuple(problems)
        raise error
    return Loaded(settings, (*reader.warnings, *_unused_warning(unused, reader)))


def _problems(settings: Settings, reader: SettingsReader) -> list[str]:
    """Return all problems, including those that only appear when settings are combined."""
    problems = [
        *reader.problems,
        *outbox.problems(settings.transforms, settings.formats),
        *unwrap.problems(settings.transforms, settings.formats),
    ]
    # A transform with a problem is left out of the chain, so the chain behind it would be refused without reason.
    is_whole = not any(problem.startswith(("transforms", "predicates")) for problem in reader.problems)
    try:
        control_topics(settings)
        if is_whole and not asks_for_topics(settings.transforms):
            # The transforms treat all tables alike, so they are asked about one that stands for all.
            topics_of(settings, TableId("DATABASE", "TABLE"))
    except ConfigError as error:
        problems.append(f"{error.message}; {error.hint}")
    return problems


def _misspelt(unused: UnusedNames, reader: SettingsReader) -> list[str]:
    """Return a problem for each unknown name that looks like an important setting which is not given itself."""
    return [
        f"{without_salt(name)}: unknown setting; did you mean {meant}?{NARROWING.get(meant, '')}"
        for name, meant in unused.unknown
        if meant is not None and not reader.given(meant) and is_important(meant)
    ]


def _unused_warning(unused: UnusedNames, reader: SettingsReader) -> list[str]:
    """Return a warning about settings without effect, in a list, or an empty list."""
    parts = []
    idle = [_POLL_INTERVAL] if _POLL_INTERVAL in reader.idle else []
    if foreign := sorted(map(without_salt, (*unused.foreign, *idle))):
        parts.append(f"{', '.join(foreign)} (of Debezium or Kafka Connect)")
    if unused.unknown:
        shown = [(without_salt(name), meant) for name, meant in unused.unknown]
        guesses = [f"{name} (did you mean {meant}?)" if meant else name for name, meant in shown]
        parts.append(f"{', '.join(guesses)} (unknown)")
    return ["Settings without effect: " + "; ".join(parts)] if parts else []
