"""Jobs of older releases that end in the middle of a batch, and are continued by this release.

The older releases are commits of this repository. Their offsets have the versions 3 to 6. The newest of them is the
last one that wrote settings as `repr`s. INCSNAP_LONG=1 runs this test, which takes a minute for each release.
"""

from __future__ import annotations

import subprocess
import tarfile
import time
from collections import Counter
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import pytest

from lab.captured_database import CapturedDatabase
from lab.running_job import JobFailed, running_job, write_properties
from signals import send
from tests.support.kafka import read_all

pytestmark = [pytest.mark.servers, pytest.mark.long]

ROOT = Path(__file__).parents[2]
RELEASES = {
    "739c6c0": "the last with offsets of version 3",
    "304cf80": "the last with offsets of version 4",
    "568dff9": "the first with offsets of version 5",
    "46de1ee": "the first with offsets of version 6",
    "e238f2b": "the last that wrote reprs",
}
#: Number of tables: several buckets must have a share of the batch.
TABLES = [f"t{number}" for number in range(8)]
#: Bytes beyond the client's default limit: the bucket of this row cannot send its share.
LARGE = 1_200_000


@pytest.fixture
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A checkout of the older release's commit."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", request.param, "incsnap", "signals"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    if archive.returncode:
        pytest.skip(f"this checkout has no history back to {request.param} (git fetch --unshallow)")
    folder = tmp_path / "older"
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as content:
        content.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("older", RELEASES, indirect=True)
def test_a_batch_that_an_older_release_sent_in_part_is_finished_by_this_one(
    play: CapturedDatabase, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "table.include.list": f"{play.database}\\.(t[0-9]|marks)",
        "decimal.handling.mode": "string",
        "message.key.columns": f"{play.database}\\.t1:id",
        "column.truncate.to.20.chars": f"{play.database}\\.t2\\.note",
    }
    with play.connect() as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE {play.database}.{table} (id INT PRIMARY KEY, note LONGTEXT)")
        with monkeypatch.context() as environment:
            of_release(environment, older)
            with play.job(settings) as job, play.notices() as notices:
                job.wait_until_streaming()
                cursor.execute(f"INSERT INTO {play.database}.t3 VALUES (100, 'read'), (101, 'read')")
                play.signal_by_row("before", "execute-snapshot", send.snapshot_data([f"{play.database}.t3"]))
                job.wait_until("its snapshot", lambda: notices.completed("before"))
                connection.begin()
                for table in TABLES:
                    cursor.execute(f"INSERT INTO {play.database}.{table} VALUES (1, 'small')")
                cursor.execute(f"INSERT INTO {play.database}.t7 VALUES (2, %s)", ("x" * LARGE,))
                connection.commit()
                with pytest.raises(JobFailed):
                    job.wait_until("its end", lambda: False)
        before = sent(play)
        assert 0 < sum(before[table, 1] for table in TABLES) < len(TABLES)

        with play.job({**settings, "producer.max.request.size": "8000000"}) as job:
            play.drain(job)
            job.stop()
    after = sent(play)
    assert {key: after[key] for key in [*((table, 1) for table in TABLES), ("t7", 2)]} == {
        **{(table, 1): 1 for table in TABLES},
        ("t7", 2): 1,
    }


@pytest.mark.parametrize("older", ["e238f2b"], indirect=True)
def test_a_job_that_an_older_release_lost_to_a_large_row_of_a_snapshot_goes_on(
    play: CapturedDatabase, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"table.include.list": f"{play.database}\\.(t[0-9]|marks)"}
    with play.connect() as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE {play.database}.{table} (id INT PRIMARY KEY, note LONGTEXT)")
        cursor.execute(f"INSERT INTO {play.database}.t1 VALUES (1, 'small'), (2, %s), (3, 'small')", ("x" * LARGE,))
        with monkeypatch.context() as environment:
            of_release(environment, older)
            with play.job(settings) as job:
                job.wait_until_streaming()
                play.signal_by_row("all", "execute-snapshot", send.snapshot_data([f"{play.database}.t1"]))
                with pytest.raises(JobFailed):
                    job.wait_until("its end", lambda: False)
        cursor.execute(f"INSERT INTO {play.database}.t2 VALUES (1, 'behind it')")

        with play.job(settings) as job, play.notices() as notices:
            play.drain(job)
            job.wait_until("its snapshot", lambda: notices.completed("all"))
            job.stop()
    (given_up,) = notices.of("QUARANTINED")
    assert given_up["additional_data"]["last_key"] == "2"
    rows = sent(play)
    assert (rows["t1", 1], rows["t1", 2], rows["t1", 3], rows["t2", 1]) == (1, 0, 1, 1)


def of_release(environment: pytest.MonkeyPatch, older: Path) -> None:
    """Let child processes run the older release, although this release is in the working directory."""
    environment.setenv("PYTHONPATH", str(older))
    environment.setenv("PYTHONSAFEPATH", "1")


def sent(play: CapturedDatabase) -> Counter[tuple[str, int]]:
    """Return how often each row was sent, by table and id."""
    counts: Counter[tuple[str, int]] = Counter()
    for table in TABLES:
        for record in read_all(play.kafka, f"{play.prefix}.{play.database}.{table}", (0, 1)):
            counts[table, int((record.key or b"").split(b":")[1].rstrip(b"}"))] += 1
    return counts


@pytest.mark.parametrize("older", ["5c8afd5"], indirect=True)
def test_a_start_beside_a_running_job_of_an_older_release_ends_and_names_that_job(
    play: CapturedDatabase, older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"table.include.list": f"{play.database}\\.(t[0-9]|marks)"}
    other = {**settings, "checkpoint.location": str(tmp_path / "other"), "database.server.id": "777001"}
    path = write_properties(tmp_path / "other.properties", play.properties(other))
    with play.connect() as connection, connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"CREATE TABLE {play.database}.{table} (id INT PRIMARY KEY, note LONGTEXT)")
        with monkeypatch.context() as environment:
            of_release(environment, older)
            stack = ExitStack()
            first = stack.enter_context(play.job(settings))
        with stack:
            first.wait_until_streaming()
            cursor.execute(f"INSERT INTO {play.database}.t1 VALUES (1, 'before')")
            play.drain(first)
            with running_job(path, tmp_path / "other.log", tmp_path / "other") as second:
                second.wait_until_streaming()
                for number in range(2, 200):
                    cursor.execute(f"INSERT INTO {play.database}.t1 VALUES (%s, 'beside')", (number,))
                    time.sleep(0.5)
                    if second.exit_code() is not None:
                        break
                assert second.exit_code() == 2, second.log_tail()
                assert "A job of an older release of incsnap (job id " in second.log_tail(), second.log_tail()
            cursor.execute(f"INSERT INTO {play.database}.t2 VALUES (1, 'behind it')")
            play.drain(first)
            assert sent(play)["t2", 1] == 1
