"""Calls of librdkafka with a limit that is kept whatever librdkafka does.

Its transactional calls take a time-out, and wait for the answer of its own thread without one. When a broker was killed
while a producer was kept, ``rd_kafka_send_offsets_to_transaction`` (librdkafka 2.16) was twice seen to wait for good in
``rd_kafka_txn_op_req0``: the job stood still, with nothing to be read anywhere. So these calls run on a thread of the
producer's, and one that does not come back is left behind with its producer. The next producer of the same
transactional id fences it, so whatever it does later has no effect.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from confluent_kafka import KafkaError

from incsnap.kafka.refusals import ClientError

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
#: Seconds over the call's own time-out, which librdkafka keeps to within one where it does at all.
GRACE_SECONDS = 5.0


class Calls:
    """One producer's, one after the other. The thread costs a call 0.1 ms."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], None] | None] | None = None
        #: A call did not come back: the producer must not be touched any more.
        self.lost = False

    def run(self, what: str, call: Callable[[], Result], seconds: float) -> Result:
        """``call()``, or ``ClientError`` when it has not come back ``GRACE_SECONDS`` after its time-out."""
        if self.lost:
            raise ClientError(KafkaError._TIMED_OUT, "the producer was left behind")
        if self._waiting is None:
            self._waiting = SimpleQueue()
            threading.Thread(target=_serve, args=(self._waiting,), name="incsnap-producer", daemon=True).start()
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        def keep_answer() -> None:
            try:
                outcome.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                outcome.put((None, error))

        self._waiting.put(keep_answer)
        try:
            result, error = outcome.get(timeout=seconds + GRACE_SECONDS)
        except Empty:
            self.lost = True
            _log.warning(
                "librdkafka has not come back from %s in %.0f s: its producer is left behind, another one goes on",
                what,
                seconds + GRACE_SECONDS,
            )
            raise ClientError(KafkaError._TIMED_OUT, f"librdkafka has not come back from {what}") from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """The thread ends, unless it is in a call that does not come back."""
        if self._waiting is not None:
            self._waiting.put(None)
            self._waiting = None


def _serve(waiting: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := waiting.get()) is not None:
        call()
