"""The transaction of one bucket in one batch. It sends the bucket's records and commits the batch's number with them.

A batch that Spark runs again finds its number committed and does nothing. A task that outlives its batch (a zombie) is
fenced by the bucket's transactional id before it can commit. The order of the steps makes this safe: fence first, then
read the number, then write. If the number was read first, a zombie could commit between the reading and the fencing.

A producer that has committed an earlier batch in this process skips both steps. If it is not fenced, the committed
number is still its own (`kept`).

Fencing cannot tell another start with the same `topic.prefix` from a zombie. The announcements on the control topic
can: a writer that opens a producer reads them before and after it fences (`docs/adr/0018-one-start-of-a-prefix.md`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError

from incsnap.errors import SinkError
from incsnap.kafka.announcement_log import announcement_log
from incsnap.kafka.announcements import OwnStart, refuse_another
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import (
    CommittedBatch,
    committed_batch,
    control_record,
    control_topic,
    group_of,
    transactional_id,
)
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.producer_cache import CachedProducer, ProducerCache
from incsnap.kafka.refusals import FENCED, ClientError, RecordsTooLarge, SinkRefused, sink_error
from incsnap.kafka.retries import STEP_SECONDS, with_retries
from incsnap.kafka.topic_limits import batch_settings

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
#: Seconds in which a kept producer must begin. After that a new producer is opened, with the full patience.
_KEPT_SECONDS = 5.0
#: Seconds more in which the coordinator must answer a commit whose last records were taken after `STEP_SECONDS`.
_COORDINATOR_SECONDS = 10.0
#: The kept producers of this process. A worker of Spark runs the tasks of many batches.
PRODUCERS = ProducerCache()


@dataclass(frozen=True, slots=True)
class BucketWriter:
    """The settings with which the transactions of all buckets are opened. It can be pickled and holds no connection."""

    client: ClientSettings  #: settings of the Kafka client
    prefix: str  #: topic.prefix
    #: A job is the life of one checkpoint. Its batches are numbered without gaps, and a new job counts anew.
    job_id: str
    start: OwnStart | None = None  #: the start that writes; None if there can be no other start

    def open(self, bucket: int, batch: int, digest: str) -> Transaction | None:
        """Return a transaction that has begun, or None if the bucket has committed this batch before.

        `digest` distinguishes the batch from any other batch with its number. Raise SinkError if a retry may help, and
        SinkRefused if not. Raise PrefixTaken if another start owns the prefix.
        """
        kept = PRODUCERS.take(self.owner(bucket), before=batch)
        if kept is not None and (transaction := self._go_on(kept, bucket, batch, digest)) is not None:
            return transaction
        producer = TransactionalProducer(self._settings(bucket))
        try:
            transaction = Transaction(self, producer, bucket, batch, digest)
            # This look spares a newer start the fencing. Safety comes from the second look.
            transaction.step("looking for another start", self.look)
            transaction.step("fencing older writers", producer.init_transactions)
            transaction.step("looking for another start", self.look)
            reading = partial(committed_batch, self.client, self.prefix, self.job_id, bucket)
            done = transaction.step("reading the committed batch", reading)
            if done is not None and done.batch >= batch:
                _refuse_another(done, bucket, batch, digest)
                _log.info("Bucket %d has committed batch %d already: skipped", bucket, batch)
                producer.close()
                return None
            transaction.begin()
        except BaseException:
            producer.close()
            raise
        return transaction

    def _go_on(self, kept: CachedProducer, bucket: int, batch: int, digest: str) -> Transaction | None:
        """Return a transaction of a kept producer.

        If there is any doubt about the producer, close it and return None.
        """
        transaction = Transaction(self, kept.producer, bucket, batch, digest)
        try:
            transaction.begin(_KEPT_SECONDS)
        except BaseException as error:
            kept.producer.close()
            if not isinstance(error, SinkError):
                raise
            # This happens whenever another worker wrote the bucket last, so it is logged at debug level.
            _log.debug("The producer of batch %d is closed, a new one is opened: %s", kept.batch, error)
            return None
        return transaction

    def fence(self, bucket: int) -> None:
        """Fence every producer of the bucket, so that their open transactions can never be committed.

        Raise SinkError if that fails.
        """
        with TransactionalProducer(self.client.for_producer(transactional_id(self.prefix, bucket))) as producer:
            Transaction(self, producer, bucket, 0, "").step("fencing older writers", producer.init_transactions)

    def look(self, seconds: float) -> None:
        """Raise PrefixTaken if another start owns the prefix, and ClientError if the announcements cannot be read."""
        if self.start is not None:
            refuse_another(announcement_log(self.client, self.prefix).owner(seconds), self.start)

    @property
    def timeout_seconds(self) -> float:
        """Seconds after which brokers end a transaction."""
        return int(self._settings(0)["transaction.timeout.ms"]) / 1000

    def owner(self, bucket: int) -> object:
        """Return the key under which `PRODUCERS` keeps the bucket's producer.

        The key differs for another bucket, another start and other settings.
        """
        return self.job_id, self.start, tuple(sorted(self._settings(bucket).items()))

    def _settings(self, bucket: int) -> dict[str, str]:
        """Return the settings of the bucket's producer."""
        return {**self.client.for_producer(transactional_id(self.prefix, bucket)), **batch_settings(self.client)}


class Transaction:
    """An open transaction of one bucket. As a context manager it aborts unless `commit` has succeeded."""

    def __init__(
        self, writer: BucketWriter, producer: TransactionalProducer, bucket: int, batch: int, digest: str
    ) -> None:
        self._writer = writer
        self._producer = producer
        self._bucket = bucket
        self._batch = batch
        self._digest = digest
        self._open = True
        #: Whether a fenced producer means that another start may own the prefix. While a kept producer begins, being
        #: fenced mostly means that another worker had the bucket. A new producer looks for another start anyway.
        self._looks = False
        self._began = 0.0  #: when the transaction has begun, by the monotonic clock

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.abort()

    def begin(self, patience: float = STEP_SECONDS) -> None:
        """Begin with the batch's number as an offset. So a fenced producer learns of it before any record is copied."""
        topic = control_topic(self._writer.prefix)
        group = group_of(self._writer.prefix, self._writer.job_id)
        self.step("beginning", lambda _: self._producer.begin(), patience)
        self.step(
            "sending the batch number as an offset",
            lambda seconds: self._producer.send_offset(topic, self._bucket, self._batch, self._digest, group, seconds),
            patience,
        )
        self._looks = True
        self._began = time.monotonic()

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch) -> None:
        """Queue records (`envelope.records.RECORDS`), which `commit` delivers at the latest.

        `topics` tells how many records go to each topic, one topic after the other. Raise SinkError if Kafka refuses a
        record.
        """
        where = topics[0][0] if len(topics) == 1 else f"{len(topics)} topics"
        self.step(f"writing to {where}", lambda seconds: self._producer.send(topics, records, seconds))

    def commit(self, place: str = "") -> None:
        """Commit the records, the batch number and its fall-back record together.

        `place` is the JSON of the batch's beginning and end, from which another job can continue. The producer is kept
        for the next batch, unless one of its requests may still be on its way. A late copy of the commit would commit
        the beginning of the next batch.
        """
        topic = control_topic(self._writer.prefix)
        key, value = control_record(self._writer.job_id, self._bucket, self._batch, self._digest, place)
        self.step("writing the batch number", lambda _: self._producer.send_one(topic, self._bucket, key, value))
        self.step("committing", self._producer.commit, goes_on=self._waits_for_fewer())
        self._open = False
        if self._producer.has_lost_answers:
            self._producer.close()
        else:
            PRODUCERS.keep(self._writer.owner(self._bucket), self._producer, self._batch)

    def abort(self) -> None:
        """Abort the transaction; do nothing after `commit`.

        Never raise an error: the next writer's fence ends an open transaction.
        """
        if self._open:
            self._open = False
            with contextlib.suppress(ClientError):
                self._producer.abort(STEP_SECONDS)
            self._producer.close()

    def _waits_for_fewer(self) -> Callable[[], float]:
        """Return a function that returns the seconds that a commit has more, 0 if brokers have taken no record since
        the last call.

        A slow line takes more than `STEP_SECONDS` for the records of a large batch. Brokers end the transaction after
        transaction.timeout.ms in any case. A commit whose records are all taken waits only for the coordinator.
        """
        waiting = self._producer.waiting

        def goes_on() -> float:
            nonlocal waiting
            before, waiting = waiting, self._producer.waiting
            return 0.0 if waiting >= before else STEP_SECONDS if waiting else _COORDINATOR_SECONDS

        return goes_on

    def step(
        self,
        doing: str,
        call: Callable[[float], Result],
        patience: float = STEP_SECONDS,
        goes_on: Callable[[], float] = lambda: 0.0,
    ) -> Result:
        """Run `call(seconds left)`, one request of the transaction, with the retries of `with_retries`, and return its
        result.

        `doing` names the step in messages. Raise SinkError if the step fails for good. Raise PrefixTaken if the
        producer was fenced and another start owns the prefix.
        """
        try:
            return with_retries(doing, call, patience, goes_on)
        except ClientError as error:
            passed = time.monotonic() - self._began
            if self._looks and error.code in FENCED:
                with contextlib.suppress(ClientError):
                    self._writer.look(STEP_SECONDS)
            raise self._failure(doing, error, passed) from error

    def _failure(self, doing: str, error: ClientError, passed: float) -> SinkError:
        """Return the error to raise for `error`, which came `passed` seconds after the transaction's beginning."""
        where = f"{doing} (bucket {self._bucket}, batch {self._batch})"
        if error.code in FENCED and self._looks and passed > self._writer.timeout_seconds:
            return SinkError(
                f"Kafka ended the transaction while {where}: it took longer than transaction.timeout.ms,"
                f" {self._writer.timeout_seconds:.0f} s",
                "Raise producer.transaction.timeout.ms, up to the brokers' transaction.max.timeout.ms.",
            )
        if error.code not in FENCED:
            # Kafka's error for the transaction is general ("a message failed"). The cause has a topic and a key.
            error = self._producer.refused or error
        failure = sink_error(where, error, transactional_id(self._writer.prefix, self._bucket))
        if error.code == KafkaError.MSG_SIZE_TOO_LARGE and self._producer.too_large:
            failure = RecordsTooLarge(failure.message, failure.hint)
            failure.records = self._producer.too_large
        return failure


def _refuse_another(done: CommittedBatch, bucket: int, batch: int, digest: str) -> None:
    """Raise SinkRefused if the bucket has committed a later batch, or another batch with the same number.

    Digests of two forms (another release) cannot be compared. Only the last batch is ever repeated, because a batch
    begins when the previous one is done.
    """
    ours, theirs = digest.partition(":"), done.digest.partition(":")
    if done.batch == batch and (ours == theirs or ours[0] != theirs[0]):
        return
    which = f"is only at batch {batch}" if done.batch > batch else "ends it elsewhere"
    raise SinkRefused(
        f"Bucket {bucket} has sent batch {done.batch} to Kafka, but the checkpoint {which}",
        "This is an older copy of the checkpoint, or a second job on it; what it sends would be skipped."
        " Stop the second job; or start with --replace-job, which continues where the topics end.",
    )
