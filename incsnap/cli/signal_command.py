"""``incsnap signal FILE TYPE``: sends a signal by the channel the job listens to."""

from __future__ import annotations

import click
import pymysql
from confluent_kafka import KafkaException

from incsnap.cli import output
from incsnap.cli.settings_file import settings_file
from incsnap.config.load import read
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, IncsnapError, ServerUnreachable
from incsnap.mysql.connection import connect, error_of
from incsnap.tables import TableId
from signals import send
from signals.parse import parse
from signals.records import InvalidSignal, SignalRecord

_TYPES = ("execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "log")


@click.command()
@settings_file
@click.argument("type", type=click.Choice(_TYPES))
@click.option("--table", "tables", multiple=True, metavar="DB.TABLE", help="A table or a Java regex; may be repeated.")
@click.option("--condition", metavar="SQL", help="Only the rows of these tables where this is true.")
@click.option("--surrogate-key", metavar="COLUMN", help="Read in the order of this column.")
@click.option("--message", help="The text of a log signal; {} becomes the offset.")
@click.option(
    "--channel", type=click.Choice(["source", "kafka", "file"]), help="Default: the first the job listens to."
)
@click.option("--id", "name", help="Shown in notifications; default: a new UUID.")
def signal(
    file: str,
    worker: str | None,
    type: str,  # noqa: A002 - the word of Debezium's documentation, shown as TYPE
    tables: tuple[str, ...],
    condition: str | None,
    surrogate_key: str | None,
    message: str | None,
    channel: str | None,
    name: str | None,
) -> None:
    """Ask a running job for a snapshot, or stop, pause or resume it."""
    settings = read(file, worker).settings
    chosen = _channel(settings, channel)
    conditions = [(table, condition) for table in tables] if condition is not None else []
    data: dict[str, object] = {"message": message}
    if type != "log":
        data = send.snapshot_data(tables, conditions, surrogate_key)
    name = name or send.new_id()
    # The job's own reading of it: what it would ignore is not sent.
    meant = parse(SignalRecord(name, type, data))
    if isinstance(meant, InvalidSignal):
        raise ConfigError(f"The signal would be ignored: {meant.reason}", meant.hint)
    _warn_about(settings, tables)
    _SENDERS[chosen](settings, name, type, data)
    output.console().print(f"Sent {type} {name} by {chosen}.")


def _channel(settings: Settings, wanted: str | None) -> str:
    enabled = settings.signals.channels
    if wanted is not None and wanted not in enabled:
        raise ConfigError(
            f"The job does not listen to the channel {wanted}, only to: {', '.join(enabled) or 'none'}",
            "Choose another --channel, or enable it and start the job again.",
        )
    if wanted is None and not enabled:
        raise ConfigError(
            "The job listens to no signal channel", "Set signal.data.collection, or signal.enabled.channels=kafka."
        )
    if wanted is not None:
        return wanted
    # A job that may not write to its server must not be signalled by a row.
    return next((other for other in enabled if not (settings.read_only and other == "source")), enabled[0])


def _warn_about(settings: Settings, tables: tuple[str, ...]) -> None:
    for text in tables:
        try:
            table = TableId.parse(text.replace("\\.", "."))
        except ValueError:
            continue  # a regex: the job resolves it
        if not any(mark in str(table) for mark in "*+?[](){}|^$\\") and not settings.tables.included(table):
            output.warning(f"{table} is left out by the include and exclude lists; the job will say so and go on")


def _by_row(settings: Settings, name: str, kind: str, data: dict[str, object]) -> None:
    table = settings.signals.data_collection
    if table is None:
        raise ConfigError("signal.data.collection names no table")
    connection = connect(settings.mysql)
    try:
        send.to_table(connection, table.sql, name, kind, data)
    except pymysql.err.MySQLError as error:
        code, text = error_of(error)
        hint = f"GRANT INSERT ON {table.sql} TO the user, or signal by --channel kafka."
        if code == 1146:
            hint = (
                f"CREATE TABLE {table.sql} (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048));"
            )
        elif code == 1062:
            hint = "Choose another --id."
        elif code == 1406:
            hint = "Make the columns of the signal table wider, or name fewer tables."
        raise IncsnapError(f"The row was not inserted into {table}: {text}", hint) from None
    finally:
        connection.close()


def _by_message(settings: Settings, name: str, kind: str, data: dict[str, object]) -> None:
    signals = settings.signals
    try:
        send.to_topic(
            signals.kafka_bootstrap_servers,
            signals.kafka_topic,
            settings.topic_prefix,
            name,
            kind,
            data,
            signals.consumer,
        )
    except (KafkaException, TimeoutError) as error:
        text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ServerUnreachable(
            f"Kafka at {signals.kafka_bootstrap_servers} did not take the signal for {signals.kafka_topic}: {text}",
            f"Check that the brokers answer, and create the topic {signals.kafka_topic} with one partition.",
        ) from None


def _by_line(settings: Settings, name: str, kind: str, data: dict[str, object]) -> None:
    try:
        send.to_file(settings.signals.file, name, kind, data)
    except OSError as error:
        raise IncsnapError(
            f"{settings.signals.file} cannot be written: {error.strerror}", "Correct signal.file."
        ) from None


_SENDERS = {"source": _by_row, "kafka": _by_message, "file": _by_line}
