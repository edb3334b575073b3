"""The runs beside one job: its first snapshot, the writers, and one comparison after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from incsnap.checkpoint.status import newest_offset
from incsnap.config.load import from_properties
from incsnap.verify.kinds import UNVERIFIABLE
from incsnap.verify.report import TableReport
from incsnap.verify.rounds import Limits
from incsnap.verify.verification import Choice, verify_tables
from lab.captured_database import CapturedDatabase, captured_database
from lab.servers import Servers
from tests.verify_faults.forms import Form
from tests.verify_live.writing import LiveWriters, create_tables

#: Share of the comparisons beside which a table is altered.
_ALTERED = 0.35
#: Differences of a run that are shown.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one comparison."""

    answer: str  #: equal, no answer, or difference
    seconds: float  #: how long it took
    rows: int  #: rows that were compared
    rate: float  #: changed rows per second meanwhile
    notes: list[str]  #: why there is no answer, or what differs


def runs_of_job(
    spark: SparkSession,
    servers: Servers,
    registry: str,
    form: Form,
    runs: int,
    seed: int,
    rate: int,
    rows: int,
    wait: float,
    folder: Path,
    counts: Counter[str],
) -> Iterator[Run]:
    """Start a job that writes topics of `form`, and writers beside the job. Yield the result of each comparison.

    `wait`: seconds in which topics may be late. What the writers have done is added to `counts`.
    """
    random = Random(seed)
    unique = f"live_{seed}_{time.time_ns() % 1_000_000_000}"
    folder = folder / unique
    folder.mkdir()
    with captured_database(servers.mysql, servers.kafka, unique, unique.replace("_", "-"), folder) as play:
        with play.connect() as connection:
            tables = create_tables(connection, play.database, rows)
        settings = form.settings(registry) | {
            "snapshot.mode": "initial",
            "table.include.list": ",".join(f"{play.database}\\.{table.table}" for table in tables),
        }
        read = from_properties(play.properties(settings)).settings
        writers = LiveWriters(play.connect, tables, rows, rate, seed)
        with play.job(settings) as job:
            job.wait_until("the snapshot", partial(_is_read, str(play.checkpoint)))
            with writers.running(), ThreadPoolExecutor(1) as pool:
                for number in range(runs):
                    is_altered = random.random() < _ALTERED
                    altering = pool.submit(_alter, writers, Random(seed + number)) if is_altered else None
                    _rotate(play)
                    began, before = time.monotonic(), writers.changes
                    reports = verify_tables(spark, read, Choice(tuple(map(str, tables)), limits=Limits(wait)))
                    seconds = time.monotonic() - began
                    yield _run(reports, seconds, (writers.changes - before) / seconds)
                    if altering is not None and altering.result(120):
                        # Records of unchanged rows have other columns than the table, until a snapshot sends them.
                        signal = f"after-alter-{number}"
                        play.execute_by_row(signal, tables)
                        job.wait_until(signal, partial(_is_read, str(play.checkpoint), signal))
            job.stop()
        counts.update(writers.counts)


def _rotate(play: CapturedDatabase) -> None:
    """Begin another file of the binlog, as a server does now and then."""
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")


def _is_read(checkpoint: str, signal: str = "") -> bool:
    """Return True if no snapshot is left, and the job has obeyed `signal`."""
    newest = newest_offset(checkpoint)
    return newest is not None and newest.has_no_snapshot_left and signal in ("", *newest.snapshot.recent)


def _alter(writers: LiveWriters, random: Random) -> bool:
    time.sleep(random.random() * 6)
    return writers.alter(random)


def _run(reports: list[TableReport], seconds: float, rate: float) -> Run:
    notes: list[str] = []
    for report in reports:
        alarms = [each for each in report.differences if each.kind != UNVERIFIABLE]
        open_ = [each for each in report.differences if each.kind == UNVERIFIABLE]
        notes += [f"{report.table}: {each.line()}" for each in alarms[:_SHOWN]]
        if report.sent_twice or report.back_in_time:
            notes.append(f"{report.table}: {report.sent_twice} sent twice, {report.back_in_time} back in time")
        if report.refused:
            notes.append(f"{report.table}: {report.refused}")
        if open_:
            whys = Counter(each.note for each in open_)
            notes.append(f"{report.table}: {', '.join(f'{count} {why}' for why, count in whys.most_common(3))}")
    is_wrong = any(report.differs or report.sent_twice or report.back_in_time for report in reports)
    is_equal = all(report.is_equal for report in reports)
    answer = "difference" if is_wrong else "equal" if is_equal else "no answer"
    return Run(answer, seconds, sum(report.rows for report in reports), rate, notes)
