"""A round of the ledger of seams: one connector and its topics, which Debezium and incsnap continue by turns."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka.admin import AdminClient

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.checkpoint.taken_over import taken_over
from incsnap.errors import ServerUnreachable
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import partition_counts
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.captured_database import CapturedDatabase, captured_database
from lab.compare import compare
from lab.progress import tell
from lab.replay import read_topics
from lab.running_job import INCSNAP, RunningJob, running_job
from tests.seams.audit import Audit, Ends
from tests.seams.connector import Connector
from tests.seams.plan import Outcome, Plan
from tests.seams.writing import Writing

_SECONDS = 120.0
#: Last words of the names of topics that are audited.
_TABLES = ("orders", "order_lines", "all_orders", "big", "altered")


class Round:
    """A round: `in_and_out` for two seams, as often as wanted, then `finish`.

    `folder` gets files and logs. Connect's workers end with `stack`.
    """

    def __init__(
        self, play: CapturedDatabase, plan: Plan, random: Random, folder: Path, outcome: Outcome, stack: ExitStack
    ) -> None:
        self._play, self._plan, self._random, self._folder, self._outcome = play, plan, random, folder, outcome
        self._client, self._admin = ClientSettings(play.kafka), AdminClient({"bootstrap.servers": play.kafka})
        self._seams: list[Ends] = []
        self._marks = 1_000
        self._job: RunningJob | None = None
        self._writing = Writing(play, random)
        self._connector = Connector(play, plan, folder, random, stack)
        self._reaches("Debezium's first snapshot")
        self._connector.wait_for_the_snapshots_end()
        tell(f"{outcome.name}: Debezium streams")

    def in_and_out(self, number: int) -> None:
        """Let incsnap take over from the connector, and hand back."""
        random, writing, connector = self._random, self._writing, self._connector
        ending = self._plan.ends[number % len(self._plan.ends)]
        snapshot, alters, has_xa = random.random() < 0.6, random.random() < 0.5, random.random() < 0.7
        with ExitStack() as busy:
            busy.enter_context(writing.writer(0, xa=False))
            xa = busy.enter_context(writing.writer(1, xa=True)) if has_xa else None
            if snapshot:
                writing.signal()
            if alters:
                writing.alter()
            time.sleep(random.uniform(0.2, 1.2))
            changes = writing.change_big(random.randint(1, 2))
            connector.end(ending, random.uniform(0.0, 1.2))
            prepared = writing.prepared()
            file, checkpoint = connector.file(number)
            worker = ("--worker", str(connector.worker.file))
            printed = self._incsnap("takeover", file, *worker, "--wait")
            self._seam(f"taken over after {ending}")
            self._count_in(ending, printed, checkpoint, has_xa=bool(prepared), altered=alters)
            connector.replace_workers(ending)
            with running_job(file, self._folder / "job.log", checkpoint, arguments=worker) as self._job:
                self._job.wait_until_streaming()
                changes.result()
                if xa is not None:
                    xa.stop()
                self._reaches("the job")
                if random.random() < 0.4:
                    writing.signal()
                if altered := random.random() < 0.5:
                    writing.alter()
                    self._reaches("the job behind the ALTER TABLE")
                    self._outcome.hits["in: before an ALTER TABLE"] += 1
                changes = writing.change_big(random.randint(0, 1))
                time.sleep(random.uniform(0.0, 2.0))
                self._job.stop()
                changes.result()
            self._job = None
            connector.prepare()
            worker = ("--worker", str(connector.worker.file))
            printed = self._incsnap("hand-back", file, *worker, "--to-rest", connector.worker.url)
            self._seam("handed back")
            self._count_out(printed, altered=altered)
            connector.go_on()
            self._reaches("Debezium behind the job")

    def finish(self) -> None:
        """Read the topics, and complete the outcome."""
        self._reaches("the last change")
        audit, read, outcome = Audit(self._seams), self._plan.shape.read, self._outcome

        def observe(message: Any) -> None:
            topic = message.topic()
            record = read(topic, message.key(), message.value())
            audit.observe(record, topic, message.partition(), message.offset())

        read_topics(self._play.kafka, self._topics(), observe)
        outcome.records, outcome.repeated, outcome.again = audit.records, audit.repeated, audit.again
        for seam, tables in audit.cut.items():
            direction = "out" if seam % 2 else "in"
            outcome.hits[f"{direction}: both have sent rows of one transaction"] += 1
            outcome.hits[f"{direction}: both have sent rows of a transaction of 10,000 rows"] += "big" in tables
        for seam in audit.split:
            outcome.hits[f"{'out' if seam % 2 else 'in'}: within the records of one row"] += 1
        outcome.hits["Debezium has read rows as they were before a prepared XA transaction"] += bool(audit.stale)
        outcome.wrong += audit.faults()
        with closing(self._play.connect()) as connection, connection.cursor() as cursor:
            for table in self._writing.tables:
                cursor.execute(f"SELECT * FROM {table.sql} LIMIT 0")
                columns = tuple(column[0] for column in cursor.description or ())
                rows = audit.rows.get(table.table, {})
                living = {key: tuple(row.get(name) for name in columns) for key, row in rows.items()}
                outcome.wrong += [f"{table}: {fault}" for fault in compare(connection, table, living, columns).faults()]

    def _seam(self, what: str) -> None:
        self._seams.append(topic_ends(self._client, partition_counts(self._admin, self._topics())))
        self._outcome.seams += 1
        tell(f"{self._outcome.name}: {what}")

    def _count_in(self, ending: str, printed: str, checkpoint: Path, *, has_xa: bool, altered: bool) -> None:
        place = taken_over(Files(own_part(str(checkpoint))))
        assert place is not None
        hits = self._outcome.hits
        hits[f"in: {ending}"] += 1
        hits["in: the topics were ahead of the offset"] += bool(place.seam.ends)
        hits["in: partitions were at different places"] += len({each.end for each in place.seam.ends}) > 1
        hits["in: the offset was inside a transaction"] += "of the next transaction" in printed
        hits["in: XA transactions were prepared"] += has_xa
        hits["in: inside an incremental snapshot"] += bool(place.requests)
        hits["in: behind an ALTER TABLE"] += altered
        hits["in: a repetition was cut short"] += "has ended in between" in printed

    def _count_out(self, printed: str, *, altered: bool) -> None:
        hits = self._outcome.hits
        hits["out"] += 1
        hits["out: inside an incremental snapshot"] += "The snapshot of" in printed
        hits["out: behind an ALTER TABLE"] += altered

    def _reaches(self, what: str) -> None:
        """Wait until all that is written now is in the topics."""
        marks = TableId(self._play.database, "marks")
        topic = {self._play.topic(marks): self._plan.partitions}
        for _ in range(2):
            before = sum(topic_ends(self._client, topic).values()) if self._exists(marks) else 0
            self._marks += 1
            with closing(self._play.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(f"INSERT INTO {marks.sql} VALUES ({self._marks}, 0)")
            deadline = time.monotonic() + _SECONDS
            while not self._exceeds(topic, before):
                if self._job is not None and self._job.exit_code() is not None:
                    raise AssertionError(f"{what}: the job has ended:\n{self._job.log_tail()}")
                assert time.monotonic() < deadline, f"{what}: not in {_SECONDS:.0f} s; see {self._connector.log}"
                time.sleep(0.1)

    def _exceeds(self, topic: Mapping[str, int], before: int) -> bool:
        """Whether a topic, given with its number of partitions, has more than `before` records."""
        with contextlib.suppress(ServerUnreachable):  # the topic may have been made a moment ago
            return bool(partition_counts(self._admin, topic)) and sum(topic_ends(self._client, topic).values()) > before
        return False

    def _exists(self, table: TableId) -> bool:
        return bool(partition_counts(self._admin, [self._play.topic(table)]))

    def _topics(self) -> list[str]:
        names = self._admin.list_topics(timeout=20).topics
        ours = (name for name in names if name.startswith(f"{self._play.prefix}."))
        return [name for name in ours if name.rpartition(".")[2] in _TABLES]

    def _incsnap(self, *words: object) -> str:
        """Run a command of incsnap and return what it prints. Raise AssertionError if it fails."""
        command = [sys.executable, *INCSNAP, *map(str, words)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SECONDS)
        with (self._folder / "commands.log").open("a") as log:
            log.write(f"$ incsnap {' '.join(map(str, words))}\n{done.stdout}{done.stderr}\n")
        assert done.returncode == 0, f"incsnap {words[0]}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def play_round(
    mysql: MySqlAddress, kafka: str, plan: Plan, seams: int, random: Random, folder: Path, seconds: float
) -> Outcome:
    """Run a round with about `seams` seams, fewer if it takes `seconds`, and return its result."""
    name = f"seams_{secrets.token_hex(3)}"
    kind = f"{plan.shape.name}, {plan.partitions} partitions{', exactly once' if plan.exactly_once else ''}"
    outcome, began = Outcome(kind), time.monotonic()
    folder.mkdir(parents=True)
    try:
        with captured_database(mysql, kafka, name, name.replace("_", "-"), folder) as play, ExitStack() as stack:
            played = Round(play, plan, random, folder, outcome, stack)
            for number in range(max(1, seams // 2)):
                if not number or time.monotonic() - began < seconds:
                    played.in_and_out(number)
            played.finish()
    except Exception as error:  # noqa: BLE001 - reported in the table; the next round still runs
        traceback.print_exc(file=sys.stderr)
        outcome.wrong.append(f"{type(error).__name__}: {error}")
    outcome.seconds = time.monotonic() - began
    return outcome
