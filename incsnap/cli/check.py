"""The command `incsnap check FILE`: a check of settings, servers and machines before a job starts.

The check writes almost nothing. It creates and removes an empty folder (in a bucket an object) beside the checkpoint,
to learn whether the job may write there. On a cluster it also writes to the checkpoint that the machines must share.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing, suppress
from uuid import uuid4

import click

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.lock import try_folder
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.status import newest_offset
from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.job_file import JobFile
from incsnap.config.load import read
from incsnap.config.object_store import is_object_store
from incsnap.config.settings import Settings
from incsnap.config.topics import control_topics, topics_of
from incsnap.errors import (
    ConfigError,
    IncsnapError,
    OffsetError,
    PreflightFailed,
    ServerUnreachable,
    StoreFailed,
    shorten,
)
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.oauth_login import with_login
from incsnap.kafka.preflight import NoAnswer, cluster_check, partitions_of_signals
from incsnap.mysql import preflight
from incsnap.mysql.online_tables import captured_tables
from incsnap.mysql.preflight import Finding
from incsnap.mysql.session import QueryRefusedError, connect
from incsnap.planner.online_ddl import online_tables_at
from incsnap.tables import TableId
from incsnap.tasks.formats import reach_registries


def all_findings(settings: Settings) -> list[Finding]:
    """Return the findings about MySQL, Kafka, the registry and the checkpoint, errors first.

    Each of them is checked even if another does not answer.
    """
    findings: list[Finding] = []
    saved = None
    set_access(settings.checkpoint_location, settings.store)
    try:
        if is_object_store(settings.checkpoint_location):
            _write_and_delete(settings.checkpoint_location.rstrip("/"))
        try_folder(settings.checkpoint_location, own_part(settings.checkpoint_location))
        saved = newest_offset(settings.checkpoint_location.rstrip("/"), "commits")
    except (ConfigError, StoreFailed) as error:
        findings.append(Finding("checkpoint.location", error.message, error.hint))
    except OffsetError as error:
        findings.append(Finding("checkpoint", error.message, error.hint))
    except (OSError, ValueError) as error:
        problem = f"{shorten(settings.checkpoint_location)} cannot be read: {shorten(error)}"
        repair = "Set checkpoint.location to a folder, or to a URI that pyarrow knows (file:, s3a:, hdfs:)"
        findings.append(Finding("checkpoint.location", problem, repair))
    of_tools = online_tables_at(settings, saved).names()
    findings += preflight.findings(settings, saved.stream.delivered if saved is not None else None, of_tools)
    asked = cluster_check(
        ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer),
        settings.topic_prefix,
        _topics(settings, of_tools),
        settings.topic_creation,
    )
    findings += [Finding("kafka", *each, waits=isinstance(each, NoAnswer)) for each in asked]
    findings += _of_signal_topic(settings)
    try:
        reach_registries(settings)
    except IncsnapError as error:
        waits = isinstance(error, ServerUnreachable)
        findings.append(Finding("schema registry", error.message, error.hint, waits=waits))
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _of_signal_topic(settings: Settings) -> list[Finding]:
    """Return findings about the signal topic.

    A job waits for a missing topic without a message, because librdkafka reports nothing. In a topic with several
    partitions, a signal whose partition follows from its key is mostly in a partition that is not read.
    """
    signals = settings.signals
    if "kafka" not in signals.channels:
        return []
    place = (signals.kafka_bootstrap_servers, signals.kafka_topic, signals.kafka_group_id)
    try:
        count = partitions_of_signals(*place, with_login(signals.consumer))
    except ConfigError as error:
        return [Finding("signal.consumer", error.message, error.hint)]
    if count in (None, 1):
        return []
    if not count:
        problem = f"{signals.kafka_topic} does not exist, or this user may not see it. The job waits for the topic"
        repair = "Create it with one partition, or correct the name"
    else:
        problem = f"{signals.kafka_topic} has {count} partitions, and only signals in partition 0 are read"
        repair = "Create it again with one partition, or send each signal to partition 0, as `incsnap signal` does"
    return [Finding("signal.kafka.topic", problem, repair, "warning")]


def _of_machines(settings: Settings) -> list[Finding]:
    """Return what the executors of a cluster lack. This starts a Spark session. A job on one machine needs no check."""
    from incsnap.spark.cluster.machines import machine_findings
    from incsnap.spark.launch.startup import launched
    from incsnap.spark.session import is_one_machine, properties, submitted

    if is_one_machine(properties(settings, submitted())):
        return []
    try:
        with launched(settings) as launch:
            spark = launch.session()
            try:
                return machine_findings(spark.sparkContext, settings)
            finally:
                spark.stop()
    except IncsnapError as error:
        return [Finding("spark.master", error.message, error.hint)]


def _write_and_delete(location: str) -> None:
    """Write an object beside the checkpoint and delete it. Raise StoreFailed if that is not possible."""
    files, name = Files(own_part(location)), f"check-{uuid4().hex}"
    files.write(name, b"")
    files.delete(name)


def _topics(settings: Settings, of_tools: Collection[str]) -> list[str]:
    """Return the topics of the present tables and the control topics.

    Without an answer of MySQL the tables' are left out. `of_tools`: those that have none, in lower case.
    """
    tables: list[TableId] = []
    with (
        suppress(ServerUnreachable, QueryRefusedError),
        closing(connect(settings.mysql, read_timeout=30.0)) as connection,
    ):
        tables = captured_tables(connection, settings)
    topics = [topic for table in tables if table.folded not in of_tools for topic in topics_of(settings, table)]
    return [*topics, *sorted(control_topics(settings))]


def show(findings: list[Finding]) -> None:
    """Print the findings to stderr."""
    for finding in findings:
        output.problem(f": {finding.problem}", finding.repair, severity=finding.severity, name=finding.name)


@click.command()
@settings_file
def check(file: JobFile, worker: str | None) -> None:
    """Check whether settings, servers and machines are ready.

    Exit code 2 (PreflightFailed): a setting or a server must be repaired first.
    """
    loaded = read(file, worker)
    for warning in loaded.warnings:
        output.warning(warning)
    findings = [*all_findings(loaded.settings), *_of_machines(loaded.settings)]
    show(findings)
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        raise PreflightFailed(f"{errors} of the findings above must be repaired", "Then run `incsnap check` again.")
    output.console().print("Everything is ready." if not findings else "A job can start. See the warnings above.")
