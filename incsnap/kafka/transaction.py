"""One bucket's share of one batch is one Kafka transaction, and the batch's number is committed in it.

So a batch that Spark runs again finds its number and does nothing, and a task that outlived its batch (a zombie) is
fenced by the transactional id of the bucket before it can commit. The order is what makes it safe: first fence, then
read the number, then write. Read the other way round, a zombie could commit between the reading and the fencing.

A producer that committed an earlier batch in this process goes on without both: that it is not fenced says that the
number is still its own (``kept``).

Another start with the same ``topic.prefix`` is told from a zombie by the announcements on the control topic: whoever
opens a producer looks at them before and after it fences (``docs/adr/0018-one-start-of-a-prefix.md``).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from incsnap.kafka.kept import Kept, KeptProducers
from incsnap.kafka.patience import STEP_SECONDS, patiently
from incsnap.kafka.producer import TransactionalProducer
from incsnap.kafka.refusals import FENCED, ClientError, RecordsTooLarge, SinkRefused, sink_error
from incsnap.kafka.topic_limits import batch_settings

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
#: Seconds that a kept producer is given to begin; after that a new one tries, with all its patience.
_KEPT_SECONDS = 5.0
#: Of this process; Spark's workers run the tasks of many batches.
PRODUCERS = KeptProducers()


@dataclass(frozen=True, slots=True)
class BucketWriter:
    """Opens transactions: ``writer.open(bucket, batch, digest)``. Pickles; holds no connection."""

    client: ClientSettings
    prefix: str
    #: A job is one checkpoint's life: its batches are numbered without gaps, a new job begins anew.
    job_id: str
    #: The start of the job that writes; None where no other start can be.
    start: OwnStart | None = None

    def open(self, bucket: int, batch: int, digest: str) -> Transaction | None:
        """Return a transaction that has begun, or ``None`` when the bucket has committed this batch before.

        ``digest`` tells the batch from any other of its number. Raise ``SinkError`` (worth a repetition),
        ``SinkRefused`` (not worth one), or ``PrefixTaken`` where another start owns the prefix.
        """
        kept = PRODUCERS.take(self.owner(bucket), before=batch)
        if kept is not None and (transaction := self._go_on(kept, bucket, batch, digest)) is not None:
            return transaction
        producer = TransactionalProducer(self._settings(bucket))
        try:
            transaction = Transaction(self, producer, bucket, batch, digest)
            # Spares a newer start the disturbance; what makes it safe is the second look.
            transaction.step("looking for another start", self.look)
            transaction.step("fencing older writers", producer.init_transactions)
            transaction.step("looking for another start", self.look)
            done = transaction.step("reading the committed batch", self._committed(bucket))
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

    def _go_on(self, kept: Kept, bucket: int, batch: int, digest: str) -> Transaction | None:
        """With the producer of an earlier batch; ``None``, and that closed, when there is any doubt about it."""
        transaction = Transaction(self, kept.producer, bucket, batch, digest)
        try:
            transaction.begin(_KEPT_SECONDS)
        except SinkError as error:
            # Each time the bucket was last written by another worker: nothing that a user must know.
            _log.debug("The producer of batch %d is given up, another is opened: %s", kept.batch, error)
            kept.producer.close()
            return None
        except BaseException:
            kept.producer.close()
            raise
        return transaction

    def fence(self, bucket: int) -> None:
        """Fence every producer of the bucket: what it has not committed never is. Raise ``SinkError``."""
        with TransactionalProducer(self.client.for_producer(transactional_id(self.prefix, bucket))) as producer:
            Transaction(self, producer, bucket, 0, "").step("fencing older writers", producer.init_transactions)

    def look(self, seconds: float) -> None:
        """Raise ``PrefixTaken`` if another start owns the prefix, ``ClientError`` if that cannot be read."""
        if self.start is not None:
            refuse_another(announcement_log(self.client, self.prefix).owner(seconds), self.start)

    def owner(self, bucket: int) -> object:
        """Return whose producer may be kept for whom: the same bucket of the same start, with the same settings."""
        return self.job_id, self.start, tuple(sorted(self._settings(bucket).items()))

    def _settings(self, bucket: int) -> dict[str, str]:
        """The settings of the bucket's producer."""
        return {**self.client.for_producer(transactional_id(self.prefix, bucket)), **batch_settings(self.client)}

    def _committed(self, bucket: int) -> Callable[[float], CommittedBatch | None]:
        return lambda seconds: committed_batch(self.client, self.prefix, self.job_id, bucket, seconds)


class Transaction:
    """An open transaction. As a context manager it aborts on an error, and unless ``commit`` was called."""

    def __init__(
        self, writer: BucketWriter, producer: TransactionalProducer, bucket: int, batch: int, digest: str
    ) -> None:
        self._writer = writer
        self._producer = producer
        self._bucket = bucket
        self._batch = batch
        self._digest = digest
        self._open = True
        #: Whether a fenced producer means that another start may own the prefix. While a kept producer begins it mostly
        #: means that another worker had the bucket; a new producer looks then.
        self._looks = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.abort()

    def begin(self, patience: float = STEP_SECONDS) -> None:
        """Begins with the batch's number: whoever has been fenced learns of it before a record is copied."""
        topic = control_topic(self._writer.prefix)
        group = group_of(self._writer.prefix, self._writer.job_id)
        self.step("beginning", lambda _: self._producer.begin(), patience)
        self.step(
            "sending the batch number as an offset",
            lambda seconds: self._producer.send_offset(topic, self._bucket, self._batch, self._digest, group, seconds),
            patience,
        )
        self._looks = True

    def send(self, topics: Sequence[tuple[str, int]], records: pa.RecordBatch) -> None:
        """Queues records (``envelope.records.RECORDS``); they are delivered at the latest by ``commit``. ``topics``:
        how many of them go to which, one after the other."""
        where = topics[0][0] if len(topics) == 1 else f"{len(topics)} topics"
        self.step(f"writing to {where}", lambda seconds: self._producer.send(topics, records, seconds))

    def commit(self, place: str = "") -> None:
        """Commit the records, the batch number and its fall-back record: all or none.

        ``place`` is the JSON of the batch's beginning and end, by which another job can go on from here.

        The producer is kept for the next batch, unless a request of it may still be on its way: a late copy of the
        commit would commit the beginning of the next batch.
        """
        topic = control_topic(self._writer.prefix)
        key, value = control_record(self._writer.job_id, self._bucket, self._batch, self._digest, place)
        self.step("writing the batch number", lambda _: self._producer.send_one(topic, self._bucket, key, value))
        self.step("committing", self._producer.commit)
        self._open = False
        if self._producer.has_lost_answers:
            self._producer.close()
        else:
            PRODUCERS.keep(self._writer.owner(self._bucket), self._producer, self._batch)

    def abort(self) -> None:
        """Give up, or do nothing after `commit`. Never raises: what is not aborted, the next writer's fence ends."""
        if self._open:
            self._open = False
            with contextlib.suppress(ClientError):
                self._producer.abort(STEP_SECONDS)
            self._producer.close()

    def step(self, doing: str, call: Callable[[float], Result], patience: float = STEP_SECONDS) -> Result:
        """Return ``call(seconds left)``, repeated as ``patiently`` does. Raise ``SinkError`` where it fails."""
        try:
            return patiently(doing, call, patience)
        except ClientError as error:
            if self._looks and error.code in FENCED:
                with contextlib.suppress(ClientError):
                    self._writer.look(STEP_SECONDS)
            raise self._failure(doing, error) from error

    def _failure(self, doing: str, error: ClientError) -> SinkError:
        where = f"{doing} (bucket {self._bucket}, batch {self._batch})"
        refused = self._producer.refused
        if refused is not None and error.code not in FENCED:
            # What Kafka says of the transaction ("a message failed") has a cause, and the cause has a topic and a key.
            error = ClientError(self._producer.refused_code, refused)
        failure = sink_error(where, error, transactional_id(self._writer.prefix, self._bucket))
        if error.code == KafkaError.MSG_SIZE_TOO_LARGE and self._producer.too_large:
            failure = RecordsTooLarge(failure.message, failure.hint)
            failure.records = self._producer.too_large
        return failure


def _refuse_another(done: CommittedBatch, bucket: int, batch: int, digest: str) -> None:
    """Raises when what the bucket has committed is a later batch, or another one of the same number.

    Digests of two forms (another release) cannot be compared. A replay is of the last batch only: batches are begun
    when the one before is done.
    """
    ours, theirs = digest.partition(":"), done.digest.partition(":")
    if done.batch == batch and (ours == theirs or ours[0] != theirs[0]):
        return
    which = f"is only at batch {batch}" if done.batch > batch else "ends it elsewhere"
    raise SinkRefused(
        f"Bucket {bucket} has sent batch {done.batch} to Kafka, but the checkpoint {which}",
        "This is an older copy of the checkpoint, or a second job on it; what it sends would be skipped."
        " Stop the second job; or start with --replace-job, which goes on where the topics end.",
    )
