"""Chunks are read by Spark jobs of their own, beside the stream: the driver's side.

The planner, a process of its own on the driver's machine, asks for chunks over a Unix socket (``chunk_readers``); as
many threads as there are readers take them, and each runs one job of one task at a time on the query's session. The
stream's batches never wait for a chunk: readers are fewer than the session's task slots, so that the stream always
finds one, and they give way to it on the processor (``tasks.chunk``).

Why not tasks of the stream's own batches: a batch waits for its slowest task, and with it all live changes (3.4 s
beside a snapshot; 0.3 s this way). Why not the planner's process: a cluster's executors read in parallel.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, Listener
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from incsnap.checkpoint.first_offset import require_shared
from incsnap.checkpoint.object_store import reach
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import shorten
from incsnap.planner.chunk_readers import Address, Answer, Ask, Begun, News, PutBack, hang_up
from incsnap.snapshot.failures import LOST_BEFORE_ALONE
from incsnap.spark import process_log
from incsnap.spark.owned_folders import sweep
from incsnap.spark.reader_turns import turns_of
from incsnap.tasks.chunk import read_chunks
from incsnap.tasks.partitions import ChunkOrder

log = logging.getLogger(__name__)

#: Rows that the chunks of one job should have together at most: with a small incremental.snapshot.chunk.size a job
#: reads several, because starting one costs 20-30 ms. It ends when its time is up (``tasks.chunk.JOB_SECONDS``), and
#: the rest goes back in front of those that wait.
_JOB_ROWS = 50_000
_PREFIX, _SOCKET = "incsnap-chunks-", "chunks"
#: What a session raises that has ended: AttributeError is pyspark's, of a context that was stopped.
_ENDED = (PySparkException, Py4JError, ConnectionError, AttributeError)


@dataclass(frozen=True, slots=True)
class ReaderPool:
    """``count``: chunks read at the same time. ``stream``: task slots that are left for the stream."""

    count: int
    stream: int

    @classmethod
    def of(cls, slots: int, most: int | None) -> ReaderPool:
        """Half of the session's task slots, or ``most`` of them (snapshot.max.threads), but never the last one."""
        count = max(1, min(most or slots // 2, slots - 1))
        return cls(count, max(1, slots - count))


class ReaderJobs:
    """The readers of one query; ``close`` it, or let it ``follow`` the query's end."""

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
        self._changed = threading.Condition()
        self._orders: deque[ChunkOrder] = deque()
        #: Of the jobs that run, by window; without those that were dropped meanwhile.
        self._taken: dict[str, ChunkOrder] = {}
        self._at_once, self._running = readers.count, 0
        self._planner: Connection | None = None
        self._closed = False
        sweep(_PREFIX, _SOCKET)
        self._folder = _folder()
        #: For the planner's report, beside the socket: the two processes share the folder, and it goes with the query.
        self.report_path = f"{self._folder}/report.json"
        key = secrets.token_bytes(32)
        self.address = Address(f"{self._folder}/{_SOCKET}", key.hex())
        self._listener = Listener(self.address.path, family="AF_UNIX", authkey=key)
        self._count, self._turns = readers.count, turns_of(self._context)
        self._turns.open(self._count)
        for target in (self._listen, *[self._work] * readers.count):
            threading.Thread(target=target, name="incsnap-chunk-reader", daemon=True).start()

    def follow(self, query: StreamingQuery) -> None:
        """Closes when the query has ended, however it did."""

        def wait() -> None:
            with suppress(*_ENDED):
                query.awaitTermination()
            self.close()

        threading.Thread(target=wait, name="incsnap-query-end", daemon=True).start()

    def close(self) -> None:
        """Ends what is being read; may be called twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._orders.clear()
            if self._planner is not None:
                hang_up(self._planner)
            self._changed.notify_all()
        self._turns.close(self._count)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
            # A thread that waits in accept() does not notice that its socket is closed.
            knock.settimeout(1.0)
            knock.connect(self.address.path)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._cancel()

    def _is_closed(self) -> bool:
        return self._closed

    def _cancel(self) -> None:
        with suppress(*_ENDED):
            self._context.cancelJobGroup(self._group)

    # -- the planner's wishes

    def _listen(self) -> None:
        """One planner at a time; a new one (the query was started again by Spark) begins with nothing ordered."""
        while not self._is_closed():
            try:
                planner = self._listener.accept()
            except (EOFError, ConnectionError):
                # Another job that looks whether this one lives (``sweep``), or a planner that died on its way.
                continue
            except Exception as error:  # noqa: BLE001 - a stranger without the key, or we are closing
                if not self._is_closed():
                    log.warning("Somebody could not be let in to the chunk readers: %s", shorten(error))
                continue
            with self._changed:
                if self._is_closed():  # while it was let in: nobody would ever hang up
                    planner.close()
                    return
                self._planner = planner
            try:
                while True:
                    self._obey(planner.recv())
            except (EOFError, OSError):
                pass
            except Exception:
                log.exception("The planner's wishes cannot be read; it will connect again")
            with self._changed:
                self._planner = None
                self._orders.clear()
                self._taken.clear()
            planner.close()
            self._cancel()

    def _obey(self, wish: Ask) -> None:
        with self._changed:
            waiting = (*self._orders, *wish.orders)
            self._orders = deque(order for order in waiting if order.read.window.id not in wish.dropped)
            for window_id in wish.dropped:
                self._taken.pop(window_id, None)
            self._at_once = wish.at_once
            self._changed.notify_all()

    # -- the readers

    def _work(self) -> None:
        with suppress(*_ENDED):
            self._context.setJobGroup(self._group, "incsnap: chunks of an incremental snapshot", True)
        while orders := self._take():
            with self._turns.turn(self._is_closed) as is_mine:
                if is_mine:
                    self._tell(Begun(tuple(order.read.window.id for order in orders)))
                    self._done(orders, self._run(orders))

    def _run(self, orders: tuple[ChunkOrder, ...]) -> tuple[Answer, ...]:
        """Return the answers for the chunks that the job has come to: the first ones of ``orders``."""
        try:
            # An RDD: its job costs 20 ms, that of a DataFrame twice as much.
            job = self._context.parallelize(range(1), 1).mapPartitions(partial(self._read, orders))
            answers: Iterable[Answer] = job.collect()
        except Exception as error:  # noqa: BLE001 - a thread that dies would take its place among the readers along
            # The executor is gone, or the job was cancelled; what is wrong with a chunk itself is in its manifest.
            answers = self._until_it_failed(orders, shorten(error))
        return tuple(answers)

    def _until_it_failed(self, orders: tuple[ChunkOrder, ...], error: str) -> Iterator[Answer]:
        """Give the answers for a job that has failed: of the chunks that were read, and of the one behind them, which
        it may have failed of. The job has not come to the others."""
        for order in orders:
            window_id = order.read.window.id
            reading = None
            with suppress(Exception):  # the planner looks again
                reading = self._buffers.read_manifest(window_id)
            if reading is None or reading.error:
                yield Answer(window_id, error)
                return
            yield Answer(window_id)

    def _take(self) -> tuple[ChunkOrder, ...]:
        """A fair share of what waits; () when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: (self._orders and self._running < self._at_once) or self._closed)
            share = -(-len(self._orders) // self._at_once)
            taken: list[ChunkOrder] = []
            rows = 0
            while self._orders and len(taken) < share and rows < _JOB_ROWS:
                if taken and _alone(self._orders[0]):
                    break
                taken.append(self._orders.popleft())
                rows += taken[-1].read.window.rows
                if _alone(taken[-1]):
                    break
            self._running += bool(taken)
            self._taken |= {order.read.window.id: order for order in taken}
            return tuple(taken)

    def _done(self, orders: tuple[ChunkOrder, ...], answers: tuple[Answer, ...]) -> None:
        """Tell the planner what a job has read; the orders that it has not come to are the next again."""
        answered = {answer.window_id for answer in answers}
        with self._changed:
            self._running -= 1
            kept = [order for order in orders if self._taken.pop(order.read.window.id, None) is order]
            left = [order for order in kept if order.read.window.id not in answered]
            self._orders.extendleft(reversed(left))
            self._tell(PutBack(tuple(order.read.window.id for order in left)), *answers)
            self._changed.notify_all()

    def _tell(self, *news: News) -> None:
        with self._changed:
            if self._planner is not None:
                with suppress(OSError):
                    self._planner.send(news)


def _alone(order: ChunkOrder) -> bool:
    """Whether the chunk must be read by itself: it may be what kills its reader, and others must not be lost with it;
    or its SELECT takes long, and they would wait for it."""
    return order.read.window.lost >= LOST_BEFORE_ALONE or order.read.window.doublings > 0


def _folder() -> str:
    """Private, and with a path short enough for a socket (104 bytes on some systems)."""
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    if len(folder) < 90:
        return folder
    os.rmdir(folder)
    return tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp")


def _read_on_executor(
    settings_json: str,
    root: str,
    log_level: int,
    many_machines: bool,
    orders: tuple[ChunkOrder, ...],
    _: Iterator[Any],
) -> Iterator[Answer]:
    settings = Settings.from_json(settings_json)
    reach(settings.checkpoint_location, settings.store)
    process_log.set_up(log_level, settings.monitoring.log_format)
    if many_machines:
        require_shared(root)
    return iter([Answer(id_) for id_ in read_chunks(orders, settings, WindowBuffers(root))])
