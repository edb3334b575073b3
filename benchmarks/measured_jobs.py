"""The sides of the comparison: each is a child process, started from a properties file as its user starts it.

Debezium is two sides: with its defaults, and with the settings of `_BEST`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.benchmark_database import BenchmarkDatabase
from incsnap.errors import ServerUnreachable
from lab import debezium
from lab.running_job import JobFailed, running_job, write_properties

INCSNAP, DEBEZIUM, DEBEZIUM_BEST = "incsnap", "debezium", "debezium-best"
SIDES = (DEBEZIUM, DEBEZIUM_BEST, INCSNAP)
#: Names of the sides in reports.
TITLES = {DEBEZIUM: "Debezium's defaults", DEBEZIUM_BEST: "Debezium's best", INCSNAP: "incsnap"}
#: The options that Kafka's start script gives to Connect (KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS of Kafka 4).
_CONNECT_JVM = (
    "-Xms256M",
    "-Xmx2G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
CHUNK_SIZE = 10_000
#: What a tuned connector sets. The producer's batches of 256 kB made single-row changes three times as fast. The queues
#: are large enough to fill such batches; they were not measured alone. The worker must allow `producer.override.*`:
#: `connector.client.config.override.policy=All`, which is Connect's default since Kafka 3.0.
_BEST = {
    "producer.override.batch.size": "262144",
    "producer.override.linger.ms": "5",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
}


@dataclass(frozen=True, slots=True)
class JobRun:
    """A run of a job, from its start to its end."""

    pid: int  #: leads the session of all its processes
    began: float  #: when its process started, by `time.monotonic()`
    check: Callable[[], None]  #: raises an error with the job's last words if it has failed
    stop: Callable[[], None]  #: ends the run cleanly
    properties: Path | None = None  #: file of incsnap's job; None for another side


@dataclass(frozen=True, slots=True)
class Job:
    """A job of one side on tables of the benchmark. It may run several times."""

    side: str  #: one of `SIDES`
    bench: BenchmarkDatabase  #: database that the job captures
    prefix: str  #: topic prefix, and name of its folder
    tables: Sequence[str]  #: names with the database
    server_id: int  #: `database.server.id`, unique on the MySQL server
    more: Mapping[str, str] = field(default_factory=dict)  #: further settings, which override the others

    @property
    def folder(self) -> Path:
        """Return the folder of the job. Create it if it is missing."""
        folder = self.bench.folder / self.prefix
        folder.mkdir(exist_ok=True)
        return folder

    def life(self) -> AbstractContextManager[JobRun]:
        """Run the job until the block ends. Then kill all its remaining processes.

        The run's `check` raises JobFailed or ServerUnreachable if the job has failed.
        """
        return self._incsnap() if self.side == INCSNAP else self._debezium()

    def settings(self) -> dict[str, str]:
        """Return the properties that are set. All others have their defaults."""
        own = self._incsnap_settings() if self.side == INCSNAP else self._debezium_settings()
        mysql = self.bench.servers.mysql
        return {
            **mysql.properties(),
            "database.server.id": str(self.server_id),
            "topic.prefix": self.prefix,
            "table.include.list": ",".join(table.replace(".", "\\.") for table in self.tables),
            "snapshot.mode": "no_data",
            "signal.data.collection": self.bench.signals,
            **own,
            **self.more,
        }

    def _incsnap_settings(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bench.servers.kafka,
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
            "checkpoint.location": str(self.folder / "checkpoint"),
        }

    def _debezium_settings(self) -> dict[str, str]:
        return {
            "name": self.prefix,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "tasks.max": "1",
            "incremental.snapshot.chunk.size": str(CHUNK_SIZE),
            "schema.history.internal.kafka.bootstrap.servers": self.bench.servers.kafka,
            "schema.history.internal.kafka.topic": f"{self.prefix}.history",
            # Others may use the server too. Their tables are no part of the comparison.
            "schema.history.internal.store.only.captured.tables.ddl": "true",
            **(_BEST if self.side == DEBEZIUM_BEST else {}),
        }

    @contextlib.contextmanager
    def _incsnap(self) -> Iterator[JobRun]:
        properties = write_properties(self.folder / "job.properties", self.settings())
        with running_job(properties, self.folder / "job.log", self.folder / "checkpoint") as job:

            def check() -> None:
                """Raise JobFailed if the job has ended."""
                if job.exit_code() is not None:
                    raise JobFailed(f"incsnap ended with code {job.exit_code()}:\n{job.log_tail()}")

            yield JobRun(job.pid, job.began, check, job.stop, properties)

    @contextlib.contextmanager
    def _debezium(self) -> Iterator[JobRun]:
        properties = write_properties(self.folder / "connector.properties", self.settings())
        with debezium.connect_worker(
            self.bench.servers.kafka,
            self.folder / "connect.log",
            offsets=self.folder / "offsets",
            connectors=[properties],
            jvm_options=_CONNECT_JVM,
        ) as worker:

            def check() -> None:
                """Raise ServerUnreachable if the worker has ended or the connector has failed."""
                if worker.program.exit_code() is not None:
                    raise ServerUnreachable(f"Kafka Connect ended:\n{worker.program.last_words()}")
                if (state := worker.state(self.prefix)).startswith("FAILED"):
                    raise ServerUnreachable(f"Debezium failed:\n{state}")

            yield JobRun(worker.program.pid, worker.program.began, check, worker.end)
