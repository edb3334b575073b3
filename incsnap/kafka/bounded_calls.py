"""Calls of librdkafka with a time limit that holds even if librdkafka does not return.

librdkafka's transactional calls take a time-out, but wait for librdkafka's own thread without one. When a broker was
killed while a producer was kept, `rd_kafka_send_offsets_to_transaction` (librdkafka 2.16) twice never returned from
`rd_kafka_txn_op_req0`, and the job stood still without any message. So these calls run on a thread of the producer. If
a call does not return, its thread and its producer are abandoned. The next producer with the same transactional id
fences the old one, so whatever the old one still does has no effect.
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
#: Seconds added to a call's own time-out. librdkafka keeps its time-out to within one second if it keeps it at all.
GRACE_SECONDS = 5.0


class BoundedCalls:
    """A thread that runs the calls of one producer, one after the other. It adds 0.1 ms to a call."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], None] | None] | None = None
        #: True if a call did not return. Then the producer must not be used any more.
        self.lost = False

    def run(self, what: str, call: Callable[[], Result], seconds: float) -> Result:
        """Return the result of `call()`, or raise its error. `what` names the call in messages.

        Raise ClientError if the call has not returned `GRACE_SECONDS` after its time-out of `seconds`.
        """
        if self.lost:
            raise ClientError(KafkaError._TIMED_OUT, "the producer is abandoned")
        if self._waiting is None:
            self._waiting = SimpleQueue()
            threading.Thread(target=_serve, args=(self._waiting,), name="incsnap-producer", daemon=True).start()
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        def keep_answer() -> None:
            try:
                outcome.put((call(), None))
            except BaseException as error:  # noqa: BLE001 - the waiting thread raises it
                outcome.put((None, error))

        self._waiting.put(keep_answer)
        try:
            result, error = outcome.get(timeout=seconds + GRACE_SECONDS)
        except Empty:
            self.lost = True
            _log.warning(
                "librdkafka has not returned from %s within %.0f s: its producer is abandoned, a new one continues",
                what,
                seconds + GRACE_SECONDS,
            )
            raise ClientError(KafkaError._TIMED_OUT, f"librdkafka has not returned from {what}") from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the thread, unless it is in a call that does not return."""
        if self._waiting is not None:
            self._waiting.put(None)
            self._waiting = None


def _serve(waiting: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := waiting.get()) is not None:
        call()
