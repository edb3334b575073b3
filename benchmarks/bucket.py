"""The cost of a checkpoint in a bucket: the latency of a change, compared with a checkpoint on the local disk.

    python -m benchmarks.bucket --turns 6

Two jobs run at once on the same servers, each with its own table and topic. They take turns in getting 50 updates a
second, so both meet the machine in the same state. The bucket is on the tests' S3 server on loopback, which answers one
request at a time within milliseconds. The requests are counted.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.benchmark_database import BenchmarkDatabase, benchmark_database, topics
from benchmarks.measured_jobs import INCSNAP, Job, JobRun
from benchmarks.tables import ORDERS
from benchmarks.update_latency import NumberedUpdates, percentile
from lab.object_store import ObjectStore, object_store
from lab.run_folder import run_folder
from lab.servers import servers

_ROWS, _START_SECONDS, _SETTLE_SECONDS = 1_000, 240.0, 2.0
#: Numbers, which are all that differs between objects of one kind.
_NUMBER = re.compile(r"\d+")
#: A request that each batch makes exactly once.
_A_BATCH = "PUT spark/offsets/N"


@dataclass
class Side:
    """A job of the comparison."""

    name: str  #: where its checkpoint is
    job: Job  #: the job's settings
    table: str  #: name with the database
    topic: str  #: the table's topic
    life: JobRun  #: the job's run
    lags: list[float] = field(default_factory=list)  #: seconds from commit to consumer, of all turns


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bucket", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=6, help="of each job")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a turn")
    parser.add_argument("--poll", metavar="MS", help="poll.interval.ms of the job in the bucket")
    asked = parser.parse_args()
    poll = {"poll.interval.ms": asked.poll} if asked.poll else {}
    with (
        servers(lasting=True) as started,
        run_folder() as folder,
        benchmark_database(started, folder) as bench,
        ExitStack() as stack,
    ):
        store = stack.enter_context(object_store())
        local = _begin(bench, stack, "local disk", {})
        bucket = _begin(bench, stack, "bucket", {**store.properties("bench"), **poll})
        _turn(bench, local, asked.seconds)
        _turn(bench, bucket, asked.seconds)
        requests: Counter[str] = Counter()
        for _ in range(asked.turns):
            local.lags += _turn(bench, local, asked.seconds)
            store.requests()
            bucket.lags += _turn(bench, bucket, asked.seconds)
            requests += _counted(store)
        batches = requests[_A_BATCH]
        for side in (local, bucket):
            numbers = ", ".join(f"p{each} {percentile(side.lags, each) * 1e3:.0f} ms" for each in (50, 99))
            print(f"{side.name}: {numbers} of {len(side.lags)} updates")
        print(f"requests in {batches} batches:")
        for what, count in requests.most_common():
            print(f"  {count:6} {count / max(1, batches):6.2f} a batch  {what}")
        for side in (local, bucket):
            side.life.stop()


def _begin(bench: BenchmarkDatabase, stack: ExitStack, name: str, more: dict[str, str]) -> Side:
    word = name.partition(" ")[0]
    table = bench.create(ORDERS, word, _ROWS)
    prefix = f"bench-{os.getpid()}-{word}"
    job = Job(INCSNAP, bench, prefix, [table], 100_000 + os.getpid() % 50_000 * 100 + len(word), more)
    names = stack.enter_context(topics(bench.servers.kafka, prefix, {table: 1}))
    with NumberedUpdates(bench.connect, table, bench.servers.kafka, names[table]) as updates:
        life = stack.enter_context(job.life())
        # The job does not send updates from before its start.
        updates.wait_for_first(life.check, _START_SECONDS)
    return Side(name, job, table, names[table], life)


def _turn(bench: BenchmarkDatabase, side: Side, seconds: float) -> list[float]:
    with NumberedUpdates(bench.connect, side.table, bench.servers.kafka, side.topic) as updates:
        time.sleep(_SETTLE_SECONDS)
        since = time.monotonic()
        time.sleep(seconds)
        until = time.monotonic()
        updates.stop(side.life.check)
        return updates.lags(since, until)


def _counted(store: ObjectStore) -> Counter[str]:
    return Counter(f"{method} {_NUMBER.sub('N', key.partition('/')[2])}" for method, key in store.requests())


if __name__ == "__main__":
    main()
