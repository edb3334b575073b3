"""The job in miniature, around the real engine, offset, GTID sets and rules: planner, chunk readers, buckets, a topic.

Every batch's offset goes through JSON. A batch may be tried several times, each try doing a part of the work, as
after crashes. Chunks are read by readers of their own at any time after they were planned: they may crash alone, be
asked twice for one window after a restart, answer after their lease or never. What is a rule of the algorithm is a
field of ``Strategy``, so that a test can put a wrong one in its place.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from incsnap.events import PreparedXa, StreamPosition
from incsnap.snapshot.commands import Command, DataCollection, Execute, Pause, Resume, Stop
from incsnap.snapshot.engine import BatchFacts, Plan, drive, next_context
from incsnap.snapshot.keys import Key
from incsnap.snapshot.notifications import QUARANTINED
from incsnap.snapshot.offset import Layout, Offset, PlannedRead, PlannedRelease
from incsnap.snapshot.questions import Answer, Describe, Described, Failed, MaximumKey, Question
from incsnap.snapshot.sizing import Limits
from incsnap.snapshot.window import RULES, Reading, Rules
from incsnap.tables import TableId
from tests.property.server_model import TABLES, Event, Row, Server, Xa
from tests.property.topic_model import Record, Topic, Violation

BUCKETS = 2


def keys_of(event: Event) -> set[Row]:
    """Keys whose rows an event overtakes: both of a key-changing update."""
    return {key for key in (event.key, event.new_key) if key}


def end_of_binlog(server: Server) -> tuple[str, int]:
    return server.position(len(server.log))


@dataclass(frozen=True)
class Strategy:
    """The rules: ``engine`` decides in the planner, the others in readers and sink."""

    engine: Rules = RULES
    high: Callable[[Server], tuple[str, int]] = end_of_binlog
    keys: Callable[[Event], set[Row]] = keys_of
    held_tables: Callable[[Offset], frozenset[TableId]] = Offset.held_tables
    discards: bool = True
    fenced_maximum: bool = True
    skips_done: bool = True
    xa_at_prepare: bool = False
    remembers_prepared: bool = True
    heeds_forms: bool = True


@dataclass
class File:
    """What a chunk reader leaves: rows in their versions, in parts, the table's shape, the form of the records."""

    parts: list[dict[Row, int]]
    shape: int
    form: str


@dataclass
class Job:
    """One run. ``live`` ends by asking for all tables again, so that the topic must become the tables."""

    seed: int
    strategy: Strategy = field(default_factory=Strategy)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.server = Server(self.random)
        for _ in range(self.random.randint(0, 8)):
            self.server.step()
        self.topic = Topic(BUCKETS)
        self.done = [0] * BUCKETS
        self.files: dict[str, File] = {}
        #: Chunks that readers were asked for, and in which form; manifests that the planner has yet to see.
        self.asks: list[tuple[str, PlannedRead]] = []
        self.manifests: dict[str, Reading] = {}
        #: Windows that were taken back because they were outdated, and of how many of them parts were sent.
        self.taken_back = self.taken_back_half_sent = 0
        #: What identities and records are made by: the settings of this life.
        self.form = "a"
        self.discards: dict[tuple[int, int, TableId], set[tuple[str, Row]]] = {}
        self.now_ms = 0
        self.signals = 0
        self.asked: dict[str, Execute] = {}
        self.stopped: dict[str, set[TableId]] = {}
        self.signalled_at: dict[str, tuple[int, int]] = {}
        self.quarantined: set[Row] = set()
        self.faulty = self.random.random() < 0.5
        self.failing_over = self.random.random() < 0.3
        self.greed = self.random.choice((0.2, 0.5, 0.9))
        self.poison: Row | None = (self.random.randint(0, 8),) if self.random.random() < 0.1 else None
        parallelism = self.random.randint(1, 3)
        self.limits = Limits(
            parallelism,
            self.random.randint(parallelism, 6),
            self.random.randint(1, 3),
            self.random.randint(3, 6),
            lease_ms=30_000,
            held_batches=self.random.randint(2, 8),
        )
        start = self.server.cut(self.random.randint(0, len(self.server.log)))
        #: Events of prepared transactions, in files that offsets name.
        self.parts: dict[str, tuple[Event, ...]] = {}
        prepared = self._kept(self.server.prepared_at(self.server.index[start.delivered]))
        self.offset = Offset("job", 0, start, Layout(BUCKETS, {"t": BUCKETS}), prepared=prepared)
        self.ends = {0: start}
        before = self.server.tables_at(self.server.index[start.delivered], 0)
        self.shape_before = {table: before[table].shape for table in TABLES}
        self.overtaken: list[Record] = []
        self.in_another_form: list[Record] = []

    # -- the run

    def live(self) -> None:
        """Signals, crashes, pauses, stops, failovers at random; then quiet, and everything is asked for once more."""
        self.server.commit(self._execute(list(TABLES)))
        for _ in range(self.random.randint(8, 16)):
            for _ in range(self.random.randint(0, 6)):
                self.server.step()
            if self.random.random() < 0.25:
                self.server.commit(self._any_command())
            if self.failing_over and self.random.random() < 0.3:
                self.server.fail_over()
            self.batch()
        self.server.commit(Resume("resume-at-last"))
        self.run_until_quiet()
        self.server.commit(self._execute(list(TABLES)))
        self.run_until_quiet()
        while self.server.executed < len(self.server.log):
            self.server.show()
            self.server.execute()
        self.batch(all_of_it=True)
        self.topic.check(self)
        if self.overtaken:
            raise Violation("overtaken", f"{self.overtaken[0]} was sent, though an event of its key lay in its window")
        if self.in_another_form:
            raise Violation("form", f"{self.in_another_form[0]} was sent as it was before the settings changed")

    def run_until_quiet(self) -> None:
        self.batch(all_of_it=True)
        for _ in range(600):
            if not self.offset.snapshot.active:
                return
            for _ in range(self.random.randint(0, 4)):
                self.server.step()
            self.batch(all_of_it=self.random.random() < 0.7)
        raise Violation("stuck", f"the snapshot does not end: {self.offset.snapshot}")

    def batch(self, *, all_of_it: bool = False) -> None:
        """One micro-batch, with the crashes it meets."""
        self.now_ms += self.random.choice((0, 100, 1_000, 20_000))
        start = self.offset
        plan = self._plan(start, all_of_it)
        if self.random.random() < 0.1:  # a crash before Spark wrote the offset: what was planned never was
            self.server.step()
            self._start_with_any_settings()
            plan = self._plan(start, all_of_it)
        end = plan
        written = json.dumps(end.dump())
        if Offset.load(json.loads(written)) != end:
            raise Violation("offset", "dump and load give another offset")
        if len(written) > 20_000:
            raise Violation("offset", f"{len(written)} bytes")
        self._note(end)
        self._ask(end.reads(self.strategy.engine))
        died = False
        while True:
            crashes = self.random.random() < 0.25
            start, end = Offset.load(json.loads(json.dumps(start.dump()))), Offset.load(json.loads(written))
            for bucket in range(BUCKETS):
                self._read_some()
                if not (crashes and self.random.random() < 0.5):
                    self._send(bucket, start, end)
            if not crashes:
                break
            died = died or self.random.random() < 0.5
        if died:
            # The readers' driver has died with the planner; a task that it had started may still answer.
            self.asks = [ask for ask in self.asks if self.random.random() < 0.2]
            self.manifests.clear()
            self._start_with_any_settings()
            if not self._outdated(end):
                self._ask(end.unread(self.strategy.engine))
        self._read_some()
        self.offset = end
        self.ends[end.batch] = end.stream

    def _start_with_any_settings(self) -> None:
        """What was planned is run by what it was planned with all the same."""
        if self.random.random() < 0.3:
            self.form = self.random.choice("abc")

    def _outdated(self, start: Offset) -> bool:
        return self.strategy.heeds_forms and start.form not in ("", self.form)

    def _ask(self, reads: Iterable[PlannedRead]) -> None:
        self.asks += [(self.form, read) for read in reads]

    # -- planner

    def _plan(self, start: Offset, all_of_it: bool) -> Offset:
        transactions, events = self._any_cut(start, all_of_it)
        stream = self.server.cut(transactions, events)
        arrived, prepared = self._arrived(start, stream)
        readings, self.manifests = self.manifests, {}
        outdated = self._outdated(start) or self.random.random() < 0.01
        if outdated:
            readings = {}
            self.taken_back += len(start.snapshot.in_flight)
            self.taken_back_half_sent += sum(window.sent > 0 for window in start.snapshot.in_flight)
        facts = BatchFacts(
            batch=start.batch + 1,
            end=stream,
            server_uuid=self.server.server_uuid(),
            now_ms=self.now_ms,
            readings=readings,
            commands=tuple(event.command for _, event in arrived if event.command),
            changes=tuple(event.change() for _, event in arrived if event.kind in ("truncate", "ddl")),
            limits=self.limits,
            outdated=outdated,
            release_bytes=self.random.choice((0, 10, 30, 1_000)),
            behind=not all_of_it and self.random.random() < 0.1,
        )
        plan: Plan = drive(next_context(start.snapshot, facts, self.strategy.engine), self._answer)
        if len(plan.context.in_flight) > self.limits.windows or len(plan.context.planned) > self.limits.parallelism:
            raise Violation("limits", str(plan.context.in_flight))
        if plan.context.paused and plan.context.planned:
            raise Violation("paused", "chunks are planned while paused")
        signals = {"source": start.batch}
        kept = self._kept(prepared) if self.strategy.remembers_prepared else ()
        return Offset(
            "job", start.batch + 1, stream, start.layout, plan.context, signals, prepared=kept, form=self.form
        )

    def _arrived(self, start: Offset, end: StreamPosition) -> tuple[list[tuple[int, Event]], dict[str, Xa]]:
        """What a batch sends, (transaction, event), and what is prepared at its end. Of the log nothing before the
        batch is looked at: the server does not send it again.
        """
        held = {each.xid: Xa("prepare", each.xid, self.parts[each.parts[0]]) for each in start.prepared}
        sent: list[tuple[int, Event]] = []
        delivered = self.server.index[end.delivered]
        for number, low, high in self.server.spans(start.stream, end):
            xa = self.server.xa.get(number)
            if xa is None:
                sent += [(number, event) for event in self.server.log[number][low:high]]
            elif xa.verb == "prepare" and number < delivered:
                held[xa.xid] = xa
                sent += [(number, event) for event in xa.events] if self.strategy.xa_at_prepare else []
            elif xa.verb != "prepare" and xa.xid in held:
                if xa.verb == "commit" and not self.strategy.xa_at_prepare:
                    sent += [(number, event) for event in held[xa.xid].events[low:high]]
                if number < delivered:
                    del held[xa.xid]
        return sent, held

    def _kept(self, prepared: dict[str, Xa]) -> tuple[PreparedXa, ...]:
        self.parts |= {xa.xid: xa.events for xa in prepared.values()}
        return tuple(PreparedXa(xid, "", parts=(xid,)) for xid in prepared)

    def _any_cut(self, start: Offset, all_of_it: bool) -> tuple[int, int]:
        """Where the batch ends: often short of what has been sent, sometimes inside a transaction."""
        done, last = self.server.index[start.stream.delivered], len(self.server.log)
        if all_of_it:
            return last, 0
        whole = last if self.random.random() < self.greed else self.random.randint(done, min(done + 2, last))
        if self.random.random() < 0.4 and last > done:
            whole = min(whole, last - 1)
            least = start.stream.events_done if whole == done else 0
            return whole, self.random.randint(least, len(self.server.log[whole]))
        return (whole, 0) if whole > done else (done, start.stream.events_done)

    def _answer(self, question: Question) -> Answer:
        if self.random.random() < 0.3:
            self.server.step()
        if self.faulty and self.random.random() < 0.05:
            return Failed("the server has gone away")
        table = self.server.view[question.table]
        if isinstance(question, Describe):
            if self.strategy.fenced_maximum:  # asked just before the maximum: its wait would do for both
                self.server.wait_for_executed(question.fence)
            names = ("k", "l")[: TABLES[question.table]]
            return Described(names, f"{names} {table.key_shape}")
        if isinstance(question, MaximumKey):
            if self.strategy.fenced_maximum:
                self.server.wait_for_executed(question.fence)
            return text_key(max(table.rows)) if table.rows else None
        lower, upper = row_key(question.after), row_key(question.maximum)
        keys = sorted(key for key in table.rows if lower < key <= upper)
        return text_key(keys[question.rows - 1]) if len(keys) >= question.rows else None

    def _note(self, end: Offset) -> None:
        """Remembers what this batch obeyed, for the checks at the end."""
        for number, event in self.server.between(self.offset.stream, end.stream):
            if isinstance(event.command, Execute):
                self.signalled_at[event.command.id] = (number, event.version)
            if isinstance(event.command, Stop):
                for signal, asked in self.asked.items():
                    if signal in self.signalled_at:
                        gone = {c.table for c in asked.collections if event.command.stops(c.table)}
                        self.stopped.setdefault(signal, set()).update(gone)
                        self.topic.forbid(end.batch, signal, gone)
        for notification in end.snapshot.notifications:
            if notification.type == QUARANTINED and self.poison:
                self.quarantined.add(self.poison)

    # -- chunk readers

    def _read_some(self) -> None:
        """Readers go on, each at its own pace."""
        asks, self.asks = self.asks, []
        for form, read in asks:
            if self.random.random() < 0.4:
                self.asks.append((form, read))
            elif not (self.faulty and self.random.random() < 0.05):  # else nothing is ever heard of it
                self.manifests.setdefault(read.window.id, self._read(form, read))

    def _read(self, form: str, read: PlannedRead) -> Reading:
        if self.failing_over and self.random.random() < 0.1:
            self.server.fail_over()
        if self.faulty and self.random.random() < 0.1:
            kind = self.random.choice(("stalled", "timeout", "too_large", "deadlock", "unreachable", "lost"))
            return Reading(error=f"{kind}: by chance")
        self.server.wait_for_executed(read.fence)
        for _ in range(self.random.randint(0, 2)):
            self.server.step()
        table = self.server.view[read.chunk.table]
        lower, upper = row_key(read.chunk.lower), row_key(read.chunk.upper)
        rows = {key: version for key, version in table.rows.items() if lower < key <= upper}
        shape = table.shape
        for _ in range(self.random.randint(0, 2)):
            self.server.step()
        high_file, high_pos = self.strategy.high(self.server)
        file = f"{read.window.id}/{len(self.files)}"
        parts = self.random.randint(1, 3)
        keys = sorted(rows)
        cut = [{key: rows[key] for key in keys[part::parts]} for part in range(parts)]
        self.files[file] = File(cut, shape, form)
        return Reading(
            rows=len(rows),
            bytes=9 * len(rows),
            seconds=0.1,
            high_file=high_file,
            high_pos=high_pos,
            server_uuid=self.server.server_uuid(),
            error="row: it is poison" if self.poison in rows and read.chunk.table.table == "a" else "",
            file=file,
            record_bytes=10 * len(rows),
            parts=parts,
        )

    # -- sink

    def _send(self, bucket: int, start: Offset, end: Offset) -> None:
        if self.done[bucket] >= end.batch and self.strategy.skips_done:
            return
        arrived, _ = self._arrived(start, end.stream)
        overtaken: dict[TableId, set[tuple[str, Row]]] = {table: set() for table in TABLES}
        for _, event in arrived:
            keys = self.strategy.keys(event)
            overtaken[event.table] |= {(end.form, key) for key in keys if bucket_of(key) == bucket}
        for table in self.strategy.held_tables(end):
            self.discards[end.batch, bucket, table] = overtaken[table]
        records = []
        for release in end.releases(self.strategy.engine):
            records += self._released(release, bucket, end, overtaken[release.window.table])
        for transaction, event in arrived:
            records += [each for each in records_of(transaction, event) if each.key is None or self._own(each, bucket)]
        self.topic.append(bucket, end.batch, records)
        self.done[bucket] = end.batch

    def _released(
        self, release: PlannedRelease, bucket: int, end: Offset, overtaken: set[tuple[str, Row]]
    ) -> list[Record]:
        window = release.window
        assert window.reading is not None
        file = self.files[window.reading.file]
        if self.strategy.discards:
            recorded = (self.discards.get((past, bucket, window.table), set()) for past in release.discards)
            overtaken = overtaken.union(*recorded)
        else:
            overtaken = set()
        records = [
            Record(window.table, "r", key, version, signal=window.signal)
            for part in release.parts
            for key, version in file.parts[part].items()
            if bucket_of(key) == bucket and (file.form, key) not in overtaken
        ]
        self.in_another_form += records if file.form != end.form else []
        self._check_released(release, end, records, file.shape)
        return records

    def _check_released(self, release: PlannedRelease, end: Offset, records: list[Record], shape: int) -> None:
        """I5, told from the log alone: since the chunk's batch no event of a sent row's key; no TRUNCATE and no DDL
        either, up to this batch's end or, where parts were sent before, up to its beginning: rows go in front."""
        table = release.window.table
        since = self.server.between(self.ends[release.window.batch], end.stream)
        keys = {key for _, event in since if event.table == table for key in keys_of(event)}
        until = self.ends[end.batch - 1] if release.window.sent else end.stream
        before = self.server.between(self.ends[release.window.batch], until)
        emptied = any(event.kind == "truncate" and event.table == table for _, event in before)
        self.overtaken += [record for record in records if emptied or record.key in keys]
        altered = sum(e.kind == "ddl" and e.table == table for _, e in self.server.between(self.ends[0], until))
        if shape != self.shape_before[table] + altered:
            raise Violation("shape", f"a row of {table} in its shape {shape} is sent in batch {end.batch}")

    @staticmethod
    def _own(record: Record, bucket: int) -> bool:
        return record.key is not None and bucket_of(record.key) == bucket

    # -- signals

    def _any_command(self) -> Command:
        dice = self.random.random()
        if dice < 0.6:
            return self._execute(self.random.sample(list(TABLES), self.random.randint(1, 2)))
        self.signals += 1
        name = f"s{self.signals}"
        if dice < 0.75:
            return Pause(name)
        if dice < 0.88:
            return Resume(name)
        return Stop(name, self.random.choice((None, *(frozenset({table}) for table in TABLES))))

    def _execute(self, tables: list[TableId]) -> Execute:
        self.signals += 1
        command = Execute(f"e{self.signals}", tuple(DataCollection(table) for table in tables))
        self.asked[command.id] = command
        return command


def bucket_of(key: Row) -> int:
    return sum(key) % BUCKETS


def text_key(row: Row) -> Key:
    return tuple(map(str, row))


def row_key(key: Key | None) -> Row:
    """Rows compare as numbers; () is below all."""
    return tuple(int(value or 0) for value in key) if key is not None else ()


def records_of(transaction: int, event: Event) -> list[Record]:
    if event.kind == "truncate":
        return [Record(event.table, "t", None, event.version, transaction)]
    if event.kind == "rekey":
        return [
            Record(event.table, "d", event.key, event.version, transaction),
            Record(event.table, "c", event.new_key, event.version, transaction),
        ]
    op = {"put": "u", "delete": "d"}.get(event.kind)
    return [Record(event.table, op, event.key, event.version, transaction)] if op else []
