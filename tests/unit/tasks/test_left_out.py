"""Records that are too large for Kafka: a bucket's batch leaves them out and writes them down, or the job stops."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pytest

from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.declarations.job import DEAD_LETTER
from incsnap.config.settings import OversizedChanges
from incsnap.envelope.record_images import DELETE, INSERT, TOMBSTONE, UPDATE
from incsnap.envelope.records import OPERATION
from incsnap.kafka import topic_limits
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.refusals import OversizedRecord, RecordsTooLarge, SinkRefused
from incsnap.kafka.topic_limits import TopicLimit
from incsnap.tasks import blocks
from incsnap.tasks.bucket import write_bucket
from incsnap.tasks.left_out import SizeRule
from tests.support.kafka import keyed, one_partition

TOPIC, TABLE, DIGEST, LETTERS = "p.d.t", "d.t", "2:d", "p.letters"
#: Most bytes of key and value for the client, and for the brokers.
CLIENT, BROKERS = 20_000, 10_000
Sent = tuple[str, bytes | None, bytes | None]


class Brokers:
    """Kafka's transactions in memory. A commit is refused if it contains a large record."""

    def __init__(self) -> None:
        self.committed: list[Sent] = []
        self.attempts = 0
        self.most = BROKERS
        self.fail = False

    def open(self, bucket: int, batch: int, digest: str) -> _Transaction:
        self.attempts += 1
        return _Transaction(self)


class _Transaction:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._sent: list[Sent] = []
        self._refused: list[OversizedRecord] = []

    def __enter__(self) -> _Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        pass

    def send(self, topics: Sequence[tuple[str, int]], sent: pa.RecordBatch) -> None:
        names = [topic for topic, count in topics for _ in range(count)]
        for at, (topic, key, value) in enumerate(
            zip(names, sent.column("key").to_pylist(), sent.column("value").to_pylist(), strict=True)
        ):
            size = len(key or b"") + len(value or b"")
            assert size <= CLIENT, "the client would have refused it"
            if size > self._brokers.most:
                number = sent.column("number")[at].as_py()
                self._refused.append(OversizedRecord(number, topic, size, by_client=False))
            self._sent.append((topic, key, value))

    def commit(self, place: str = "") -> None:
        if self._refused:
            error = RecordsTooLarge("too large")
            error.records = tuple(self._refused)
            raise error
        if self._brokers.fail:
            raise SinkRefused("the broker is away")
        self._brokers.committed += self._sent


@pytest.fixture
def buffers(tmp_path: Path) -> WindowBuffers:
    return WindowBuffers(str(tmp_path))


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    monkeypatch.setattr(topic_limits, "_known", {})
    monkeypatch.setattr(topic_limits, "_batch_bytes", {})
    monkeypatch.setattr(topic_limits, "_asked", lambda client, topic: TopicLimit(brokers.most))
    return brokers


def rule(mode: str = "fail", compression: str = "none", signal_table: str = "") -> SizeRule:
    client = ClientSettings("", {"message.max.bytes": str(CLIENT), "compression.type": compression})
    return SizeRule(client, OversizedChanges(mode=mode, topic=LETTERS), signal_table)


def task(*rows: blocks.BlockRow) -> Iterator[pa.RecordBatch]:
    yield blocks.to_arrow(rows, DIGEST)


def released(buffers: WindowBuffers, **sizes: int) -> blocks.BlockRow:
    """Write a window and return the block that releases it.

    Each argument is a row: its key and the bytes of its value.
    """
    file = buffers.write_window("w", {0: keyed(*((f'{{"id":"{key}"}}', "x" * size) for key, size in sizes.items()))})
    return blocks.release(4, 0, 0, blocks.ReleaseOrder(file, TABLE, TOPIC))


def change(key: str, size: int, table: str = TABLE, order: int = 1) -> blocks.BlockRow:
    return blocks.events(4, 0, order, TOPIC, table, keyed((key, "c" * size)))


def keys(brokers: Brokers) -> list[bytes | None]:
    return [key for _, key, _ in brokers.committed]


def test_rows_of_a_snapshot_that_are_too_large_are_left_out_and_written_down(
    buffers: WindowBuffers, brokers: Brokers
) -> None:
    window = released(buffers, a=10, b=CLIENT + 1, c=BROKERS + 1, d=BROKERS + 2, e=10)
    counts = write_bucket(task(window, change("f", 5)), buffers, brokers, one_partition, rule())

    assert keys(brokers) == [b'{"id":"a"}', b'{"id":"e"}', b"f"]
    assert (counts.reads, counts.events) == (2, 1)
    refused = buffers.refused.of_batch(4)
    assert [bytes.fromhex(each.key) for each in refused] == [b'{"id":"b"}', b'{"id":"c"}', b'{"id":"d"}']
    assert refused[0].reason == f"producer.max.request.size is {CLIENT}"
    assert f"max.message.bytes of topic {TOPIC} is {BROKERS}" in refused[1].reason
    # Once the limit is known, records that no compression helps are left out without another attempt.
    assert brokers.attempts == 2


def test_a_compressible_record_is_left_to_the_brokers(buffers: WindowBuffers, brokers: Brokers) -> None:
    window = released(buffers, a=BROKERS + 1, b=BROKERS + 2)
    write_bucket(task(window), buffers, brokers, one_partition, rule(compression="lz4"))

    assert brokers.attempts == 3
    assert len(buffers.refused.of_batch(4)) == 2


def test_a_repetition_leaves_the_same_rows_out_though_they_would_be_taken_now(
    buffers: WindowBuffers, brokers: Brokers
) -> None:
    window = released(buffers, a=10, b=BROKERS + 1)
    brokers.fail = True
    with pytest.raises(SinkRefused, match="away"):
        write_bucket(task(window), buffers, brokers, one_partition, rule())
    brokers.fail, brokers.most = False, 1 << 30
    write_bucket(task(window), buffers, brokers, one_partition, rule())

    assert keys(brokers) == [b'{"id":"a"}']
    assert len(buffers.refused.of_batch(4)) == 1


def test_records_left_out_of_another_plan_do_not_count(buffers: WindowBuffers, brokers: Brokers) -> None:
    window = released(buffers, a=5_000, b=BROKERS + 1)
    write_bucket(task(window), buffers, brokers, one_partition, rule())
    brokers.committed.clear()
    brokers.most = 1 << 30
    topic_limits._known.clear()
    write_bucket(iter([blocks.to_arrow([window], "2:other")]), buffers, brokers, one_partition, rule())

    assert keys(brokers) == [b'{"id":"a"}', b'{"id":"b"}']


@pytest.mark.parametrize("size", [CLIENT + 1, BROKERS + 1])
def test_a_change_that_is_too_large_stops_the_job_and_is_named(
    buffers: WindowBuffers, brokers: Brokers, size: int
) -> None:
    with pytest.raises(
        SinkRefused, match=rf"A change of d\.t is too large for Kafka: key 7, {size + 8} bytes"
    ) as caught:
        write_bucket(task(change('{"id":7}', size)), buffers, brokers, one_partition, rule())
    assert "incsnap.oversized.change.handling.mode" in caught.value.hint
    assert brokers.committed == []


def test_a_change_that_is_too_large_goes_to_the_topic_of_dead_letters_by_its_key(
    buffers: WindowBuffers, brokers: Brokers
) -> None:
    rows = (change("a", 5), change('{"id":7}', BROKERS + 1, order=2), change('{"id":7}', 6, order=3))
    counts = write_bucket(task(*rows), buffers, brokers, one_partition, rule(DEAD_LETTER))

    assert [(topic, key) for topic, key, _ in brokers.committed] == [
        (TOPIC, b"a"), (TOPIC, b'{"id":7}'), (LETTERS, b'{"id":7}'),
    ]  # fmt: skip
    assert counts.events == 2
    letter = json.loads(brokers.committed[-1][2] or b"")
    assert (letter["table"], letter["key"], letter["bytes"]) == (TABLE, "7", BROKERS + 9)
    # A repeated batch writes the dead letter again.
    brokers.committed.clear()
    write_bucket(task(*rows), buffers, brokers, one_partition, rule(DEAD_LETTER))
    assert len(brokers.committed) == 3


def test_a_change_that_is_left_out_is_not_counted(buffers: WindowBuffers, brokers: Brokers) -> None:
    large = "c" * (BROKERS + 1)
    of_one_block = keyed(("a", "c"), ("b", large), ("c", large), ("d", large), ("e", large), ("e", "c"))
    operations = pa.array([INSERT, INSERT, UPDATE, DELETE, TOMBSTONE, UPDATE], pa.int8())
    block = blocks.events(4, 0, 1, TOPIC, TABLE, of_one_block.append_column(OPERATION, operations))
    window = released(buffers, x=5, y=BROKERS + 1)
    counts = write_bucket(task(window, block), buffers, brokers, one_partition, rule(DEAD_LETTER))

    assert keys(brokers)[:3] == [b'{"id":"x"}', b"a", b"e"]
    assert (counts.events, counts.creates, counts.updates, counts.deletes) == (2, 1, 1, 0)
    assert counts.reads == 1


def test_records_of_the_signal_table_and_of_no_table_never_stop_the_job(
    buffers: WindowBuffers, brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    note = blocks.control(4, 0, 3, "notes", keyed(("n", "n" * (CLIENT + 1))))
    rows = (change("a", 5), change("s", CLIENT + 1, "d.signals", 2), note)
    write_bucket(task(*rows), buffers, brokers, one_partition, rule(signal_table="d.signals"))

    assert keys(brokers) == [b"a"]
    assert "A change of d.signals is too large for Kafka" in caplog.text
    assert "A record is too large for Kafka" in caplog.text


def test_records_that_are_too_large_only_together_stop_the_job_and_say_so(
    buffers: WindowBuffers, brokers: Brokers
) -> None:
    class Together(_Transaction):
        def commit(self, place: str = "") -> None:
            error = RecordsTooLarge("too large")
            error.records = (OversizedRecord(0, TOPIC, 6_000, False), OversizedRecord(1, TOPIC, 6_000, False))
            raise error

    brokers.open = lambda bucket, batch, digest: Together(brokers)  # type: ignore[method-assign]
    with pytest.raises(SinkRefused) as caught:
        write_bucket(task(change("a", 6_000), change("b", 6_000)), buffers, brokers, one_partition, rule())
    assert "producer.batch.size" in caught.value.hint
    # The job tried smaller batches first.
    assert topic_limits.batch_settings(rule().client) == {"batch.size": str(BROKERS)}
