"""Two tasks read two chunks of one table at the same time, while live events are still sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send

pytestmark = [pytest.mark.servers, pytest.mark.long]

#: A condition that is true for every row, but slow: a SELECT of 20,000 rows takes half a second more. Otherwise it is
#: over before the test looks.
SLOWLY = "(id % 2000 <> 0 OR SLEEP(0.05) = 0)"


class SelectsOfChunks:
    """A thread that looks repeatedly at the SELECTs of chunks on the server, each on its own connection."""

    def __init__(self, play: CapturedDatabase) -> None:
        self._play = play
        #: Times at which more than one was executed, in ms since 1970.
        self.together_ms: list[int] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> SelectsOfChunks:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with closing(self._play.connect()) as connection, connection.cursor() as cursor:
            while not self._stop.wait(0.002):
                cursor.execute("SHOW FULL PROCESSLIST")
                statements = [row[7] for row in cursor.fetchall() if row[7]]
                chunks = {each for each in statements if "MAX_EXECUTION_TIME" in each and self._play.database in each}
                if len(chunks) > 1:
                    self.together_ms.append(time.time_ns() // 1_000_000)


def test_chunks_of_one_table_are_read_at_once_while_events_flow(
    play: CapturedDatabase, say: Callable[[str], None]
) -> None:
    orders = play.create(ORDERS, 400_000)
    with (
        play.job({"incremental.snapshot.chunk.size": "20000", "snapshot.max.threads": "2"}) as job,
        play.notices() as notices,
        SelectsOfChunks(play) as selects,
    ):
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=3, rate=300, largest_transaction=4):
            asked = send.snapshot_data([str(orders)], [(str(orders), SLOWLY)])
            play.signal_by_row("at-once", "execute-snapshot", asked)
            job.wait_until("the snapshot was complete", lambda: notices.completed("at-once"))
        play.drain(job)
        job.stop()

    together_ms = selects.together_ms
    assert together_ms, "no two chunks were read at the same time"

    sent: list[int] = []
    read_topics(play.kafka, [play.topic(orders)], lambda message: sent.append(live_event_time(message.value())))
    while_read = [time_ms for time_ms in sent if together_ms[0] <= time_ms <= together_ms[-1]]
    assert while_read, "no event was sent while chunks were read"
    say(
        f"two chunks were being read {len(together_ms)} of the times that were looked at;"
        f" {len(while_read)} live events were encoded between the first and the last of these moments"
    )
    (verdict,) = play.verdicts()
    assert verdict.faults(1) == []


def live_event_time(value: bytes | None) -> int:
    """Return when a live event was encoded (ms since 1970), or 0 for reads and tombstones."""
    record = json.loads(value) if value is not None else {"op": "r"}
    return 0 if record["op"] == "r" else int(record["ts_ms"])
