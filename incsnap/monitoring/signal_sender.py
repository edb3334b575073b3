"""Sending a signal to a job by one of the job's channels, for `incsnap signal` and the page's buttons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pymysql
from confluent_kafka import KafkaException
from pymysql.connections import Connection
from pymysql.constants import ER

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, IncsnapError, ServerUnreachable
from incsnap.kafka.oauth_login import with_login
from incsnap.mysql.error_codes import NO_PRIVILEGE
from incsnap.mysql.session import connect, error_of, query
from incsnap.mysql.signal_table import shape_or_lack
from incsnap.snapshot.throttle import REPLICA_LAG
from incsnap.tables import TableId
from signals import send
from signals.parse import parse
from signals.records import InvalidSignal, SignalRecord

Data = Mapping[str, object]
#: The ways out for a list of keys that is too long for the signal table.
_LONG_LIST = (
    "Write the keys into a file or a topic, and name it with --keys-file or --keys-topic. From Python give a DataFrame."
)


def send_signal(settings: Settings, name: str, kind: str, data: Data, channel: str | None = None) -> str:
    """Send a signal by `channel`, or by the channel that `channel_for` chooses, and return that channel.

    `name` is the signal's id, `kind` its type. Raise ConfigError if the job would ignore the signal or does not listen
    to `channel`. Raise ServerUnreachable or IncsnapError if the signal cannot be sent.
    """
    chosen = channel_for(settings, channel)
    # Parse the signal as the job does, to refuse a signal that the job would ignore.
    meant = parse(SignalRecord(name, kind, dict(data)))
    if isinstance(meant, InvalidSignal):
        raise ConfigError(f"The signal would be ignored: {meant.reason}", meant.hint)
    asks_for_lag = any(limit == REPLICA_LAG and most for limit, most in meant.limits)
    if asks_for_lag and not settings.snapshot.throttle_replicas:
        raise ConfigError(
            f"{REPLICA_LAG} would hold snapshots back for ever: the job knows no replica",
            "Set incsnap.snapshot.throttle.replicas=host:port, and start the job again.",
        )
    _SENDERS[chosen](settings, name, kind, data)
    return chosen


def channel_for(settings: Settings, channel: str | None = None) -> str:
    """Return the channel to send by: `channel`, or the first enabled one.

    With `read.only` the channel `source` is chosen last, because nothing may be written to MySQL. Raise ConfigError if
    the job does not listen to `channel`, or listens to no channel.
    """
    enabled = settings.signals.channels
    if channel in enabled:
        return channel
    if channel is not None:
        raise ConfigError(
            f"The job does not listen to the channel {channel}, only to: {', '.join(enabled) or 'none'}",
            "Choose another --channel, or enable it and start the job again.",
        )
    if not enabled:
        raise ConfigError(
            "The job listens to no signal channel", "Set signal.data.collection, or signal.enabled.channels=kafka."
        )
    # With `read.only` nothing is written to the server, so the signal table is not an option.
    return next((other for other in enabled if not (settings.read_only and other == "source")), enabled[0])


def channel_places(settings: Settings) -> dict[str, str]:
    """Return the enabled channels, each with its place: a table, a topic and its brokers, or an absolute path."""
    signals = settings.signals
    places = {
        "source": str(signals.data_collection or ""),
        "kafka": f"{signals.kafka_topic} at {signals.kafka_bootstrap_servers}",
        "file": str(Path(signals.file).absolute()),
    }
    return {name: places[name] for name in signals.channels if places[name]}


def _by_row(settings: Settings, name: str, kind: str, data: Data) -> None:
    table = settings.signals.data_collection
    if table is None:
        raise ConfigError("signal.data.collection names no table")
    connection = connect(settings.mysql)
    try:
        # Else MySQL cuts data that are too long, and the job ignores the signal: it is no JSON any more.
        query(connection, "SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
        send.to_table(connection, table.sql, name, kind, data)
    except pymysql.err.MySQLError as error:
        text, hint = _refusal(connection, table, error, data)
        raise IncsnapError(f"MySQL did not insert the signal into {table}: {text}", hint) from None
    finally:
        connection.close()


def _refusal(connection: Connection[Any], table: TableId, error: pymysql.err.MySQLError, data: Data) -> tuple[str, str]:
    """Return why MySQL did not insert the row, and the repair."""
    code, text = error_of(error)
    if code == ER.DUP_ENTRY:
        return text, "Choose another --id."
    if code == ER.DATA_TOO_LONG and "incsnap-keys" in data:
        return text, f"{_LONG_LIST} Or signal by --channel kafka or file, or make the column wider."
    if code == ER.DATA_TOO_LONG:
        return text, "Make the columns of the signal table wider, or name fewer tables."
    grant = f"GRANT INSERT ON {table.sql} TO the user, or signal by --channel kafka."
    if code in (ER.BAD_DB_ERROR, ER.NO_SUCH_TABLE) or code in NO_PRIVILEGE:
        # Without the privilege MySQL reports only a refusal, even if the table does not exist.
        shape, lack, repair = shape_or_lack(connection, table)
        if shape is None and code in NO_PRIVILEGE:
            return f"{text}; {lack}, or the user may not see it", f"{repair} {grant}"
        if shape is None:
            return lack, repair
    return text, grant


def _by_message(settings: Settings, name: str, kind: str, data: Data) -> None:
    signals = settings.signals
    try:
        send.to_topic(
            signals.kafka_bootstrap_servers,
            signals.kafka_topic,
            settings.topic_prefix,
            name,
            kind,
            data,
            with_login(signals.consumer),
        )
    except (KafkaException, TimeoutError) as error:
        text = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ServerUnreachable(
            f"Kafka at {signals.kafka_bootstrap_servers} did not take the signal for {signals.kafka_topic}: {text}",
            f"Check that the brokers answer, and create the topic {signals.kafka_topic} with one partition.",
        ) from None


def _by_line(settings: Settings, name: str, kind: str, data: Data) -> None:
    try:
        send.to_file(settings.signals.file, name, kind, data)
    except OSError as error:
        raise IncsnapError(
            f"{settings.signals.file} cannot be written: {error.strerror}", "Correct signal.file."
        ) from None


_SENDERS = {"source": _by_row, "kafka": _by_message, "file": _by_line}
