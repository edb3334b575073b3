"""The costs of a batch of many tables, and of a transaction over many partitions."""

from __future__ import annotations

import pickle
import statistics
from functools import partial

import pyarrow as pa

from benchmarks.benchmark_database import BenchmarkDatabase, topics
from benchmarks.scaling.planned_job import PlannedJob, planned_job, rows_of, settings_of
from benchmarks.scaling.timing import ROUNDS, median, took
from incsnap.envelope.records import RECORDS
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.planner import first_position
from incsnap.tasks import blocks


def of_tables(bench: BenchmarkDatabase, tables: int) -> dict[str, float]:
    """Measure a batch with one change in each of `tables` tables. Return figures as `tables.step.number`.

    The figures are the seconds of planner, source task and sink task, the bytes of the pickled parts, and the size of
    the offset.
    """
    names = [f"{bench.database}.t{number}" for number in range(tables)]
    with bench.connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
    prefix = f"{bench.database}-tables{tables}"
    runs: list[dict[str, float]] = []
    try:
        with topics(bench.servers.kafka, prefix, dict.fromkeys(names, 1)), planned_job(bench, prefix) as job:
            for number in range(ROUNDS + 1):
                with bench.connection.cursor() as cursor:
                    cursor.execute("BEGIN")
                    for name in names:
                        cursor.execute(f"INSERT INTO {name} VALUES ({number}, 1)")
                    cursor.execute("COMMIT")
                runs.append(_one_batch(job))
    finally:
        with bench.connection.cursor() as cursor:
            for name in names:
                cursor.execute(f"DROP TABLE {name}")
    return {f"tables.{key}.{tables}": statistics.median(run[key] for run in runs[1:]) for key in runs[0]}


def _one_batch(job: PlannedJob) -> dict[str, float]:
    batch = job.planned()
    assert batch is not None
    parts, planner = batch
    made: list[blocks.BlockRow] = []
    source = took(lambda: made.extend(rows_of(parts, job.settings)))
    sink = took(lambda: job.send(made))
    return {
        "planner": planner,
        "source": source.processor,
        "sink.elapsed": sink.elapsed,
        "parts": float(sum(len(pickle.dumps(part)) for part in parts)),
        "offset": float(len(str(job.offset.dump()))),
    }


def of_partitions(bench: BenchmarkDatabase, partitions: int) -> dict[str, float]:
    """Return the elapsed seconds of a transaction with one record for each of `partitions` partitions."""
    prefix, table = f"{bench.database}-partitions{partitions}", f"{bench.database}.wide"
    settings = settings_of(bench, prefix)
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    at = first_position(settings, 1)
    with topics(bench.servers.kafka, prefix, {table: partitions}) as names:
        one = {"key": b"k", "value": b"v" * 780}
        records = pa.RecordBatch.from_pylist([{**one, "partition": n} for n in range(partitions)], schema=RECORDS)
        send = partial(_transaction, client, prefix, at.job_id)
        runs = [took(partial(send, batch, names[table], records)) for batch in range(1, ROUNDS + 2)]
    return {f"partitions.sink.elapsed.{partitions}": median(runs[1:]).elapsed}


def _transaction(
    client: ClientSettings, prefix: str, job_id: str, batch: int, topic: str, records: pa.RecordBatch
) -> None:
    transaction = BucketWriter(client, prefix, job_id).open(0, batch, "digest")
    assert transaction is not None
    with transaction:
        transaction.send([(topic, len(records))], records)
        transaction.commit()
