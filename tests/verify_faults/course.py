"""The course of the ledger for one form: a job writes topics, copies get faults, and verify compares the copies."""

from __future__ import annotations

import itertools
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pyspark.sql import SparkSession

from incsnap.checkpoint.status import newest_offset
from incsnap.config.load import from_properties
from incsnap.kafka.connect_offsets import ConnectorOffsets
from incsnap.tables import TableId
from incsnap.verify.kinds import UNVERIFIABLE
from incsnap.verify.report import TableReport
from incsnap.verify.verification import Choice, verify_tables
from lab.captured_database import CapturedDatabase, captured_database
from lab.listening import Follower
from lab.running_job import RunningJob
from lab.servers import Servers
from tests.support.faulty_topic import deliver_everything, write_topic
from tests.support.kafka import Read, read_all
from tests.verify_faults.forms import Form
from tests.verify_faults.seeding import KINDS, OF_HISTORY, Fault, Seeding
from tests.verify_faults.wide_tables import KEY_KINDS, WideTable, changed

_OLDER = re.compile(r"partition (\d+), offset (\d+)")


@dataclass(slots=True)
class Tally:
    """The counts of one kind of fault in one form."""

    seeded: int = 0  #: faults
    detected: int = 0  #: faults of which verify has named the key, or counted the record
    named: int = 0  #: faults that got the right kind, and column
    shown: bool = True  #: whether the form can show this kind


@dataclass(slots=True)
class FormResult:
    """The result of one form."""

    tallies: dict[str, Tally] = field(default_factory=dict)  #: counts by kind of fault
    wrong: list[str] = field(default_factory=list)  #: answers of verify that are not right
    rows: int = 0  #: rows that were compared
    seconds: float = 0.0  #: time of the comparison


def run_form(
    spark: SparkSession, servers: Servers, registry: str, form: Form, seed: int, faults: int, rows: int, folder: Path
) -> FormResult:
    """Seed `faults` faults into topics of `form`, compare them, and return what verify said."""
    random = Random(f"{seed}-{form.name}")
    unique = f"{form.short}_{random.randrange(1 << 24):06x}_{time.time_ns() % 1_000_000_000}"
    folder = folder / unique
    folder.mkdir()
    with captured_database(servers.mysql, servers.kafka, f"verify_{unique}", f"verify-{unique}", folder) as play:
        tables = [WideTable(servers.mysql, play.database, kind, random) for kind in KEY_KINDS]
        settings = form.settings(registry) | {
            "snapshot.mode": "initial",
            "table.include.list": ",".join(f"{play.database}\\.{kind}" for kind in (*KEY_KINDS, "marks")),
        }
        with compression(play.connect) if form.compressed else nullcontext():
            _write_topics(play, tables, settings, rows)
        prefix = f"{play.prefix}-copy"
        seedings = _seeded(play, tables, form, registry, random, faults)
        for table, seeding in zip(tables, seedings, strict=True):
            topic = f"{prefix}.{table.id}"
            write_topic(servers.kafka, topic, form.partitions, seeding.records, form.damage)
        offsets = None
        if form.delivered or random.random() < 0.5:
            with play.connect() as connection:
                offsets = ConnectorOffsets((deliver_everything(connection, servers.kafka, prefix),), "")
        names = tuple(str(table.id) for table in tables)
        read = from_properties(play.properties({**settings, "topic.prefix": prefix})).settings
        began = time.monotonic()
        reports = verify_tables(spark, read, Choice(names, offsets=offsets))
        result = FormResult(seconds=time.monotonic() - began, rows=sum(each.rows for each in reports))
        result.tallies = {kind: Tally(shown=kind in form.shows) for kind in KINDS}
        for report in reports:
            seeding = next(each for each in seedings if each.table == report.table)
            copied = read_all(servers.kafka, f"{prefix}.{report.table}", range(form.partitions))
            _judge(report, seeding, form, copied, result)
    return result


def _write_topics(play: CapturedDatabase, tables: Sequence[WideTable], settings: Mapping[str, str], rows: int) -> None:
    """Let a job write the topics of `tables`: a snapshot, then changes."""
    changes = changed(tables, rows)
    next(changes)
    with play.job(settings) as job:
        job.wait_until_streaming()
        _drain(play, job, 0)
        job.wait_until("the snapshot", partial(_is_read, str(play.checkpoint)))
        next(changes)
        _drain(play, job, 2)
        job.stop()


def _is_read(checkpoint: str) -> bool:
    """Return True if the job has planned to send all rows of its snapshots. The next mark comes behind them."""
    newest = newest_offset(checkpoint)
    return newest is not None and newest.has_no_snapshot_left


def _drain(play: CapturedDatabase, job: RunningJob, number: int) -> None:
    """Wait until the job has sent all that is written, by two marks, whatever the form of their records."""
    marks = TableId(play.database, "marks")
    with (
        Follower(play.kafka, play.topic(marks)) as follower,
        play.connect() as connection,
        connection.cursor() as cursor,
    ):
        seen: list[object] = []

        def has(count: int) -> bool:
            seen.extend(follower.poll(0.2))
            return len(seen) >= count

        for mark in (number + 1, number + 2):
            cursor.execute(f"INSERT INTO {marks.sql} VALUES (-{mark}, 0)")
            job.wait_until("the last change", partial(has, mark), every=0.0)


@contextmanager
def compression(connect: Callable[[], Connection[Cursor]]) -> Iterator[None]:
    """Let the server compress the transactions of new sessions until the block ends."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL binlog_transaction_compression = ON")
        try:
            yield
        finally:
            cursor.execute("SET GLOBAL binlog_transaction_compression = OFF")


def _seeded(
    play: CapturedDatabase, tables: Sequence[WideTable], form: Form, registry: str, random: Random, faults: int
) -> list[Seeding]:
    kinds = [kind for kind, _ in zip(itertools.cycle(form.kinds), range(faults), strict=False)]
    random.shuffle(kinds)
    seeded = []
    for number, table in enumerate(tables):
        seeding = Seeding(
            str(table.id),
            form.records(registry),
            {f"c_{name}" for name in table.columns},
            random,
            form.envelope,
            form.compacted,
        )
        records = read_all(play.kafka, play.topic(table.id), range(form.partitions))
        seeding.seed(records, kinds[number :: len(tables)])
        seeded.append(seeding)
    return seeded


def _judge(report: TableReport, seeding: Seeding, form: Form, copied: Sequence[Read], result: FormResult) -> None:
    """Compare the answer for a table with what was seeded."""
    if report.refused:
        result.wrong.append(f"{form.name}, {report.table}: refused: {report.refused}")
        return
    answers = {json.dumps(json.loads(each.key), sort_keys=True): each for each in report.differences}
    history = Counter(sent_twice=report.sent_twice, back_in_time=report.back_in_time)
    expected = Counter(
        sent_twice=sum(each.sent_twice for each in seeding.faults),
        back_in_time=sum(each.back_in_time for each in seeding.faults),
    )
    is_judged = form.envelope and not form.compacted
    if is_judged and history != expected:
        result.wrong.append(f"{form.name}, {report.table}: {dict(history)} of {dict(expected)}")
    if not form.envelope and history.total():
        result.wrong.append(f"{form.name}, {report.table}: {dict(history)}, though no record has a place")
    for fault in seeding.faults:
        tally = result.tallies[fault.kind]
        tally.seeded += 1
        answer = answers.pop(fault.key, None)
        if fault.kind in OF_HISTORY:
            if answer is not None:
                result.wrong.append(f"{form.name}: {fault}, answered {answer}")
            elif is_judged and history == expected:
                tally.detected += 1
                tally.named += 1
            continue
        if answer is not None and answer.kind != UNVERIFIABLE:
            tally.detected += 1
        is_named = answer is not None and answer.kind == fault.named and fault.column in ("", *answer.columns)
        if (
            is_named
            and answer is not None
            and (not fault.has_older or _has_row_of(answer.note, fault, seeding, copied))
        ):
            tally.named += 1
        else:
            result.wrong.append(f"{form.name}: {fault}, answered {answer}")
    result.wrong += [f"{form.name}: false alarm {each} in {report.table}" for each in answers.values()]


def _has_row_of(note: str, fault: Fault, seeding: Seeding, copied: Sequence[Read]) -> bool:
    """Return True if the note names an older record of the key with the row of the last one."""
    named = _OLDER.search(note)
    own = [each for each in copied if seeding.form.shown(each.key or b"", None).key == fault.key]
    rows = [seeding.form.shown(each.key or b"", each.value).row for each in own]
    return named is not None and any(
        (each.partition, each.offset) == (int(named[1]), int(named[2])) and row == rows[-1]
        for each, row in zip(own[:-1], rows, strict=False)
    )
