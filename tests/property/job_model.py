"""A whole job between a modelled server and a modelled Kafka. Everything between the two is the product's code.

Engine, offsets, answers, chunk task, window files, records, bucket, sink and transactions run as they are. They are
called directly instead of by Spark, and their files are in memory. Every batch's offset goes through JSON. A batch may
be tried several times, and each try does a part of the work, as after crashes. Readers read chunks at any time after
these were planned. A reader may crash alone, outlive the driver that asked it, answer after its lease, or never answer.

`_arrived` stands for the tail of the binlog, which has property tests of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pyarrow as pa

from incsnap.checkpoint.key_lists import lists_of
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, recall, remember
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.errors import ServerUnreachable, SinkError
from incsnap.events import PreparedXa, StreamPosition
from incsnap.kafka import transaction
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.producer_cache import ProducerCache
from incsnap.kafka.transaction import BucketWriter
from incsnap.planner.answers import Answers
from incsnap.planner.batch import batch_parts
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.chunk_readers import Answer, Begun, PutBack, ReaderMessage, ReadOrders
from incsnap.planner.chunk_results import ChunkResults, delete_spent
from incsnap.planner.ended_unlogged import EndedUnlogged, XaRecovery
from incsnap.snapshot.commands import ChosenRows, Command, DataCollection, Execute, Pause, Resume, SetThrottle, Stop
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.engine import BatchFacts, Plan, drive, next_context
from incsnap.snapshot.notifications import COMPLETED, QUARANTINED
from incsnap.snapshot.offset import Offset, PlannedRelease, TopicLayout, digest
from incsnap.snapshot.questions import Answer as PlanningAnswer
from incsnap.snapshot.questions import BesideQuestion, Failed, NotYet
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.throttle import ROWS
from incsnap.snapshot.window import Window
from incsnap.tables import TableId
from incsnap.tasks import blocks
from incsnap.tasks import chunk as chunk_task
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.partitions import ChunkOrder, ReadyPart
from tests.property.event_records import (
    BUCKETS,
    CHAINS,
    DROPPED,
    PARTITIONS,
    PLAIN,
    SETTINGS,
    TOPICS,
    consumed,
    encoded,
)
from tests.property.kafka_model import Broker, Died
from tests.property.model_options import ModelOptions, random_options
from tests.property.mysql_model import KEYS, ServerConnection, read_chunk
from tests.property.server_model import TABLES, Event, Row, Server, Xa, keys_of
from tests.property.topic_model import Record, Topic, Violation
from tests.support.files_in_memory import FilesInMemory
from tests.support.kafka import one_partition


def overtaken_by(event: Event) -> set[Row]:
    """Return the keys whose rows an event overtakes. An update of a key has two."""
    return {key for key in (event.key, event.new_key) if key}


class Readers:
    """The chunk readers of one planner process: its orders, and the messages for it."""

    def __init__(self) -> None:
        self.orders: list[ChunkOrder] = []
        self.happened: list[ReaderMessage] = []

    def order(self, message: ReadOrders) -> None:
        self.orders = [order for order in self.orders if order.read.window.id not in message.dropped] + [
            *message.orders
        ]

    def messages(self) -> list[ReaderMessage]:
        happened, self.happened = self.happened, []
        return happened

    def close(self) -> None: ...


class LateAnswers:
    """A `BoundarySearch` without its thread.

    It finds an answer when a question is asked or when it is asked again, and never gives an answer at the first call.
    `is_slow` says by chance whether a table's questions are asked here, and not in the batch's own time.
    """

    is_able = True

    def __init__(
        self, find: Callable[[BesideQuestion], PlanningAnswer], random_: random.Random, is_slow: Callable[[], bool]
    ) -> None:
        self._find = find
        self._random = random_
        self._is_slow = is_slow
        #: Question -> the equal question that was asked first, with its low watermark.
        self._first: dict[BesideQuestion, BesideQuestion] = {}
        self._waiting: set[BesideQuestion] = set()
        self._answers: dict[BesideQuestion, PlanningAnswer] = {}

    def is_asked(self, question: BesideQuestion) -> bool:
        return question in self._waiting or question in self._answers

    def is_slow(self, _table: TableId) -> bool:
        return self._is_slow()

    def took(self, table: TableId, seconds: float) -> None: ...

    def __call__(self, question: BesideQuestion) -> PlanningAnswer:
        if question in self._answers:
            return self._answers.pop(question)
        first = self._first.setdefault(question, question)
        is_asked_again = question in self._waiting
        if not is_asked_again and self._random.random() < 0.3:
            self._waiting.add(question)
            return NotYet()
        try:
            answer = self._find(first)
        except ServerUnreachable as error:
            answer = Failed(error.message)
        self._waiting.discard(question)
        if is_asked_again:
            return answer
        self._answers[question] = answer
        return NotYet()


class Job:
    """A run of a job.

    At its end `live` asks for all tables again, so that the topic must become equal to the tables.
    """

    def __init__(
        self,
        random_: random.Random,
        options: ModelOptions | None = None,
        *,
        chain: str = PLAIN,
        lists_keys: bool = False,
    ) -> None:
        """`chain`: the transforms of one table, by their name in `CHAINS`.

        `lists_keys`: some signals choose rows by a list of keys, and keys of table a without a row become deletions.
        """
        self.random = random_
        self.lists_keys = lists_keys
        #: Signal -> the rows that it chooses.
        self.listed: dict[str, frozenset[Row]] = {}
        self.chain = chain
        self.settings = CHAINS[chain]
        self.options = options = options or random_options(random_)
        self.server = Server(random_, options.commits, options.ddl_share, options.xa_share)
        for _ in range(self.random.randint(0, 8)):
            self.server.step()
        self.topic = Topic(BUCKETS)
        self.relaid = False
        self.now_ms = 0
        self.looks = 0.0
        self.signals = 0
        self.asked: dict[str, Execute] = {}
        self.stopped: dict[str, set[TableId]] = {}
        self.signalled_at: dict[str, tuple[int, int]] = {}
        self.quarantined: set[Row] = set()
        self.limits = Limits(
            options.parallelism,
            options.parallelism + options.more_windows,
            options.chunk_rows,
            options.chunk_rows + options.more_rows,
            held_batches=options.held_batches,
            small_rows=options.small_rows,
            small_windows=2 if options.small_rows else 0,
            boundary_rows=0 if options.boundaries_beside else 1 << 30,
        )
        start = self.server.cut(self.random.randint(0, len(self.server.log)))
        #: Name of a stored part -> events of a prepared transaction.
        self.parts: dict[str, tuple[Event, ...]] = {}
        prepared = self._kept(self.server.prepared_at(self.server.index[start.delivered]))
        self.offset = Offset("job", 0, start, TopicLayout(BUCKETS, PARTITIONS), prepared=prepared)
        #: Batch -> offset, as Spark wrote it.
        self.offsets = {0: self.offset}
        before = self.server.tables_at(self.server.index[start.delivered], 0)
        self.shape_before = {table: before[table].shape for table in TABLES}
        self.overtaken: list[Record] = []
        self.files = FilesInMemory()
        self.buffers = WindowBuffers("/nowhere")
        self.buffers._files = self.files
        #: Number of a reading that found rows -> its window.
        self.read: dict[int, Window] = {}
        self.connection: Any = ServerConnection(self.server, faulty=options.faulty, poison=options.poison)
        self.broker = Broker(BUCKETS, self.random, deadly=options.deadly)
        self.writer = BucketWriter(ClientSettings("modelled:9092"), "t", "job", None)
        #: The producers of each of Spark's workers.
        self.workers = [ProducerCache(), ProducerCache()]
        #: Tasks of readers whose driver has died. Nobody gets their results.
        self.strays: list[ChunkOrder] = []
        self.readers = Readers()
        self._restart_planner()
        #: (module, name) -> the model that replaces it: the borders of the product.
        self.edges: dict[tuple[Any, str], Any] = {
            (transaction, "TransactionalProducer"): self.broker.producer,
            (transaction, "committed_batch"): self.broker.committed_batch,
            (chunk_task, "connect"): lambda _: self.connection,
            (chunk_task, "_sessions"): {},
            (chunk_task, "read_chunk"): read_chunk,
            (chunk_task, "time"): SimpleNamespace(time=lambda: 0.0, monotonic=lambda: 0.0, time_ns=lambda: 0),
            # For such small blocks, waking Arrow's compression threads takes the most time.
            (blocks, "_COMPRESSED"): pa.ipc.IpcWriteOptions(),
        }

    # -- the run

    def live(self) -> None:
        """Run batches with random signals, crashes, pauses, stops and failovers.

        Then ask for everything once more, and check.
        """
        with ExitStack() as stack:
            for (module, name), model in self.edges.items():
                stack.enter_context(patch.object(module, name, model))
            self._live()

    def _live(self) -> None:
        self.server.commit(self._execute(list(TABLES)))
        for _ in range(self.options.batches):
            for _ in range(self.random.randint(0, 6)):
                self.server.step()
            if self.random.random() < self.options.signals:
                self.server.commit(self._any_command())
            if self.lists_keys and self.random.random() < 0.5:
                self.server.commit(self._execute_listed(self.random.choice(list(TABLES))))
            if self.options.failing_over and self.random.random() < 0.3:
                self.server.fail_over()
            self.batch()
        self.server.commit(Resume("resume-at-last"))
        self.server.commit(SetThrottle("lift-at-last", ((ROWS, 0),)))
        self.run_until_quiet()
        self.server.commit(self._execute(list(TABLES)))
        self.run_until_quiet()
        while self.server.executed < len(self.server.log):
            self.server.show()
            self.server.execute()
        self.strays.clear()  # each of their statements may move the server on
        while self.server.index[self.offset.stream.delivered] < len(self.server.log):
            self.batch(all_of_it=True)
        self._read_topics()
        if self.chain != DROPPED:  # otherwise the topics lack the events
            self.topic.check(self)
        self._check_prepared()
        if self.overtaken:
            raise Violation("overtaken", f"{self.overtaken[0]} was sent, though an event of its key lay in its window")

    def _check_prepared(self) -> None:
        """Raise Violation if the offset keeps an XA transaction that has ended."""
        for _ in range(50):
            if all(each.xid in self.server.prepared for each in self.offset.prepared):
                return
            self.batch(all_of_it=True)
        raise Violation("leaked", f"{self.offset.prepared} are in the offset, though the server has ended some")

    def run_until_quiet(self) -> None:
        self.batch(all_of_it=True)
        for _ in range(600):
            if not self.offset.snapshot.active:
                return
            for _ in range(self.random.randint(0, 4)):
                self.server.step()
            self.batch(all_of_it=self.random.random() >= 0.3)
        raise Violation("stuck", f"the snapshot does not end: {self.offset.snapshot}")

    def batch(self, *, all_of_it: bool = False) -> None:
        """Run one micro-batch, with the crashes that happen in it."""
        self.now_ms += self.random.choice((1_000, 100, 0, 20_000))
        start = self.offset
        end = self._plan(start, all_of_it)
        while self.random.random() < 0.1:  # a crash before Spark wrote the offset
            self._restart_planner()
            self.server.step()
            end = recall(self.files, KeptOffsets(self.files), start) or self._plan(start, all_of_it)
        written = json.dumps(end.dump())
        loaded = Offset.load(json.loads(written))
        if loaded != end:
            raise Violation("offset", "dump and load give another offset")
        if len(written) > 20_000:
            raise Violation("offset", f"{len(written)} bytes")
        self._note(end)
        self.offsets[end.batch] = end = loaded
        done: set[int] = set()
        while len(done) < BUCKETS:
            done = set()
            crashes = self.random.random() < 0.25
            tasks = self._tasks(start, end)
            for bucket in range(BUCKETS):
                self._read_some()
                if not (crashes and self.random.random() < 0.5) and self._send(bucket, tasks[bucket]):
                    done.add(bucket)
            if len(done) < BUCKETS and self.random.random() < 0.5:
                self._restart_planner()
        self._read_some()
        self.offset = end
        if self.random.random() >= 0.1:  # otherwise the planner dies before this
            delete_spent(self.buffers, end)
            self.chosen.lists.forget(lists_of(end.snapshot), end.batch)

    # -- planner

    def _restart_planner(self) -> None:
        """Start a new planner. The readers' driver dies with the old one, but a task that it had started may go on."""
        self.strays += [order for order in self.readers.orders if self.random.random() < 0.2]
        self.readers = Readers()
        self.ended = EndedUnlogged()
        self.results = ChunkResults(
            self.readers, self.buffers, 2, lambda table: (TOPICS[table],), clock=lambda: self.now_ms / 100
        )
        self.boundaries = LateAnswers(
            lambda asked: Answers(self.connection, SETTINGS.columns, chosen=self.chosen)(asked),
            self.random,
            lambda: self.options.boundaries_beside and self.random.random() < 0.5,
        )
        self.chosen = ChosenRowsOf(self.settings, self.files)
        self.cleaned = False

    def _plan(self, start: Offset, all_of_it: bool) -> Offset:
        """Return the end of the next batch, as `Planner.plan` does, after writing it down for Spark."""
        while True:
            try:
                end = self._planned(start, all_of_it)
            except ServerUnreachable:
                self._restart_planner()
                continue
            if self.random.random() < 0.05:
                self._restart_planner()
                continue
            remember(self.files, KeptOffsets(self.files), end, PlannedWith("", {}))
            self.results.order(end)
            return end

    def _planned(self, start: Offset, all_of_it: bool) -> Offset:
        if not self.cleaned:
            self.cleaned = True
            self.buffers.delete_orphans([window.id for window in start.snapshot.in_flight])
        self.results.make_way(self.random.random() < 0.5)
        self._look(start)
        transactions, events = self._any_cut(start, all_of_it)
        stream = self.server.cut(transactions, events)
        arrived, prepared = self._arrived(start, stream)
        outdated = self.random.random() < 0.01
        self.relaid |= outdated
        facts = BatchFacts(
            batch=start.batch + 1,
            end=stream,
            server_uuid=self.server.server_uuid(),
            now_ms=self.now_ms,
            results=self.results.arrived(start),
            commands=tuple(event.command for _, event in arrived if event.command),
            changes=tuple(event.change() for _, event in arrived if event.kind in ("truncate", "ddl")),
            limits=self.limits,
            outdated=outdated,
            release_bytes=self.random.choice((1_000, 30, 10, 0)) * 40,
            has_backlog=not all_of_it and self.random.random() < 0.1,
        )
        answers = Answers(self.connection, SETTINGS.columns, self.boundaries, chosen=self.chosen, clock=lambda: 0.0)
        plan: Plan = drive(next_context(start.snapshot, facts), answers)
        context = plan.context
        flying, planned = self._counted(context, context.in_flight), self._counted(context, context.planned)
        limits = self.limits
        if flying[0] > limits.windows or planned[0] > limits.parallelism or flying[1] > limits.small_windows:
            raise Violation("limits", str(plan.context.in_flight))
        if plan.context.paused and plan.context.planned:
            raise Violation("paused", "chunks are planned while paused")
        signals = {"source": start.batch}
        kept = self._kept(prepared)
        ended = self.ended.among(kept, replace(stream, server_uuid=self.server.server_uuid()))
        kept = tuple(each for each in kept if each not in ended)
        return Offset("job", start.batch + 1, stream, start.layout, plan.context, signals, prepared=kept)

    def _counted(self, context: SnapshotContext, windows: Iterable[Window]) -> tuple[int, int]:
        """Return how many of the windows are large, and how many are a whole table of few rows."""
        maxima = {scan.number: scan.maximum for scan in context.scans}
        small = [
            window.rows <= self.limits.small_rows and window.lower is None and window.upper == maxima[window.scan]
            for window in windows
        ]
        return small.count(False), small.count(True)

    def _arrived(self, start: Offset, end: StreamPosition) -> tuple[list[tuple[int, Event]], dict[str, Xa]]:
        """Return the (transaction, event) pairs that a batch sends, and the transactions that are prepared at its end.

        The server does not send again what lies before the batch, so the function does not look at it.
        """
        prepared = {each.xid: Xa("prepare", each.xid, self.parts[each.parts[0]]) for each in start.prepared}
        sent: list[tuple[int, Event]] = []
        delivered = self.server.index[end.delivered]
        for number, low, high in self.server.spans(start.stream, end):
            xa = self.server.xa.get(number)
            if xa is None:
                sent += [(number, event) for event in self.server.log[number][low:high]]
            elif xa.verb == "prepare" and number < delivered:
                prepared[xa.xid] = xa
            elif xa.verb != "prepare" and xa.xid in prepared:
                if xa.verb == "commit":
                    sent += [(number, event) for event in prepared[xa.xid].events[low:high]]
                if number < delivered:
                    del prepared[xa.xid]
        return sent, prepared

    def _kept(self, prepared: dict[str, Xa]) -> tuple[PreparedXa, ...]:
        self.parts |= {xa.xid: xa.events for xa in prepared.values()}
        return tuple(PreparedXa(xid, self.server.gtid_of(xid), parts=(xid,)) for xid in prepared)

    def _look(self, start: Offset) -> None:
        """Ask which prepared transactions the server still has.

        The server removes one as soon as its end is in the binlog.
        """
        server = self.server
        asked = XaRecovery(
            lambda: server.delivered[server.executed],
            lambda: set(server.prepared),
            lambda: server.position(len(server.log)),
        )
        self.looks += 10.0
        self.ended.ask_server(start.prepared, server.server_uuid(), asked, self.looks)

    def _any_cut(self, start: Offset, all_of_it: bool) -> tuple[int, int]:
        """Return the end of the batch: often before the end of the binlog, sometimes inside a transaction."""
        done, last = self.server.index[start.stream.delivered], len(self.server.log)
        if all_of_it:
            return last, 0
        whole = last if self.random.random() < self.options.greed else self.random.randint(done, min(done + 2, last))
        if self.random.random() < 0.4 and last > done:
            whole = min(whole, last - 1)
            least = start.stream.events_done if whole == done else 0
            return whole, self.random.randint(least, len(self.server.log[whole]))
        return (whole, 0) if whole > done else (done, start.stream.events_done)

    def _note(self, end: Offset) -> None:
        """Remember the signals that this batch obeyed, for the checks at the end."""
        for number, event in self.server.between(self.offset.stream, end.stream):
            if isinstance(event.command, Execute):
                self.signalled_at[event.command.id] = (number, event.version)
            if isinstance(event.command, Stop):
                for signal, asked in self.asked.items():
                    if signal in self.signalled_at:
                        gone = {c.table for c in asked.collections if event.command.stops(asked.id, c.table)}
                        self.stopped.setdefault(signal, set()).update(gone)
                        self.topic.forbid(end.batch, signal, gone)
        for notification in end.snapshot.notifications:
            if notification.type == QUARANTINED and self.options.poison:
                self.quarantined.add(self.options.poison)
            if notification.type == COMPLETED:  # its bucket may commit long before the batch's other buckets
                assert notification.id not in {release.window.signal for release in end.snapshot.released}

    # -- chunk readers

    def _read_some(self) -> None:
        """Let each reader go on, or wait."""
        strays, self.strays = self.strays, []
        for order in strays:
            if self.random.random() < 0.5:
                self._read(order)
            else:
                self.strays.append(order)
        orders, self.readers.orders = self.readers.orders, []
        for order in orders:
            window_id = order.read.window.id
            if self.random.random() < 0.4:
                self.readers.orders.append(order)
                if self.random.random() < 0.2:  # a Spark job has begun it, and may have ended before it was read
                    self.readers.happened.append(Begun((window_id,)))
                    if self.random.random() < 0.5:
                        self.readers.happened.append(PutBack((window_id,)))
            # its task is lost, with an error or without any answer
            elif self.options.faulty and self.random.random() < 0.1:
                self.readers.happened.append(Begun((window_id,)))
                if self.random.random() < 0.5:
                    self.readers.happened.append(Answer(window_id, "the task was lost"))
            else:
                self._read(order)
                self.readers.happened.append(Answer(window_id))

    def _read(self, order: ChunkOrder) -> None:
        if self.options.failing_over and self.random.random() < 0.1:
            self.server.fail_over()
        with patch.object(chunk_task, "PART_BYTES", self.random.choice((300, 600, 1_200))):
            chunk_task.read_together([order], self.settings, self.buffers)
        result = self.buffers.read_manifest(order.read.window.id)
        if result is not None and not result.error:
            self.read[self.connection.identified] = order.read.window

    # -- sink

    def _tasks(self, start: Offset, end: Offset) -> list[Any]:
        """Return the rows of each bucket, as a try of the batch gets them."""
        name = digest(end.dump())
        tail = SimpleNamespace(slices=lambda *_, **__: [])
        ready = batch_parts(self.settings, 2, (), cast(Any, tail), cast(Any, None), (), start, end)
        rows = [row for part in ready if isinstance(part, ReadyPart) for row in part.rows]
        arrived, _ = self._arrived(start, end.stream)
        for number, (bucket, table, of_rows, records) in enumerate(encoded(arrived, chain=self.chain)):
            order = 1 << 32 | number
            if of_rows:
                rows.append(blocks.events(end.batch, bucket, order, TOPICS[table], str(table), records))
            else:
                rows.append(blocks.control(end.batch, bucket, order, TOPICS[table], records))
        return [blocks.to_arrow([row for row in rows if row[1] == bucket], name) for bucket in range(BUCKETS)]

    def _send(self, bucket: int, task: Any) -> bool:
        """Send a bucket's rows in a worker. Return False if the task or its worker has died."""
        worker = self.random.randrange(len(self.workers))
        try:
            with patch.object(transaction, "PRODUCERS", self.workers[worker]):
                write_bucket(iter([task]), self.buffers, self.writer, one_partition)
        except Died:
            self.workers[worker] = ProducerCache()
            return False
        except SinkError as error:
            if not error.resumable:
                raise Violation("damaged", str(error)) from error
            return False
        return True

    # -- checks at the end

    def _read_topics(self) -> None:
        """Read everything that was committed, as a consumer, and check each batch's snapshot rows."""
        for bucket, log in enumerate(self.broker.log):
            for sent in log:
                received = [record for topic, records in sent.records for record in consumed(topic, records)]
                rows = [
                    replace(each, signal=self.read[each.reading].signal) if each.op in "rx" else each
                    for each in received
                ]
                self.topic.append(bucket, sent.batch, rows)
                self._check_released(sent.batch, [row for row in rows if row.op in "rx"])

    def _check_released(self, batch: int, rows: list[Record]) -> None:
        """Check the snapshot rows of a batch by the binlog alone (I5).

        Since the batch that planned the chunk, no event has the key of a sent row. No TRUNCATE or DDL of the table lies
        between that batch and the end of this batch. If parts were sent before, it may lie in this batch: rows go
        before its events.
        """
        end = self.offsets[batch]
        releases = {release.window.id: release for release in end.releases()}
        for row in rows:
            self._check_row(releases[self.read[row.reading].id], end, row)

    def _check_row(self, release: PlannedRelease, end: Offset, row: Record) -> None:
        table, began = row.table, self.offsets[release.window.batch].stream
        since = self.server.between(began, end.stream)
        until = self.offsets[end.batch - 1].stream if release.window.sent else end.stream
        emptied = any(
            event.kind == "truncate" and event.table == table for _, event in self.server.between(began, until)
        )
        if emptied or any(event.table == table and row.key in overtaken_by(event) for _, event in since):
            self.overtaken.append(row)
        before = self.server.between(self.offsets[0].stream, until)
        altered = sum(event.kind == "ddl" and event.table == table for _, event in before)
        if row.op == "r" and row.shape != self.shape_before[table] + altered:
            raise Violation("shape", f"{row} is sent in batch {end.batch}, whose table was altered {altered} times")

    # -- signals

    def _any_command(self) -> Command:
        share = self.random.random()
        if share < 0.6:
            return self._execute(self.random.sample(list(TABLES), self.random.randint(1, 2)))
        self.signals += 1
        name = f"s{self.signals}"
        if share < 0.75:
            return Pause(name)
        if share < 0.85:
            return Resume(name)
        if share < 0.9:
            return SetThrottle(name, ((ROWS, self.random.choice((0, 1, 3, 1_000))),))
        return Stop(name, self.random.choice((None, *(frozenset({table}) for table in TABLES))))

    def _execute_listed(self, table: TableId) -> Execute:
        """Return a signal for some keys of a table, whether there are such rows or not.

        Keys of table b are the first column of its primary key, so no key of it becomes a deletion.
        """
        self.signals += 1
        keys = self.random.sample(keys_of(table), self.random.randint(1, 6))
        given = json.dumps([{"k": key[0]} for key in keys])
        chosen = ChosenRows(given, deletes=len(KEYS[table]) == 1)
        command = Execute(f"l{self.signals}", (DataCollection(table, chosen=chosen),))
        first = {key[0] for key in keys}
        self.listed[command.id] = frozenset(row for row in keys_of(table) if row[0] in first)
        self.asked[command.id] = command
        return command

    def _execute(self, tables: list[TableId]) -> Execute:
        self.signals += 1
        command = Execute(f"e{self.signals}", tuple(DataCollection(table) for table in tables))
        self.asked[command.id] = command
        return command
