"""Two jobs on one `topic.prefix`, and the number of records of each row that a consumer sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.running_job import RunningJob, running_job, write_properties
from lab.table_designs import TableDesign
from tests.support.waiting import wait_until

ROWS = TableDesign(
    "plain",
    "id BIGINT PRIMARY KEY, version BIGINT NOT NULL",
    ("id",),
    "i, 0",
    lambda random, number: (number,),
    lambda random: {},
)


@contextmanager
def second_job(
    play: CapturedDatabase, checkpoint: Path, *arguments: str, settings: Mapping[str, str] | None = None
) -> Iterator[RunningJob]:
    """Run another job with the same `topic.prefix` and another server id."""
    more = {"checkpoint.location": str(checkpoint), "database.server.id": "777001", **(settings or {})}
    path = write_properties(play.folder / f"{checkpoint.name}.properties", play.properties(more))
    log = play.folder / f"{checkpoint.name}.log"
    with running_job(path, log, checkpoint, arguments=arguments) as job:
        yield job


def ended(job: RunningJob) -> int | None:
    """Wait for the end of the job and return its exit code."""
    wait_until(lambda: job.exit_code() is not None)
    return job.exit_code()


def insert(play: CapturedDatabase, ids: range) -> None:
    """Insert rows with these keys, which are far above those of the table."""
    with play.connect() as connection, connection.cursor() as cursor:
        for number in ids:
            cursor.execute(f"INSERT INTO `{play.database}`.plain VALUES (%s, 1)", (number,))


def times_seen(play: CapturedDatabase, topic: str, ids: range) -> Counter[int]:
    """Return how many records of each id a consumer sees, without the marks."""
    seen: Counter[bytes] = Counter()
    read_topics(play.kafka, [topic], lambda message: seen.update([message.key() or b""]))
    return Counter(seen[b'{"id":%d}' % number] for number in ids)
