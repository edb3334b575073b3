"""`incsnap verify` on real servers: equal tables, seeded faults of each kind, and changes meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.running_job import write_properties
from lab.servers import Servers
from lab.table_designs import ORDERS
from signals import send
from tests.support.delivery import send_first_snapshot

pytestmark = pytest.mark.servers


def verify(
    play: CapturedDatabase, *arguments: str, settings: Mapping[str, str] | None = None
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the command with --json, and return its exit code and its answers by table."""
    return run_verify(write_properties(play.folder / "verify.properties", play.properties(settings)), *arguments)


def run_verify(path: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run the command with --json for the file `path`, and return its exit code and its answers by table."""
    command = [sys.executable, "-m", "incsnap", "verify", str(path), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    sys.stdout.write(done.stderr[-6000:])
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, {answer["table"].rpartition(".")[2]: answer for answer in answers}


def test_seeded_faults_are_found_and_named(servers: Servers) -> None:
    """The small form of the ledger in CONTRIBUTING.md."""
    done = seed_faults(servers, "--form", "json", "--faults", "18", "--rows", "80")

    assert done.returncode == 0
    assert "18 of 18 faults seeded" in done.stdout


def seed_faults(servers: Servers, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program of CONTRIBUTING.md with the servers of the tests."""
    given = {
        "INCSNAP_MYSQL": str(servers.mysql),
        "INCSNAP_MYSQL_USER": servers.mysql.user,
        "INCSNAP_MYSQL_PASSWORD": servers.mysql.password,
        "INCSNAP_KAFKA": servers.kafka,
    }
    command = [sys.executable, "-m", "tests.verify_faults", *arguments]
    environment = {**os.environ, **given}
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False, env=environment)
    sys.stdout.write(done.stdout + done.stderr[-6000:])
    return done


def test_changes_meanwhile_raise_no_false_alarm(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 20_000)
    with play.job({"snapshot.mode": "initial", "heartbeat.interval.ms": "500"}) as job:
        send_first_snapshot(play, job)
        with writers(play, orders) as written:
            code, answers = verify(play, "--allow-unverifiable")
        assert written() > 200
    counts = {kind: count for kind, count in answers["orders"].items() if isinstance(count, int)}
    named = {kind: count for kind, count in counts.items() if count and kind not in ("equal", "unverifiable")}
    assert (code, named) == (0, {})


def test_rows_that_a_running_snapshot_has_not_sent_are_not_called_missing(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 1_000)
    with play.job({"snapshot.mode": "no_data"}) as job:
        job.wait_until_streaming()
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"UPDATE {orders.sql} SET qty = qty + 1 WHERE id = 42")
        play.drain(job)
        code, answers = verify(play, "--table", str(orders))
        assert (code, answers["orders"]["missing"]) == (1, 999)

        slowly = [(str(orders).replace(".", "\\."), "SLEEP(1) = 0")]
        play.signal_by_row("slow", "execute-snapshot", send.snapshot_data([str(orders)], slowly))
        job.wait_until("the snapshot's begin", lambda: "The snapshot begins" in play.log.read_text())
        play.drain(job)
        folder = play.folder / "differences"
        code, answers = verify(play, "--table", str(orders), "--differences", str(folder))
        shown = answers["orders"]
        assert (code, shown["missing"], shown["unverifiable"]) == (2, 0, 999)
        notes = {json.loads(line)["note"] for line in (folder / f"{orders}.jsonl").read_text().splitlines()}
        assert notes == {"its snapshot is under way"}
        job.kill()


def test_a_locked_table_has_no_answer_and_the_other_tables_have_one(play: CapturedDatabase) -> None:
    orders = play.create(ORDERS, 100)
    with play.job({"snapshot.mode": "initial"}) as job:
        send_first_snapshot(play, job)
        with play.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {orders.sql} WRITE")
            code, answers = verify(play, "--wait", "3")
            cursor.execute("UNLOCK TABLES")
    assert code == 2
    assert answers.pop("orders")["refused"].startswith("Another session has locked the table")
    assert answers
    assert all(each["equal"] for each in answers.values())


def test_floats_and_vectors_in_avro_are_equal_at_the_first_look(
    play: CapturedDatabase, registry_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    avro = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": registry_url,
        "schema.name.adjustment.mode": "avro",
        "table.include.list": f"{play.database}\\..*",
    }
    table = TableId(play.database, "measured")
    values = "0.1, 123456.789, STRING_TO_VECTOR('[0.1, -0.3, 123456.789]')"
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table.sql} (id INT PRIMARY KEY, f FLOAT, n FLOAT NOT NULL, v VECTOR(3))")
        cursor.execute(f"INSERT INTO {table.sql} VALUES (1, {values}), (2, NULL, 1e10, NULL)")
        with play.job({"snapshot.mode": "initial", **avro}) as job:
            send_first_snapshot(play, job)
            cursor.execute(f"INSERT INTO {table.sql} VALUES (3, {values})")
            play.drain(job)
            job.stop()
    code, answers = verify(play, "--table", str(table), settings=avro)

    assert (code, answers["measured"]["equal"]) == (0, True)
    assert " 0 keys differ or changed meanwhile" in capsys.readouterr().out


@contextlib.contextmanager
def writers(play: CapturedDatabase, table: TableId) -> Iterator[Callable[[], int]]:
    """Change rows until the block ends: updates, deletions, insertions, changes of keys, XA transactions.

    Yield a function that returns the number of statements.
    """
    stopping, done = threading.Event(), [0, 0]

    def write(number: int) -> None:
        random = Random(number)
        with play.connect() as connection, connection.cursor() as cursor:
            while not stopping.is_set():
                done[number] += 1
                for statement in _changes(random, table, number, done[number]):
                    cursor.execute(statement)

    threads = [threading.Thread(target=write, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: sum(done)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(30)


def _changes(random: Random, table: TableId, number: int, count: int) -> Sequence[str]:
    low = random.randrange(1, 20_000) * 2
    change = random.choice(
        (
            f"UPDATE {table.sql} SET qty = {count} WHERE id BETWEEN {low} AND {low + 20}",
            f"DELETE FROM {table.sql} WHERE id = {low}",
            f"UPDATE {table.sql} SET id = {10_000_000 + 2 * count + number} WHERE id = {low}",
        )
    )
    if count % 10:
        return [change]
    name = f"'verify-{number}-{count}'"
    return [f"XA START {name}", change, f"XA END {name}", f"XA PREPARE {name}", f"XA COMMIT {name}"]
