"""Tests of `snapshot.mode=when_needed`: if the server cannot continue from the offset, a new job begins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.status import newest_offset
from incsnap.config.settings import Settings
from incsnap.errors import ServerUnreachable, SinkError
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.transaction import BucketWriter
from incsnap.mysql import lost_place
from incsnap.mysql.lost_place import lost_behind
from incsnap.mysql.preflight import findings
from incsnap.mysql.session import connect as connect_by
from incsnap.planner.begin_again import begin_again_where_lost
from incsnap.planner.online_ddl import online_tables_at
from incsnap.snapshot.offset import Offset
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from signals import send
from tests.support.mysql_versions import reset_statement
from tests.support.online_runs import gh_ost
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.purging import purge_binlog

pytestmark = pytest.mark.servers
_FOREIGN = "aaaaaaaa-0000-4000-8000-00000000000a"


class Shop:
    """A database on a server of its own, whose binlog may be thrown away, and a checkpoint as Spark writes it."""

    def __init__(self, mysql: MySqlAddress, kafka: str, prefix: str, root: Path) -> None:
        self.mysql, self.kafka, self.prefix, self.place = mysql, kafka, prefix, root / "checkpoint"
        self.signals = root / "signals"
        self.root = str(self.place / "incsnap")
        self.jobs: list[PlannedJob] = []
        self._connection = connect(mysql)
        self.reset_statement = reset_statement(self._connection)
        self.run("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
        for table in ("a", "b"):
            self.run(
                f"CREATE TABLE shop.{table} (id INT PRIMARY KEY, v INT)", f"INSERT INTO shop.{table} VALUES (1, 1)"
            )

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def settings(self, mode: str = "when_needed") -> Settings:
        return settings_of(
            self.mysql,
            self.kafka,
            self.prefix,
            "shop",
            snapshot__mode=mode,
            checkpoint__location=str(self.place),
            signal__enabled__channels="file",
            signal__file=str(self.signals),
            notification__enabled__channels="sink",
            notification__sink__topic__name=f"{self.prefix}-notifications",
        )

    def start(self, mode: str = "when_needed") -> PlannedJob:
        """Start a job on the checkpoint as the driver does."""
        settings = self.settings(mode)
        begin_again_where_lost(settings, self.root)
        job = PlannedJob(settings, self.root)
        job.offset = newest_offset(str(self.place)) or first_offset(self.root, lambda: job.offset)
        self.jobs.append(job)
        return job

    def stop(self, job: PlannedJob) -> Offset:
        """Record the job's last batch in Spark's logs as done, close the job, and return its offset."""
        for log, content in (("offsets", "v1\n{}\n" + json.dumps(job.offset.dump())), ("commits", "v1\n{}")):
            folder = self.place / "spark" / log
            folder.mkdir(parents=True, exist_ok=True)
            (folder / str(job.offset.batch - 1)).write_text(content)
        job.close()
        return job.offset

    def purge(self) -> None:
        self.run("FLUSH BINARY LOGS")
        purge_binlog(self._connection)

    def sent(self, job: PlannedJob, table: str = "a") -> list[tuple[str, int, int]]:
        """Return (op, id, v) of each record that the job has sent for the table."""
        values = [each.value for each in job.of(f"{self.prefix}.shop.{table}")]
        return [(value["op"], value["after"]["id"], value["after"]["v"]) for value in values]

    def notified(self, job: PlannedJob, kind: str) -> list[str]:
        values = [each.value for each in job.of(f"{self.prefix}-notifications")]
        return [value["id"] for value in values if value["type"] == kind]

    def stop_midway_in_keys(self, job: PlannedJob) -> Offset:
        """Ask for two keys of `b`, which has rows 1 to 3. Stop the job when it has written their list down."""
        self.run("INSERT INTO shop.b VALUES (2, 1), (3, 1)")
        data = {"incsnap-keys": [{"id": 1}, {"id": 7}], "incsnap-absent": "delete"}
        send.to_file(str(self.signals), "keys", "execute-snapshot", {**send.snapshot_data(["shop.b"]), **data})
        job.batches_until(lambda: any(scan.keys for scan in job.offset.snapshot.scans), "a list of keys")
        return self.stop(job)

    def of_keys(self, job: PlannedJob) -> list[tuple[str, int]]:
        """Return (op, id) of each record of table `b` that a snapshot has sent; `t` for a tombstone."""
        sent = [("t" if each.value is None else each.value["op"], each) for each in job.of(f"{self.prefix}.shop.b")]
        return sorted((op, each.key["id"]) for op, each in sent if op in "rdt")

    def close(self) -> None:
        for job in self.jobs:
            job.close()
        self._connection.close()


@pytest.fixture
def shop(
    own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shop]:
    monkeypatch.setattr(lost_place, "_CATCH_UP_SECONDS", 0.3)
    with closing(Shop(own_mysql, kafka_address, topic_prefix, tmp_path)) as made:
        yield made


def until_read(job: PlannedJob) -> None:
    job.batches_until(lambda: job.offset.has_no_snapshot_left, "end of the snapshot")


def test_a_job_that_lacks_nothing_goes_on(shop: Shop) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run("INSERT INTO shop.a VALUES (2, 1)")

    again = shop.start()
    again.until(f"{shop.prefix}.shop.a")

    assert again.offset.job_id == before.job_id
    assert shop.sent(again) == [("c", 2, 1)]


def test_a_job_whose_binlog_is_gone_begins_again_with_all_rows(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run("UPDATE shop.a SET v = 2", "INSERT INTO shop.a VALUES (2, 2)")
    lost = GtidSet.parse(shop.run("SELECT @@global.gtid_executed")[0][0]) - before.stream.delivered
    shop.purge()
    (finding,) = [each for each in findings(shop.settings(), before.stream.delivered) if each.name == "gtid_purged"]
    assert (finding.severity, "begins again" in finding.repair) == ("warning", True)

    again = shop.start()
    until_read(again)
    shop.run("UPDATE shop.a SET v = 3 WHERE id = 1")
    again.until(f"{shop.prefix}.shop.a", 3)

    assert again.offset.job_id != before.job_id
    assert shop.sent(again) == [("r", 1, 2), ("r", 2, 2), ("u", 1, 3)]
    assert shop.sent(again, "b") == [("r", 1, 1)]
    assert f"the binlog no longer holds {lost}, which was not delivered" in caplog.text
    assert "snapshot.mode=when_needed: the job begins again" in caplog.text


def test_a_job_that_had_sent_what_the_server_does_not_know_begins_again(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run(shop.reset_statement, "UPDATE shop.a SET v = 5")

    again = shop.start()
    until_read(again)

    assert again.offset.job_id != before.job_id
    assert shop.sent(again) == [("r", 1, 5)]
    assert "the server does not know" in caplog.text


def test_a_job_without_rows_begins_again_behind_the_gap_and_sends_only_what_follows(shop: Shop) -> None:
    job = shop.start("when_needed_no_data")
    shop.run("UPDATE shop.a SET v = 2")
    job.batches_until(lambda: ("u", 1, 2) in shop.sent(job), "an update")
    before = shop.stop(job)
    shop.run("UPDATE shop.a SET v = 3")
    shop.purge()

    problems = findings(shop.settings("when_needed_no_data"), before.stream.delivered)
    (finding,) = [each for each in problems if each.name == "gtid_purged"]
    again = shop.start("when_needed_no_data")
    shop.run("UPDATE shop.a SET v = 4")
    again.batches_until(lambda: ("u", 1, 4) in shop.sent(again), "an update")

    assert "reads no rows" in finding.repair
    assert finding.severity == "warning"
    assert again.offset.job_id != before.job_id
    assert shop.sent(again) == [("u", 1, 4)]
    assert shop.notified(again, "STARTED") == []


@pytest.mark.parametrize("mode", ["initial", "no_data", "always"])
def test_no_other_mode_begins_again(shop: Shop, mode: str) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    begin_again_where_lost(shop.settings(mode), shop.root)

    assert newest_offset(str(shop.place)) == before


def test_signals_are_not_obeyed_twice_and_what_they_asked_for_is_read(shop: Shop) -> None:
    job = shop.start("no_data")
    send.to_file(str(shop.signals), "old", "execute-snapshot", send.snapshot_data(["shop.b"]))
    job.batches_until(lambda: "old" in shop.notified(job, "COMPLETED"), "end of an earlier snapshot")
    send.to_file(str(shop.signals), "mine", "execute-snapshot", send.snapshot_data(["shop.b"]))
    job.batches_until(lambda: "mine" in shop.notified(job, "STARTED"), "start of the snapshot")
    assert job.offset.snapshot.active
    shop.stop(job)
    shop.run("UPDATE shop.b SET v = 2")
    shop.purge()

    again = shop.start()
    until_read(again)

    assert shop.notified(again, "STARTED") == [f"initial-{again.offset.job_id}"]
    assert sorted(shop.notified(again, "COMPLETED")) == sorted([f"initial-{again.offset.job_id}", "mine"])
    assert shop.sent(again, "b") == [("r", 1, 2), ("r", 1, 2)]


def test_a_list_of_keys_that_is_being_read_stays_a_list_and_still_sends_deletions(shop: Shop) -> None:
    before = shop.stop_midway_in_keys(shop.start("no_data"))
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    again = shop.start()
    until_read(again)

    assert again.offset.job_id != before.job_id
    assert set(shop.notified(again, "COMPLETED")) == {f"initial-{again.offset.job_id}", "keys"}
    # The job's own snapshot reads rows 1 to 3, and the list reads row 1.
    assert shop.of_keys(again) == [("d", 7), ("r", 1), ("r", 1), ("r", 2), ("r", 3), ("t", 7)]


def test_a_snapshot_of_the_start_that_is_not_done_gives_way_to_that_of_the_new_job(shop: Shop) -> None:
    job = shop.start()
    job.batch()
    before = shop.stop(job)
    assert before.snapshot.active
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    again = shop.start()
    until_read(again)

    assert shop.notified(again, "ABORTED") == [f"initial-{before.job_id}"]
    assert shop.notified(again, "COMPLETED") == [f"initial-{again.offset.job_id}"]
    assert shop.sent(again) == [("r", 1, 2)]


def test_a_pause_of_the_old_job_does_not_hold_the_tables_back(shop: Shop) -> None:
    job = shop.start("no_data")
    send.to_file(str(shop.signals), "mine", "execute-snapshot", send.snapshot_data(["shop.b"]))
    send.to_file(str(shop.signals), "wait", "pause-snapshot", {})
    job.batches_until(lambda: job.offset.snapshot.paused, "pause")
    shop.stop(job)
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    again = shop.start()
    until_read(again)

    assert set(shop.notified(again, "COMPLETED")) == {f"initial-{again.offset.job_id}", "mine"}
    assert shop.sent(again) == [("r", 1, 2)]


def test_the_new_job_knows_the_tables_of_tools(shop: Shop) -> None:
    def swap_of(run: list[str]) -> int:
        return next(number for number, sql in enumerate(run) if sql.startswith("rename"))

    job = shop.start()
    until_read(job)
    ended, running = gh_ost("shop", "b", drops_old=False), gh_ost("shop", "a")
    swap = swap_of(ended)
    shop.run(*ended[:swap], "INSERT INTO shop._b_gho (id, v) SELECT id, v FROM shop.b", *ended[swap:])
    job.batches_until(
        lambda: online_tables_at(shop.settings(), job.offset).names() == {"shop._b_del"}, "the swap of gh-ost"
    )
    shop.stop(job)
    swap = swap_of(running)
    shop.run(*running[:swap], "UPDATE shop.a SET v = 2")
    shop.purge()

    again = shop.start()
    until_read(again)
    shop.run("INSERT INTO shop._a_gho (id, v) SELECT id, v FROM shop.a", *running[swap:], "UPDATE shop.a SET n = 3")
    again.batches_until(lambda: ("u", 1, 2) in shop.sent(again), "an update behind the second swap")

    assert [shop.sent(again, table) for table in ("a", "b")] == [[("r", 1, 2), ("u", 1, 2)], [("r", 1, 1)]]
    tools = [f"{shop.prefix}.shop.{name}" for name in ("_b_del", "_a_gho", "_a_ghc", "_a_del")]
    assert [again.of(topic) for topic in tools] == [[]] * 4


def test_a_producer_of_the_old_job_is_fenced(shop: Shop) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    client = ClientSettings(shop.kafka, {})
    zombie = BucketWriter(client, shop.prefix, before.job_id).open(1, before.batch + 1, "1:left")
    assert zombie is not None
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    shop.start()

    with zombie, pytest.raises(SinkError):
        zombie.commit()


class Crash(Exception):
    pass


def test_a_crash_anywhere_in_between_leaves_the_old_job_or_the_new_one(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()
    steps, breaking = 0, 0

    def breaks(name: str) -> Callable[..., Any]:
        works = getattr(Files, name)

        def step(self: Files, *arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == breaking:
                raise Crash
            return works(self, *arguments, **options)

        return step

    taken = set()
    with monkeypatch.context() as broken:
        for name in ("write", "delete", "delete_folder"):
            broken.setattr(Files, name, breaks(name))
        for number in range(1, 12):
            steps, breaking = 0, number
            with suppress(Crash):
                begin_again_where_lost(shop.settings(), shop.root)
            taken.add(steps)
    assert max(taken) > 5, "nothing was broken"

    again = shop.start()
    until_read(again)

    assert again.offset.job_id != before.job_id
    assert shop.sent(again) == [("r", 1, 2)]
    assert not (Path(shop.root) / "begun-again.json").exists()


def test_a_transaction_that_is_not_yet_visible_is_not_lost(shop: Shop) -> None:
    sent = GtidSet.parse(f"{_FOREIGN}:7")
    with closing(connect(shop.mysql)) as stalled, stalled.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{_FOREIGN}:7'")
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO shop.a VALUES (9, 9)")
        with closing(connect_by(shop.settings().mysql)) as connection:
            executed = GtidSet.parse(shop.run("SELECT @@global.gtid_executed")[0][0])
            assert not lost_behind(connection, executed, sent)
            shop.purge()
            with pytest.raises(ServerUnreachable, match=f"is not executed yet: {_FOREIGN}:7"):
                lost_behind(connection, GtidSet(), sent)
            cursor.execute("ROLLBACK")
            cursor.execute("SET gtid_next = 'AUTOMATIC'")
            assert lost_behind(connection, executed, sent).unknown == sent
