"""``incsnap check FILE``: are the settings right, and servers and machines ready?

Nothing is written anywhere; but, for a moment, to a checkpoint that the machines of a cluster must share, and an empty
folder or (in a bucket) object to where the checkpoint is: only so it can be told whether the job may write there.
"""

from __future__ import annotations

from uuid import uuid4

import click
from rich.text import Text

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
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
from incsnap.kafka.preflight import cluster_check, partitions_of_signals
from incsnap.mysql import catalog, preflight
from incsnap.mysql.preflight import Finding
from incsnap.mysql.session import QueryRefusedError, connect
from incsnap.tasks.formats import reach_registries


def all_findings(settings: Settings) -> list[Finding]:
    """MySQL's, Kafka's and the registry's, errors first. All are asked even if one of them does not answer."""
    # It imports Spark, which takes a second; the other commands should not wait for it.
    from incsnap.checkpoint.location import own_part
    from incsnap.checkpoint.lock import try_folder
    from incsnap.checkpoint.object_store import reach
    from incsnap.checkpoint.status import newest_offset

    findings: list[Finding] = []
    saved = None
    reach(settings.checkpoint_location, settings.store)
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
        repair = "Set checkpoint.location to a folder, or an URI that pyarrow knows (file:, s3a:, hdfs:)"
        findings.append(Finding("checkpoint.location", problem, repair))
    findings += preflight.findings(settings, saved.stream.delivered if saved is not None else None)
    asked = cluster_check(
        ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer),
        settings.topic_prefix,
        _topics(settings),
        settings.topic_creation.default.partitions,
        settings.topic_creation.default.replication_factor,
    )
    findings += [Finding("kafka", problem, repair) for problem, repair in asked]
    findings += _of_signal_topic(settings)
    try:
        reach_registries(settings)
    except IncsnapError as error:
        findings.append(Finding("schema registry", error.message, error.hint))
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _of_signal_topic(settings: Settings) -> list[Finding]:
    """A topic that is missing is waited for in silence: librdkafka tells nothing of one. A signal whose partition is
    chosen by its key is in most cases in another partition than that which is read."""
    signals = settings.signals
    if "kafka" not in signals.channels:
        return []
    place = (signals.kafka_bootstrap_servers, signals.kafka_topic, signals.kafka_group_id)
    count = partitions_of_signals(*place, signals.consumer)
    if count in (None, 1):
        return []
    if not count:
        problem = f"{signals.kafka_topic} does not exist, or may not be seen; the job waits for it, and never makes it"
        repair = "Make it with one partition, or correct the name"
        return [Finding("signal.kafka.topic", problem, repair, "warning")]
    problem = f"{signals.kafka_topic} has {count} partitions, and only signals in partition 0 are read"
    repair = "Make it anew with one partition, or send each signal to partition 0, as `incsnap signal` does"
    return [Finding("signal.kafka.topic", problem, repair, "warning")]


def _of_machines(settings: Settings) -> list[Finding]:
    """What the executors of a cluster lack, on which a session is made for the question; the job on one machine needs
    none."""
    from incsnap.spark.machines import machine_findings
    from incsnap.spark.session import is_one_machine, properties
    from incsnap.spark.starting import starting
    from incsnap.spark.submitted import submitted

    if is_one_machine(properties(settings, submitted())):
        return []
    try:
        with starting(settings) as begun:
            spark = begun.session()
            try:
                return machine_findings(spark.sparkContext, settings)
            finally:
                spark.stop()
    except IncsnapError as error:
        return [Finding("spark.master", error.message, error.hint)]


def _write_and_delete(location: str) -> None:
    """Raises ``StoreFailed``."""
    from incsnap.checkpoint.files import Files
    from incsnap.checkpoint.location import own_part

    files, name = Files(own_part(location)), f"check-{uuid4().hex}"
    files.write(name, b"")
    files.delete(name)


def _topics(settings: Settings) -> list[str]:
    """The topics of the tables that there are now; none when MySQL cannot be asked, which is a finding of its own."""
    try:
        connection = connect(settings.mysql, read_timeout=30.0)
    except ServerUnreachable:
        topics = []
    else:
        try:
            tables = catalog.tables(connection, settings.tables)
            topics = [topic for table in tables for topic in topics_of(settings, table)]
        except (ServerUnreachable, QueryRefusedError):
            topics = []
        finally:
            connection.close()
    return [*topics, *sorted(control_topics(settings))]


def show(findings: list[Finding]) -> None:
    shown = output.error_console()
    for finding in findings:
        colour = "red" if finding.severity == "error" else "yellow"
        shown.print(
            Text.assemble((f"{finding.severity}: ", f"bold {colour}"), (finding.name, "bold"), f": {finding.problem}")
        )
        shown.print(Text.assemble(("  → ", "bold"), finding.repair))


@click.command()
@settings_file
def check(file: str, worker: str | None) -> None:
    """Look whether settings, servers and machines are ready."""
    loaded = read(file, worker)
    for warning in loaded.warnings:
        output.warning(warning)
    findings = [*all_findings(loaded.settings), *_of_machines(loaded.settings)]
    show(findings)
    errors = sum(finding.severity == "error" for finding in findings)
    if errors:
        raise PreflightFailed(
            f"{errors} of the findings above must be repaired", "`incsnap check` asks all of it again."
        )
    output.console().print("Everything is ready." if not findings else "Ready; see the warnings.")
