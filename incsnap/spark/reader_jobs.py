"""The driver's side of reading chunks: Spark jobs that read them beside the stream.

The planner is a process on the driver's machine. It asks for chunks over a Unix socket (`planner.chunk_readers`). One
thread per reader takes the orders, and runs one job of one task at a time in the query's session. The stream's batches
never wait for a chunk: there are fewer readers than task slots, so a slot is always free for the stream. Readers also
have a lower priority on the processor (`tasks.chunk`).

The batches' own tasks do not read chunks, because a batch waits for its slowest task. Live changes then took 3.4 s
beside a snapshot, and take 0.3 s this way. The planner's process does not read chunks, because a cluster's executors
read in parallel.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Listener
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from incsnap.checkpoint.first_offset import require_shared
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import shorten
from incsnap.planner.chunk_readers import Address, Answer, Begun, PutBack, ReaderMessage, ReadOrders, hang_up
from incsnap.planner.order_queue import OrderQueue
from incsnap.spark import process_log
from incsnap.spark.owned_folders import short_folder, sweep
from incsnap.spark.reader_turns import turns_of
from incsnap.tasks.chunk import read_chunks
from incsnap.tasks.partitions import ChunkOrder

log = logging.getLogger(__name__)

#: Rows that the chunks of one job should have together at most. With a small incremental.snapshot.chunk.size a job
#: reads several chunks, because to start one costs 20 to 30 ms. A job ends after `tasks.chunk.JOB_SECONDS`, and the
#: chunks that are left go to the front of the queue.
_JOB_ROWS = 50_000
_PREFIX, _SOCKET = "incsnap-chunks-", "chunks"
#: Errors of a session that has ended. PySpark raises AttributeError for a context that was stopped.
ENDED = (PySparkException, Py4JError, ConnectionError, AttributeError)


@dataclass(frozen=True, slots=True)
class ReaderPool:
    """The division of the session's task slots."""

    count: int  #: chunks that are read at the same time
    stream: int  #: task slots that are left for the stream

    @classmethod
    def of(cls, slots: int, most: int | None) -> ReaderPool:
        """Return a pool with half of the slots, or `most` of them (snapshot.max.threads), but never with the last
        slot."""
        count = max(1, min(most or slots // 2, slots - 1))
        return cls(count, max(1, slots - count))


class ReaderJobs:
    """The driver's server for chunk reading: it takes the planner's orders to read chunks, and runs Spark jobs that
    read them.

    There is one object per query, and as many chunks are read at once as `readers` says. Call `close` when the query
    has ended.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        root: str,
        readers: ReaderPool,
        log_level: int,
        *,
        many_machines: bool = False,
    ) -> None:
        self._context = spark.sparkContext
        self._buffers = WindowBuffers(root)
        self._read = partial(_read_on_executor, settings.to_json(), root, log_level, many_machines)
        self._group = f"incsnap chunks {secrets.token_hex(4)}"
        self._queue = OrderQueue(readers.count)
        #: The lock of the queue, and of what follows here.
        self._changed = self._queue.changed
        #: Orders of each running Spark job, by its job group.
        self._jobs: dict[str, tuple[ChunkOrder, ...]] = {}
        self._jobs_begun = 0
        self._planner: Connection | None = None
        sweep(_PREFIX, _SOCKET)
        self._folder = short_folder(_PREFIX)
        #: The planner's report, beside the socket: both processes use this folder, and it is removed with the query.
        self.report_path = f"{self._folder}/report.json"
        key = secrets.token_bytes(32)
        self.address = Address(f"{self._folder}/{_SOCKET}", key.hex())
        self._listener = Listener(self.address.path, family="AF_UNIX", authkey=key)
        self._count, self._turns = readers.count, turns_of(self._context)
        self._turns.open(self._count)
        for target in (self._listen, *[self._work] * readers.count):
            threading.Thread(target=target, name="incsnap-chunk-reader", daemon=True).start()

    def close(self) -> None:
        """Cancel what is being read and remove the folder. It may be called twice."""
        with self._changed:
            if self._queue.is_closed:
                return
            self._queue.close()
            if self._planner is not None:
                hang_up(self._planner)
        self._turns.close(self._count)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            # A thread in accept() does not notice that its socket is closed.
            knock.settimeout(1.0)
            knock.connect(self.address.path)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._cancel(self._running_jobs())

    def _is_closed(self) -> bool:
        return self._queue.is_closed

    def _running_jobs(self) -> list[str]:
        with self._changed:
            return list(self._jobs)

    def _cancel(self, groups: Iterable[str]) -> None:
        """Cancel the jobs, even if a task hangs: Spark kills a task's Python process that does not end by itself."""
        for group in groups:
            with suppress(*ENDED):
                self._context.cancelJobGroup(group)

    # -- orders of the planner

    def _listen(self) -> None:
        """Serve one planner at a time. A new one, after Spark has started the query again, begins with no orders."""
        while not self._is_closed():
            try:
                planner = self._listener.accept()
            except (EOFError, ConnectionError):
                # Another job checks whether this one lives (`sweep`), or a planner died while it connected.
                continue
            except Exception as error:  # noqa: BLE001 - a client without the key, or we are closing
                if not self._is_closed():
                    log.warning("A connection to the chunk readers was refused: %s", shorten(error))
                continue
            with self._changed:
                if self._is_closed():  # closed while the planner connected: nothing would hang up later
                    planner.close()
                    return
                self._planner = planner
            try:
                while True:
                    self._obey(planner.recv())
            except (EOFError, OSError):
                pass
            except Exception:
                log.exception("The planner's orders for chunks cannot be read. The planner will connect again")
            with self._changed:
                self._planner = None
                self._queue.clear()
            planner.close()
            self._cancel(self._running_jobs())

    def _obey(self, message: ReadOrders) -> None:
        """Take the planner's orders. Cancel the jobs whose orders it has all dropped.

        A reader may hang, and nothing else would end it. The planner drops a window when its lease is over.
        """
        with self._changed:
            self._queue.obey(message)
            unwanted = [group for group, orders in self._jobs.items() if not self._queue.is_wanted(orders)]
        self._cancel(unwanted)

    # -- the readers

    def _work(self) -> None:
        """Take orders and run them, until `close`."""
        while orders := self._queue.take(_JOB_ROWS):
            with self._turns.turn(self._is_closed) as is_mine:
                if is_mine:
                    self._tell(Begun(tuple(order.read.window.id for order in orders)))
                    self._done(orders, self._run(orders))

    def _run(self, orders: tuple[ChunkOrder, ...]) -> tuple[Answer, ...]:
        """Run one job. Return the answers for the chunks that it has come to, which are the first of `orders`."""
        with self._changed:
            if not self._queue.is_wanted(orders):
                return ()
            self._jobs_begun += 1
            group = f"{self._group} {self._jobs_begun}"
            self._jobs[group] = orders
        try:
            self._context.setJobGroup(group, "incsnap: chunks of an incremental snapshot", True)
            # A job of an RDD costs 20 ms, a job of a DataFrame twice as much.
            job = self._context.parallelize(range(1), 1).mapPartitions(partial(self._read, orders))
            answers: Iterable[Answer] = job.collect()
        except Exception as error:  # noqa: BLE001 - a thread that dies would be one reader less
            # The executor is gone, or the job was cancelled. If anything is wrong with a chunk itself, its manifest
            # says so.
            answers = self._until_it_failed(orders, shorten(error))
        finally:
            with self._changed:
                del self._jobs[group]
        return tuple(answers)

    def _until_it_failed(self, orders: tuple[ChunkOrder, ...], error: str) -> Iterator[Answer]:
        """Yield the answers for a job that has failed.

        They are about the chunks that were read, and the next one, which the job may have failed of. The job has not
        come to the others.
        """
        for order in orders:
            window_id = order.read.window.id
            reading = None
            with suppress(Exception):  # the planner reads the manifest again
                reading = self._buffers.read_manifest(window_id)
            if reading is None or reading.error:
                yield Answer(window_id, error)
                return
            yield Answer(window_id)

    def _done(self, orders: tuple[ChunkOrder, ...], answers: tuple[Answer, ...]) -> None:
        """Send the planner the answers of a job. Orders that the job has not come to go to the front of the queue."""
        with self._changed:
            left = self._queue.finish(orders, {answer.window_id for answer in answers})
            self._tell(PutBack(left), *answers)

    def _tell(self, *messages: ReaderMessage) -> None:
        """Send messages to the planner, if one is connected."""
        with self._changed:
            if self._planner is not None:
                with suppress(OSError):
                    self._planner.send(messages)


def _read_on_executor(
    settings_json: str,
    root: str,
    log_level: int,
    many_machines: bool,
    orders: tuple[ChunkOrder, ...],
    _: Iterator[Any],
) -> Iterator[Answer]:
    """Read the chunks in a task of Spark, and return the answers for those that it came to."""
    settings = Settings.from_json(settings_json)
    set_access(settings.checkpoint_location, settings.store)
    process_log.set_up(log_level, settings.monitoring.log_format)
    if many_machines:
        require_shared(root)
    return iter([Answer(id_) for id_ in read_chunks(orders, settings, WindowBuffers(root))])
