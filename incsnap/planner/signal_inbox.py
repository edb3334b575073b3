"""The inbox of signals: what the signal channels brought, as commands for the engine.

A bad signal is logged and changes nothing. The planner's one thread asks all channels between batches. The position of
each channel is part of the offset. So a signal is obeyed in exactly one batch, whatever crashes.

For this reason nothing in a signal may raise an error here. The signal's position would not be stored, and the job
would meet the signal again after every restart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaException

from incsnap.binlog.protocol.row_images import WRITE
from incsnap.binlog.slices import Slice
from incsnap.binlog.table_rows import Charsets, table_rows
from incsnap.config.settings import SignalSettings
from incsnap.envelope.seam import ROW_STEP, Places, RecordPlace
from incsnap.errors import ConfigError, IncsnapError, shorten
from incsnap.events import file_number
from incsnap.kafka.oauth_login import with_login
from incsnap.planner.asked_place import AskedPlace
from incsnap.planner.signal_commands import Captured, command_of
from incsnap.snapshot.commands import Command
from signals.channels.file import SignalFile
from signals.channels.kafka_topic import SignalTopic
from signals.channels.source_table import records_of
from signals.parse import parse
from signals.records import SignalRecord

log = logging.getLogger(__name__)


class SignalInbox:
    """The enabled signal channels of one job.

    The constructor raises ConfigError if the consumer of the signal topic cannot be created.
    """

    def __init__(self, signals: SignalSettings, topic_prefix: str) -> None:
        self._signals = signals
        self._polled_at = -float("inf")
        self._file = SignalFile(signals.file) if "file" in signals.channels else None
        self._topic: SignalTopic | None = None
        if "kafka" in signals.channels:
            try:
                self._topic = SignalTopic(
                    signals.kafka_bootstrap_servers,
                    signals.kafka_topic,
                    topic_prefix,
                    signals.kafka_group_id,
                    with_login(signals.consumer),
                )
            except KafkaException as problem:
                raise ConfigError(
                    f"The consumer of the signal topic cannot be made: {problem.args[0].str()}",
                    "Correct signal.consumer.* in the properties file and start again.",
                ) from problem

    def poll(
        self,
        slices: Sequence[Slice],
        charsets: Charsets,
        positions: Mapping[str, Any],
        captured: Captured,
        where: str,
        least: RecordPlace | None = None,
    ) -> tuple[tuple[Command | AskedPlace, ...], dict[str, Any]]:
        """Return the commands, by channel in order of arrival, and the position of each channel.

        `slices` hold the rows events of the signal table. `captured` returns the tables that a signal may mean, and is
        called only if a name must be resolved. A log signal shows `where` as the offset. Another engine has obeyed the
        rows of the signal table before `least`; None: none of them.
        """
        reached = dict(positions)
        records: list[SignalRecord] = []
        if "source" in self._signals.channels:
            for slice_ in slices:
                records.extend(_inserted(slice_, charsets, least))
        now = time.monotonic()
        if now - self._polled_at >= self._signals.poll_interval_ms / 1000:
            self._polled_at = now
            channels = (("kafka", self._topic), ("file", self._file))
            for name, channel in ((name, channel) for name, channel in channels if channel is not None):
                polled = channel.poll(reached.get(name))
                records.extend(polled.records)
                reached[name] = polled.position
        captured_once = cache(captured)  # asked once, however many signals come at a time
        commands = (_command_of_record(record, captured_once, where) for record in records)
        return tuple(command for command in commands if command is not None), {
            channel: position for channel, position in reached.items() if position is not None
        }

    def close(self) -> None:
        """Close the consumer of the signal topic."""
        if self._topic is not None:
            self._topic.close()


def _inserted(slice_: Slice, charsets: Charsets, least: RecordPlace | None) -> list[SignalRecord]:
    """Return the rows inserted into the signal table, without those before `least`.

    Updates and deletions of its rows are no signals.
    """
    signals: list[SignalRecord] = []
    gtids = slice_.transactions.gtids()
    for rows in table_rows(slice_, charsets):
        inserted = rows.of_kinds(WRITE)
        if not len(inserted.events):
            continue
        transactions = slice_.transaction_of(inserted.events)
        try:
            images = inserted.decode()
            values = list(zip(*(column.to_pylist() for column in images.columns), strict=True))
        except Exception as error:  # noqa: BLE001 - raised, it would be raised again after every restart
            log.warning(
                "Rows of the signal table in transaction %s cannot be read, and are no signals: %s. Its columns must"
                " hold text.",
                gtids[transactions[0]],
                shorten(error),
            )
            continue
        places = [
            f"{gtids[transaction]}#{number}" for number, transaction in enumerate(transactions[images.event].tolist())
        ]
        records = records_of(values, places)
        if least is not None:
            obeyed = _places(slice_, inserted.events[images.event]).before(least)
            records = [each for each, was_obeyed in zip(records, obeyed, strict=True) if not was_obeyed]
        signals.extend(records)
    return signals


def _places(slice_: Slice, events: npt.NDArray[np.int64]) -> Places:
    """Return the places of inserted rows. `events`: of each row the index of its event."""
    transactions = slice_.transactions
    numbers = np.array([file_number(file) for file in transactions.files], np.int64)
    file = numbers[transactions.records["file"]][slice_.transaction_of(events)]
    # The rows of an event follow each other.
    row = np.arange(len(events)) - np.searchsorted(events, events)
    return Places(file, slice_.positions[events], row, np.full(len(events), ROW_STEP))


def _command_of_record(record: SignalRecord, captured: Captured, where: str) -> Command | AskedPlace | None:
    """Return the command of a signal; None, with a warning, if the signal cannot be understood.

    Raise IncsnapError if the server does not say which tables it has.
    """
    try:
        command = command_of(parse(record), record.channel, captured, where)
        if isinstance(command, AskedPlace) and record.channel == "source":
            # The number of the row counts from the batch's first one, which differs when the row is read again.
            return replace(command, row=record.position.partition("#")[0])
        return command
    except IncsnapError:
        raise  # the server did not tell its tables: not the signal's fault, so it is read again
    except TimeoutError as error:
        problem = f"{error}. Name the tables, or write the expression without repetitions inside repetitions"
    except Exception as error:
        problem = f"it cannot be obeyed: {shorten(error)}. Please report this"
        log.debug("Signal %s", record.position, exc_info=error)
    name = record.id or f"{record.channel}-{record.position}"
    log.warning("Signal %s by channel %s is ignored: %s.", shorten(name), record.channel, problem)
    return None
