"""Two chunks of one table are read at the same time by two tasks, and live events go on being sent meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from incsnap.checkpoint.windows import Manifest
from incsnap.snapshot.dataclass_json import from_json
from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.table_designs import ORDERS
from lab.workload import Writer

pytestmark = pytest.mark.servers


class Manifests:
    """Keeps what readers wrote about their chunks; the job deletes a manifest once its window is sent."""

    def __init__(self, checkpoint: Path) -> None:
        self.found: dict[str, Manifest] = {}
        self._windows = checkpoint / "incsnap" / "windows"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Manifests:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            for path in self._windows.glob("*/manifest.json"):
                if path.parent.name not in self.found:
                    try:
                        self.found[path.parent.name] = from_json(Manifest, json.loads(path.read_bytes()))
                    except (FileNotFoundError, ValueError):
                        continue


def test_chunks_of_one_table_are_read_at_once_while_events_flow(
    play: CapturedDatabase, say: Callable[[str], None]
) -> None:
    orders = play.create(ORDERS, 120_000)
    with (
        play.job({"incremental.snapshot.chunk.size": "20000", "snapshot.max.threads": "2"}) as job,
        play.notices() as notices,
        Manifests(play.checkpoint) as manifests,
    ):
        job.wait_until_streaming()
        with Writer(play.connect, play.tables, seed=3, rate=300, largest_transaction=4):
            play.execute_by_row("at-once", [orders])
            job.wait_until("the snapshot was complete", lambda: notices.completed("at-once"))
        play.drain(job)
        job.stop()

    read = [each for each in manifests.found.values() if not each.reading.error and each.reading.rows]
    together = [
        (one, other)
        for one, other in combinations(read, 2)
        if one.process != other.process and one.began < other.ended and other.began < one.ended
    ]
    assert together, f"no two of {len(read)} chunks overlap: {read}"

    spans = [(max(one.began, other.began), min(one.ended, other.ended)) for one, other in together]
    begin_ms, end_ms = min(begin for begin, _ in spans) * 1000, max(end for _, end in spans) * 1000
    sent: list[int] = []
    read_topics(play.kafka, [play.topic(orders)], lambda message: sent.append(live_event_time(message.value())))
    while_read = [time_ms for time_ms in sent if begin_ms <= time_ms <= end_ms]
    assert while_read, "no event was sent while chunks were read"
    longest = max(end - begin for begin, end in spans)
    say(
        f"{len(together)} pairs of {len(read)} chunks were read at once (up to {longest:.2f} s);"
        f" {len(while_read)} live events were encoded between the first and the last of these moments"
    )
    (verdict,) = play.verdicts()
    assert verdict.faults(1) == []


def live_event_time(value: bytes | None) -> int:
    """When a live event was encoded (ms); 0 for reads and tombstones."""
    record = json.loads(value) if value is not None else {"op": "r"}
    return 0 if record["op"] == "r" else int(record["ts_ms"])
