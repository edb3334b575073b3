"""The latency from commit to consumer: numbered single-row updates, and a consumer that notes when they arrive."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pymysql.connections import Connection
from pymysql.cursors import Cursor

_LATE_SECONDS = 120.0


class NumberedUpdates:
    """A writer of numbered updates of `table`, and a consumer of their records.

    It works until `stop` or the end of the `with` block. The writer makes `per_second` updates and puts the numbers
    into the column `qty`. `topic` has one partition, which is read from its present end.
    """

    def __init__(
        self, connect: Callable[[], Connection[Cursor]], table: str, kafka: str, topic: str, per_second: float = 50.0
    ) -> None:
        self._connect, self._table, self._pause = connect, table, 1.0 / per_second
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "incsnap-bench",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        self._consumer.assign([TopicPartition(topic, 0, end)])
        self._sent: dict[int, float] = {}
        self._seen: dict[int, float] = {}
        self._quiet, self._end = threading.Event(), threading.Event()
        self._errors: list[BaseException] = []
        self._writer = threading.Thread(target=self._guard, args=(self._write,), name="update-writer", daemon=True)
        self._reader = threading.Thread(target=self._guard, args=(self._read,), name="update-reader", daemon=True)

    def __enter__(self) -> NumberedUpdates:
        self._reader.start()
        self._writer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop writing and reading. May be called twice."""
        self.quiet()
        if not self._end.is_set():
            self._end.set()
            self._reader.join()
            self._consumer.close()

    def wait_for_first(self, check: Callable[[], None], seconds: float) -> float:
        """Wait for the first record and return when it was read, by `time.monotonic()`.

        `check` must raise an error if none can come. Raise TimeoutError after `seconds`.
        """
        deadline, next_check = time.monotonic() + seconds, time.monotonic() + 2.0
        while not self._seen:
            self._raise()
            if time.monotonic() > next_check:
                check()
                next_check = time.monotonic() + 2.0
            if time.monotonic() > deadline:
                raise TimeoutError(f"no record of a change in {seconds:.0f} s")
            time.sleep(0.005)
        return min(list(self._seen.values()))

    def quiet(self) -> None:
        """Stop writing."""
        self._quiet.set()
        self._writer.join()

    def stop(self, check: Callable[[], None]) -> None:
        """Stop writing, and wait until all that was written has been read.

        `check` must raise an error if no more can come. Raise TimeoutError after 120 s.
        """
        self.quiet()
        deadline = time.monotonic() + _LATE_SECONDS
        while self._sent.keys() - self._seen.keys():
            self._raise()
            check()
            if time.monotonic() > deadline:
                lost = len(self._sent.keys() - self._seen.keys())
                raise TimeoutError(f"{lost} of {len(self._sent)} updates did not arrive in {_LATE_SECONDS:.0f} s")
            time.sleep(0.2)
        self._raise()

    def lags(self, since: float, until: float) -> list[float]:
        """Return the seconds from commit to consumer for each update committed between two moments.

        Call `stop` first.
        """
        return [self._seen[each] - sent for each, sent in self._sent.items() if since <= sent <= until]

    def _write(self) -> None:
        number, due = 0, time.monotonic()
        with self._connect() as connection, connection.cursor() as cursor:
            while not self._quiet.is_set():
                number += 1
                cursor.execute(f"UPDATE {self._table} SET qty = %s WHERE id = %s", (number, 1 + number % 100))
                self._sent[number] = time.monotonic()
                # A late writer does not catch up: the rate is an upper bound, never a burst.
                due = max(due + self._pause, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))

    def _read(self) -> None:
        while not self._end.is_set():
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            seen = time.monotonic()
            if (error := message.error()) is not None:
                raise KafkaException(error)
            record = json.loads(message.value() or b"{}")
            if record.get("op") == "u":
                self._seen.setdefault(record["after"]["qty"], seen)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - raised by the thread that waits
            self._errors.append(error)

    def _raise(self) -> None:
        if self._errors:
            raise self._errors[0]


def percentile(values: list[float], percent: int) -> float:
    """Return the smallest of the values that at least `percent` percent of them do not exceed."""
    return sorted(values)[max(1, -(-percent * len(values) // 100)) - 1]


def percentiles(name: str, lags: list[float]) -> dict[str, float]:
    """Return the median and three high percentiles of the seconds `lags` in ms, by the key of their figure."""
    return {f"{name}.p{share}": percentile(lags, share) * 1000 for share in (50, 90, 95, 99)}
