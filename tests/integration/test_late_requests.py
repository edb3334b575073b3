"""Requests that reach the broker late, behind their own repetition (KAFKA-17754), on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest

from incsnap.kafka import transaction as transactions
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.control import CommittedBatch, committed_batch, control_topic
from incsnap.kafka.producer_cache import ProducerCache
from incsnap.kafka.refusals import ClientError
from incsnap.kafka.topics import admin_client, ensure_control_topic, ensure_topics
from incsnap.kafka.transaction import BucketWriter, Transaction
from lab.fetched_kafka import fetched_kafka
from tests.support.kafka import keyed, read_all, unique
from tests.support.late_broker import END_TXN, PRODUCE, TXN_OFFSET_COMMIT, LateBroker, late_broker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
_DIGEST = "2:same"


@dataclass
class Late:
    """A job of one bucket, whose requests go through a proxy that may hold them back."""

    broker: LateBroker
    #: What the job's tasks use.
    writer: BucketWriter
    #: The same bucket, from another process, at the broker itself.
    heir: BucketWriter

    @property
    def topic(self) -> str:
        return f"{self.writer.prefix}.t"

    def begun(self, writer: BucketWriter, batch: int, *values: str) -> Transaction:
        """Return the transaction of the batch, with its records handed over."""
        transaction = writer.open(0, batch, _DIGEST)
        assert transaction is not None
        transaction.send([(self.topic, len(values))], keyed(*[(value, value) for value in values]))
        return transaction

    def send(self, batch: int, *values: str) -> None:
        """Send the batch through the proxy."""
        with self.begun(self.writer, batch, *values) as transaction:
            transaction.commit()

    def repeat(self, batch: int, *values: str) -> None:
        """Do as Spark does with a batch of which it does not know whether it was committed."""
        transaction = self.heir.open(0, batch, _DIGEST)
        if transaction is not None:
            with transaction:
                transaction.send([(self.topic, len(values))], keyed(*[(value, value) for value in values]))
                transaction.commit()

    def values(self, isolation: str = "read_committed") -> list[str]:
        """Return what a consumer sees."""
        reads = read_all(self.heir.client.bootstrap_servers, self.topic, isolation=isolation)
        return [(read.value or b"").decode() for read in reads]


def _late(address: str) -> Iterator[Late]:
    prefix = unique("late")
    admin = admin_client(ClientSettings(address))
    ensure_control_topic(admin, prefix, 1)
    ensure_topics(admin, [f"{prefix}.t"], 1)
    heir = BucketWriter(ClientSettings(address), prefix, "job1")
    wait_until(lambda: _has_coordinator(heir))
    with late_broker(address) as broker:
        yield Late(broker, replace(heir, client=ClientSettings(broker.address)), heir)
    for answer in admin.delete_topics([control_topic(prefix), f"{prefix}.t"], request_timeout=30).values():
        answer.result()


def _has_coordinator(writer: BucketWriter) -> bool:
    """Whether the broker knows the group's offsets; one that has just started does not."""
    with suppress(ClientError):
        return committed_batch(writer.client, writer.prefix, writer.job_id, 0, 60) is None
    return False


@pytest.fixture
def late(kafka_address: str) -> Iterator[Late]:
    yield from _late(kafka_address)


@pytest.fixture
def late_on_an_older_broker() -> Iterator[Late]:
    """A broker that does not ask the coordinator whether a transaction is open, as before Kafka 3.6."""
    with fetched_kafka(lambda _broker, _controller: "transaction.partition.verification.enable=false\n") as address:
        yield from _late(address)


@pytest.fixture(autouse=True)
def producers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The producers of this test are closed behind it."""
    kept = ProducerCache()
    monkeypatch.setattr(transactions, "PRODUCERS", kept)
    yield
    kept.close()


def test_a_late_commit_does_not_commit_the_next_transaction(late: Late) -> None:
    late.send(1, "1")
    late.broker.hold_next(END_TXN)
    late.send(2, "2")
    late.broker.wait_until_held()

    torn = late.begun(late.writer, 3, "3a")
    wait_until(lambda: "3a" in late.values("read_uncommitted"))
    late.broker.deliver()
    torn.abort()
    late.repeat(3, "3a", "3b")

    assert late.values() == ["1", "2", "3a", "3b"]


def test_a_late_batch_number_does_not_put_the_next_one_back(late: Late) -> None:
    late.send(1, "1")
    late.broker.hold_next(TXN_OFFSET_COMMIT)
    late.send(2, "2")
    late.broker.wait_until_held()

    with late.begun(late.writer, 3, "3") as transaction:
        late.broker.deliver()
        transaction.commit()
    late.repeat(3, "3")

    assert late.values() == ["1", "2", "3"]
    assert committed_batch(late.heir.client, late.heir.prefix, "job1", 0, 60) == CommittedBatch(3, _DIGEST)


@pytest.mark.parametrize("moment", ["before the next", "in the next"])
@pytest.mark.parametrize("broker", ["late", "late_on_an_older_broker"])
def test_a_late_record_of_a_transaction_that_was_given_up_is_never_seen(
    broker: str, moment: str, request: pytest.FixtureRequest
) -> None:
    late: Late = request.getfixturevalue(broker)
    late.send(1, "1")
    late.broker.hold_next(PRODUCE, again=True)
    given_up = late.begun(late.writer, 2, "2")
    late.broker.wait_until_held()
    given_up.abort()
    late.broker.let_pass()

    if moment == "before the next":
        late.broker.deliver()
        late.repeat(2, "2")
    else:
        with late.begun(late.heir, 2, "2") as transaction:
            late.broker.deliver()
            transaction.commit()

    assert late.values() == ["1", "2"]
