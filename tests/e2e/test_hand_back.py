"""A real Debezium goes on with the snapshot of a job, from the offset that Connect's REST interface takes."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from typing import Any

import pytest

from lab.captured_database import CapturedDatabase
from lab.debezium import VERSION, connect_worker
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.e2e.test_takeover import connector, incsnap, sent_by_connector
from tests.support.kafka import read_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.long]

_ROWS = 12_000


def test_a_connector_goes_on_behind_the_last_key_of_the_jobs_snapshot(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, _ROWS)
    settings = {**connector(play), "incsnap.snapshot.throttle.rows.per.second": "1500"}
    log = play.folder / "connect.log"
    file = write_properties(play.folder / "connector.properties", settings)

    def values() -> list[dict[str, Any]]:
        read = read_all(play.kafka, play.topic(orders), range(2))
        return [json.loads(each.value) for each in read if each.value]

    def keys_read(*, by_connector: bool) -> set[int]:
        return {
            value["after"]["id"]
            for value in values()
            if value["op"] == "r" and (value["source"]["version"] == VERSION) == by_connector
        }

    with ExitStack() as stack:
        with play.job(settings) as job:
            job.wait_until_streaming()
            writer = stack.enter_context(Writer(play.connect, play.tables, seed=5, rate=50))
            with play.connect() as connection:
                data = send.snapshot_data([str(orders)])
                send.to_table(connection, play.signals.sql, "started", "execute-snapshot", data)
            job.wait_until("a part of the table was sent", lambda: len(keys_read(by_connector=False)) > _ROWS // 6)
            job.stop()
        of_job = keys_read(by_connector=False)
        worker = stack.enter_context(connect_worker(play.kafka, log))
        ask(f"{worker.url}/connectors", "POST", {"name": play.prefix, "config": settings, "initial_state": "STOPPED"})
        printed = incsnap("hand-back", file, "--to-rest", worker.url)
        assert f"The snapshot of {orders} goes on behind the key" in printed
        ask(f"{worker.url}/connectors/{play.prefix}/resume", "PUT")
        ended = f"incremental snapshotting of table '{orders}' finished"
        wait_until(lambda: ended in log.read_text(errors="replace"))
        writer.stop()
        sent_by_connector(play, 1)
    last = int(printed.partition("behind the key [")[2].partition("]")[0])
    of_connector = keys_read(by_connector=True)
    at_beginning = set(range(2, 2 * _ROWS + 1, 2))
    assert min(of_connector) > last
    assert not {key for key in at_beginning if key <= last} - of_job - overtaken(values())
    assert not at_beginning - of_job - of_connector - overtaken(values())
    (proof,) = play.verdicts()
    assert proof.replay.judgement.faults() == []
    # Debezium writes a TIMESTAMP in two spellings, with and without trailing zeros.
    assert (proof.comparison.missing.examples, proof.comparison.extra.examples) == ([], [])


def overtaken(values: list[dict[str, Any]]) -> set[int]:
    """Return the keys that have another record than that of a snapshot."""
    return {(value["after"] or value["before"])["id"] for value in values if value["op"] != "r"}


def ask(url: str, method: str, body: object = None) -> None:
    """Send a request to Connect's REST interface. Raise HTTPError if Connect refuses."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60):
        pass
