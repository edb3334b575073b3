"""The two that are compared: each a child process, started from a properties file as its user would start it."""

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

INCSNAP, DEBEZIUM = "incsnap", "debezium"
SIDES = (DEBEZIUM, INCSNAP)
#: What Kafka's own start script gives to Connect (KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS of Kafka 4).
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


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job. ``began``: its process, in ``time.monotonic``; ``pid`` leads the session of all its processes.

    ``check`` raises what the job says when it has failed; ``stop`` ends it in its own clean way.
    """

    pid: int
    began: float
    check: Callable[[], None]
    stop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One side's job on tables of the benchmark: what its lives have in common."""

    side: str
    bench: BenchmarkDatabase
    prefix: str
    tables: Sequence[str]
    server_id: int
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        folder = self.bench.folder / self.prefix
        folder.mkdir(exist_ok=True)
        return folder

    def life(self) -> AbstractContextManager[JobRun]:
        """Start it; whatever is left of it is killed when the block ends."""
        return self._incsnap() if self.side == INCSNAP else self._debezium()

    def settings(self) -> dict[str, str]:
        """The properties that are given; all others have their defaults."""
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
            # The server is shared: the tables of others are no part of the comparison.
            "schema.history.internal.store.only.captured.tables.ddl": "true",
        }

    @contextlib.contextmanager
    def _incsnap(self) -> Iterator[JobRun]:
        properties = write_properties(self.folder / "job.properties", self.settings())
        with running_job(properties, self.folder / "job.log", self.folder / "checkpoint") as job:

            def check() -> None:
                if job.exit_code() is not None:
                    raise JobFailed(f"incsnap ended with code {job.exit_code()}:\n{job.log_tail()}")

            yield JobRun(job.pid, job.began, check, job.stop)

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
                if worker.program.exit_code() is not None:
                    raise ServerUnreachable(f"Kafka Connect ended:\n{worker.program.last_words()}")
                if (state := worker.state(self.prefix)).startswith("FAILED"):
                    raise ServerUnreachable(f"Debezium failed:\n{state}")

            yield JobRun(worker.program.pid, worker.program.began, check, worker.end)
