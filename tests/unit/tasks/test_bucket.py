"""The work of a sink task on its blocks; a list stands in for Kafka."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pytest

from incsnap.checkpoint import progress
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.progress import BucketCounts, Progress, add_batch, forget_progress, read_progress
from incsnap.checkpoint.windows import CheckpointDamaged, WindowBuffers
from incsnap.config.load import from_properties
from incsnap.errors import SinkError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import SinkRefused
from incsnap.kafka.transaction import BucketWriter
from incsnap.spark.sink import SinkOptions
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from tests.support.kafka import keyed, one_partition, records
from tests.support.properties import NEEDED

TOPIC, TABLE, DIGEST = "p.d.t", "d.t", "2:d"


class Ledger:
    """Kafka's transactions in memory: the records that were committed, and the last batch of each bucket."""

    def __init__(self) -> None:
        self.committed: list[tuple[str, bytes | None, bytes | None]] = []
        self.batches: dict[int, int] = {}
        self.opened = 0
        self.fail_commit = False

    def open(self, bucket: int, batch: int, digest: str) -> LedgerTransaction | None:
        self.opened += 1
        return LedgerTransaction(self, bucket, batch) if self.batches.get(bucket, -1) < batch else None


class LedgerTransaction:
    """A transaction of one bucket: `commit` adds its records to the ledger."""

    def __init__(self, ledger: Ledger, bucket: int, batch: int) -> None:
        self.ledger, self.bucket, self.batch = ledger, bucket, batch
        self.sent: list[tuple[str, bytes | None, bytes | None]] = []

    def __enter__(self) -> LedgerTransaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.sent = []

    def send(self, topics: Sequence[tuple[str, int]], sent: pa.RecordBatch) -> None:
        names = [topic for topic, count in topics for _ in range(count)]
        self.sent += zip(names, sent.column("key").to_pylist(), sent.column("value").to_pylist(), strict=True)

    def commit(self, place: str = "") -> None:
        if self.ledger.fail_commit:
            raise SinkError("the broker is away")
        self.ledger.committed += self.sent
        self.ledger.batches[self.bucket] = self.batch


@pytest.fixture
def buffers(tmp_path: Path) -> WindowBuffers:
    return WindowBuffers(str(tmp_path))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def task(*rows: blocks.BlockRow) -> Iterator[pa.RecordBatch]:
    """Yield the rows as Spark may give them to a task: in any order, in record batches of any size."""
    mixed = list(rows)
    random.Random(len(mixed)).shuffle(mixed)
    yield blocks.to_arrow(mixed[:1], DIGEST)
    yield blocks.to_arrow([], DIGEST)
    yield blocks.to_arrow(mixed[1:], DIGEST)


def values(ledger: Ledger) -> list[bytes | None]:
    return [value for _, _, value in ledger.committed]


def test_events_are_sent_in_the_order_of_their_blocks(buffers: WindowBuffers, ledger: Ledger) -> None:
    rows = [blocks.events(1, 0, i, TOPIC, TABLE, keyed(("k", f"{i}a"), ("k", f"{i}b"))) for i in range(12)]
    counts = write_bucket(task(*rows), buffers, ledger, one_partition)
    assert values(ledger) == [f"{i}{x}".encode() for i in range(12) for x in "ab"]
    assert counts == BucketCounts(events=24, bytes=24 + sum(len(v or b"") for v in values(ledger)))


def test_a_task_without_blocks_opens_no_transaction(buffers: WindowBuffers, ledger: Ledger) -> None:
    assert write_bucket(iter(()), buffers, ledger, one_partition) == BucketCounts()
    rows = [blocks.held_tables(1, 0, 0, [TABLE]), blocks.events(1, 0, 1, TOPIC, TABLE, keyed())]
    assert write_bucket(task(*rows), buffers, ledger, one_partition) == BucketCounts()
    assert ledger.opened == 0


def test_released_rows_go_first_without_those_an_event_has_overtaken(buffers: WindowBuffers, ledger: Ledger) -> None:
    file = buffers.write_window("w", {0: keyed(("a", "ra"), ("b", "rb"), ("c", "rc"), ("d", "rd"), ("e", "re"))})
    buffers.write_discards(2, 0, {TABLE: pa.array([b"e"], pa.binary())})
    buffers.write_discards(3, 0, {"d.other": pa.array([b"a"], pa.binary())})
    rows = [
        blocks.events(4, 0, 0, TOPIC, TABLE, keyed(("b", "ub"))),
        # An update of a row's key from c to f is a deletion, a tombstone and a creation.
        blocks.events(4, 0, 1, TOPIC, TABLE, records((0, b"c", b"dc"), (0, b"c", None), (0, b"f", b"cf"))),
        # An event of another table does not overtake rows of this table.
        blocks.events(4, 0, 2, "p.d.other", "d.other", keyed(("d", "xd"))),
        blocks.control(4, 0, 3, "notes", keyed(("a", "note"))),
        blocks.release(4, 0, 4, blocks.ReleaseOrder(file, TABLE, TOPIC, (2, 4))),
    ]
    counts = write_bucket(task(*rows), buffers, ledger, one_partition)
    assert values(ledger) == [b"ra", b"rd", b"ub", b"dc", None, b"cf", b"xd", b"note"]
    assert (counts.reads, counts.discarded, counts.events, counts.skipped) == (2, 3, 4, 0)


def test_only_the_parts_that_were_named_are_sent(buffers: WindowBuffers, ledger: Ledger) -> None:
    file = buffers.write_window("w", {0: keyed(*[(name, f"r{name}") for name in "abcdefg"])}, parts=3)
    for batch, parts in ((1, (0, 1)), (2, (1, 3))):
        write_bucket(
            task(blocks.release(batch, 0, 0, blocks.ReleaseOrder(file, TABLE, TOPIC, parts=parts))),
            buffers,
            ledger,
            one_partition,
        )
    assert values(ledger) == [f"r{name}".encode() for name in "abcdefg"]


def test_a_window_of_which_nothing_is_left_opens_no_transaction(buffers: WindowBuffers, ledger: Ledger) -> None:
    file = buffers.write_window("w", {0: keyed(("a", "ra"))})
    buffers.write_discards(2, 0, {TABLE: pa.array([b"a"], pa.binary())})
    counts = write_bucket(
        task(blocks.release(3, 0, 0, blocks.ReleaseOrder(file, TABLE, TOPIC, (2, 3)))), buffers, ledger, one_partition
    )
    assert (counts.reads, counts.discarded, ledger.opened) == (0, 1, 0)
    # Bucket 5 has no rows of the window, so its discards, which do not exist, are not read.
    write_bucket(
        task(blocks.release(3, 5, 0, blocks.ReleaseOrder(file, TABLE, TOPIC, (2, 3)))), buffers, ledger, one_partition
    )


def test_held_tables_leave_their_keys_behind_before_the_commit(buffers: WindowBuffers, ledger: Ledger) -> None:
    rows = [
        blocks.events(2, 0, 0, TOPIC, TABLE, keyed(("a", "1"), ("a", "2"), ("b", "3"))),
        blocks.events(2, 0, 1, "p.d.u", "d.u", keyed(("x", "1"))),
        blocks.held_tables(2, 0, 2, [TABLE, "d.quiet"]),
    ]
    ledger.fail_commit = True
    with pytest.raises(SinkError, match="broker is away"):
        write_bucket(task(*rows), buffers, ledger, one_partition)
    assert buffers.read_discards(2, 0, TABLE).to_pylist() == [b"a", b"b"]
    assert buffers.read_discards(2, 0, "d.quiet").to_pylist() == []
    assert buffers.read_discards(2, 0, "d.u").to_pylist() == []
    assert ledger.committed == []


def test_a_replay_is_skipped_counts_the_same_and_repairs_lost_discards(buffers: WindowBuffers, ledger: Ledger) -> None:
    rows = [blocks.events(2, 0, 0, TOPIC, TABLE, keyed(("a", "1"))), blocks.held_tables(2, 0, 1, [TABLE])]
    first = write_bucket(task(*rows), buffers, ledger, one_partition)
    buffers.forget_before(3)
    second = write_bucket(task(*rows), buffers, ledger, one_partition)
    assert values(ledger) == [b"1"]
    assert buffers.read_discards(2, 0, TABLE).to_pylist() == [b"a"]
    assert (first.skipped, second.skipped, second.events) == (0, 1, first.events)


def test_blocks_of_two_buckets_in_one_task_are_refused(buffers: WindowBuffers, ledger: Ledger) -> None:
    rows = [blocks.events(1, bucket, 0, TOPIC, TABLE, keyed(("a", "1"))) for bucket in (0, 1)]
    with pytest.raises(SinkError, match="blocks of 2 batches or buckets"):
        write_bucket(task(*rows), buffers, ledger, one_partition)


def test_a_released_window_that_is_gone_stops_the_job(buffers: WindowBuffers, ledger: Ledger) -> None:
    release = blocks.release(1, 0, 0, blocks.ReleaseOrder("w/gone.arrow", TABLE, TOPIC))
    with pytest.raises(CheckpointDamaged):
        write_bucket(task(release), buffers, ledger, one_partition)


def test_spark_may_widen_the_columns(buffers: WindowBuffers, ledger: Ledger) -> None:
    batch = blocks.to_arrow([blocks.events(1, 0, 0, TOPIC, TABLE, keyed(("a", "1")))], DIGEST)
    wide = pa.schema([f if f.name != "block" else pa.field("block", pa.large_binary()) for f in batch.schema])
    write_bucket(iter([pa.Table.from_batches([batch]).cast(wide).to_batches()[0]]), buffers, ledger, one_partition)
    assert values(ledger) == [b"1"]


def test_progress_adds_a_batch_once(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert read_progress(root).last_batch == -1
    add_batch(root, "job", 0, [BucketCounts(events=2, bytes=10), BucketCounts(reads=3, discarded=1)])
    add_batch(root, "job", 0, [BucketCounts(events=2, bytes=10)])
    add_batch(root, "job", 1, [BucketCounts(events=1, skipped=1)])
    progress = read_progress(root)
    assert (progress.batches, progress.events, progress.reads, progress.discarded) == (2, 3, 3, 1)
    assert (progress.skipped, progress.bytes, progress.last_batch) == (1, 10, 1)


def test_counters_of_an_older_release_are_gone_on_from(tmp_path: Path) -> None:
    root = str(tmp_path)
    older = {"batches": 4, "events": 7, "reads": 3, "discarded": 1, "bytes": 9, "skipped": 0, "last_batch": 3}
    Files(root).write_json("progress.json", older)
    assert read_progress(root) == Progress(4, 7, 3, 1, 9, last_batch=3)
    add_batch(root, "job", 4, [BucketCounts(events=3, creates=2, updates=1), BucketCounts(events=1, deletes=1)])
    progress = read_progress(root)
    assert (progress.batches, progress.events) == (5, 11)
    assert (progress.creates, progress.updates, progress.deletes) == (2, 1, 1)


def test_progress_that_another_process_has_written_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path)
    processes: list[dict[tuple[str, str], Progress]] = [{}, {}]
    for batch, process in enumerate((0, 0, 1, 1, 0)):
        monkeypatch.setattr(progress, "_written", processes[process])
        add_batch(root, "job", batch, [BucketCounts(events=1)])
        # The process that begins the query again commits the batch again.
        monkeypatch.setattr(progress, "_written", processes[1 - process])
        add_batch(root, "job", batch, [BucketCounts(events=1)])
    assert (read_progress(root).batches, read_progress(root).events) == (5, 5)


def test_another_job_in_the_folder_counts_from_the_beginning(tmp_path: Path) -> None:
    root = str(tmp_path)
    for batch in range(3):
        add_batch(root, "job", batch, [BucketCounts(events=1)])
    forget_progress(Files(root))
    for batch in range(2):
        add_batch(root, "other", batch, [BucketCounts(reads=1)])
    assert (read_progress(root).events, read_progress(root).reads) == (0, 2)


def test_options_travel_and_show_no_secret() -> None:
    settings = from_properties({**NEEDED, "producer.sasl.password": "s3cret"}).settings
    options = SinkOptions(settings=settings.to_json(), job_id="job")
    assert "s3cret" in options.settings
    assert SinkOptions.model_validate_json(options.model_dump_json()) == options
    assert "s3cret" not in repr(options)
    writer = BucketWriter(ClientSettings("k:9092", settings.kafka.producer), "p", "job", None)
    assert "s3cret" not in repr(pickle.loads(pickle.dumps(writer)))


def test_a_refusal_stays_a_refusal_across_processes() -> None:
    error = pickle.loads(pickle.dumps(SinkRefused("too large", "raise it")))
    assert (type(error), error.resumable, error.hint) == (SinkRefused, False, "raise it")


def test_a_block_of_many_tables_is_sent_and_overtakes_like_their_own(buffers: WindowBuffers, ledger: Ledger) -> None:
    file = buffers.write_window("w", {0: keyed(("a", "ra"), ("b", "rb"), ("x", "rx"))})
    runs = [blocks.Run("p.d.u", "d.u", 1), blocks.Run(TOPIC, TABLE, 2)]
    together = keyed(("b", "ub"), ("a", "1"), ("a", "2"))
    rows = [
        blocks.release(4, 0, 0, blocks.ReleaseOrder(file, TABLE, TOPIC)),
        blocks.held_tables(4, 0, 1, ["d.u", TABLE]),
        blocks.tables(4, 0, 2, runs, together),
        blocks.events(4, 0, 3, TOPIC, TABLE, keyed(("x", "3"))),
    ]
    counts = write_bucket(task(*rows), buffers, ledger, one_partition)
    assert [(topic, value) for topic, _, value in ledger.committed] == [
        (TOPIC, b"rb"),
        ("p.d.u", b"ub"),
        (TOPIC, b"1"),
        (TOPIC, b"2"),
        (TOPIC, b"3"),
    ]
    assert (counts.events, counts.reads, counts.discarded) == (4, 1, 2)
    assert sorted(buffers.read_discards(4, 0, TABLE).to_pylist()) == [b"a", b"x"]
    assert buffers.read_discards(4, 0, "d.u").to_pylist() == [b"b"]


def test_dropped_records_of_many_tables_are_not_sent_and_overtake(buffers: WindowBuffers, ledger: Ledger) -> None:
    file = buffers.write_window("w", {0: keyed(("a", "ra"), ("b", "rb"), ("c", "rc"))})
    runs = [blocks.Run("p.d.u", "d.u", 1), blocks.Run(TOPIC, TABLE, 3)]
    together = keyed(("x", "1"), ("a", "2"), ("b", "3"), ("b", "4"))
    dropping = together.set_column(0, together.schema.field(0), pa.array([-1, 0, -1, 0], pa.int32()))
    release = blocks.release(4, 0, 0, blocks.ReleaseOrder(file, TABLE, TOPIC))
    counts = write_bucket(task(release, blocks.tables(4, 0, 2, runs, dropping)), buffers, ledger, one_partition)
    assert [(topic, value) for topic, _, value in ledger.committed] == [(TOPIC, b"rc"), (TOPIC, b"2"), (TOPIC, b"4")]
    assert (counts.events, counts.reads, counts.discarded) == (2, 1, 2)
