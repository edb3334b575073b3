"""Tests of the signal set-binlog-position: the next start of a job begins at the place that the signal names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.first_offset import first_offset
from incsnap.checkpoint.status import newest_offset
from incsnap.config.settings import Settings
from incsnap.planner.begin_where_asked import begin_again_where_asked
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from signals import send
from tests.integration.test_begun_again import Shop
from tests.support.mysql_versions import end_of_binlog
from tests.support.planned_job import PlannedJob

pytestmark = pytest.mark.servers
_SIGNAL = "set-binlog-position"


class SignalledShop(Shop):
    """A shop with a signal table."""

    def settings(self, mode: str = "no_data") -> Settings:
        signals = {"channels": ("source", "file"), "data_collection": TableId("shop", "signals")}
        made = super().settings(mode)
        captured = made.tables.model_copy(update={"signal_table": signals["data_collection"]})
        return made.model_copy(update={"signals": made.signals.model_copy(update=signals), "tables": captured})

    def begin(self, mode: str = "no_data") -> PlannedJob:
        """Start a job on the checkpoint as the driver does."""
        settings = self.settings(mode)
        begin_again_where_asked(settings, self.root)
        job = PlannedJob(settings, self.root)
        job.offset = newest_offset(str(self.place)) or first_offset(self.root, lambda: job.offset)
        self.jobs.append(job)
        return job

    def ask(self, job: PlannedJob, data: dict[str, Any], number: int = 1) -> None:
        """Signal the job by a row of the signal table, and run batches until the row is read."""
        send.to_table(self._connection, "`shop`.`signals`", f"ask-{number}", _SIGNAL, data)
        self.mark(job, 1000 + number)

    def mark(self, job: PlannedJob, value: int) -> None:
        """Write a change, and run batches until the job has sent it."""
        self.run(f"UPDATE shop.b SET v = {value}")
        job.batches_until(lambda: ("u", 1, value) in self.sent(job, "b"), f"the change {value}")

    def executed(self) -> str:
        return str(self.run("SELECT @@global.gtid_executed")[0][0]).replace("\n", "")


@pytest.fixture
def shop(own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[SignalledShop]:
    with closing(SignalledShop(own_mysql, kafka_address, topic_prefix, tmp_path)) as made:
        made.run("CREATE TABLE shop.signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
        yield made


def test_the_next_start_sends_the_changes_behind_an_older_place_again_and_only_once_more(
    shop: SignalledShop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    job = shop.begin()
    shop.run("UPDATE shop.a SET v = 2")
    place = shop.executed()
    shop.run("UPDATE shop.a SET v = 3")
    job.batches_until(lambda: ("u", 1, 3) in shop.sent(job), "a change before the signal")
    shop.run("INSERT INTO shop.signals VALUES ('other', 'log', '{\"message\": \"before\"}')")
    job.batches_until(lambda: "before" in caplog.messages, "another signal")
    shop.ask(job, {"gtid_set": place})
    assert "Sent again then: " in caplog.text
    shop.run("UPDATE shop.a SET v = 4")
    job.batches_until(lambda: ("u", 1, 4) in shop.sent(job), "a change behind the signal")
    assert shop.sent(job) == [("u", 1, 2), ("u", 1, 3), ("u", 1, 4)]
    before = shop.stop(job)

    again = shop.begin()
    shop.run("UPDATE shop.a SET v = 5")
    again.batches_until(lambda: ("u", 1, 5) in shop.sent(again), "a change of now")
    assert again.offset.job_id != before.job_id
    assert shop.sent(again) == [("u", 1, 3), ("u", 1, 4), ("u", 1, 5)]
    assert "Signal ask-1 (set-binlog-position) was obeyed before" in caplog.text
    after = shop.stop(again)

    third = shop.begin()
    shop.mark(third, 17)
    assert third.offset.job_id == after.job_id
    assert shop.sent(third) == []


def test_the_next_start_leaves_out_what_lies_before_a_later_place(shop: SignalledShop) -> None:
    job = shop.begin()
    shop.mark(job, 11)
    shop.run("UPDATE shop.a SET v = 2")
    send.to_file(str(shop.signals), "skip", _SIGNAL, _end(shop))
    shop.stop(job)
    # The signal is read by a job that has not come to the change yet.
    job = shop.begin()
    end = job.planner.plan(job.offset)
    assert end != job.offset
    job.offset = end
    shop.stop(job)

    again = shop.begin()
    shop.mark(again, 13)

    assert shop.sent(again) == []


def test_no_table_is_read_at_the_place(shop: SignalledShop) -> None:
    job = shop.begin()
    shop.ask(job, {"gtid_set": shop.executed()})
    before = shop.stop(job)

    begin_again_where_asked(shop.settings("recovery"), shop.root)
    again = shop.begin("initial")
    shop.mark(again, 15)

    assert again.offset.job_id != before.job_id
    assert shop.notified(again, "STARTED") == []


def test_a_list_of_keys_that_is_being_read_stays_a_list_and_its_file_stays_while_it_waits(shop: SignalledShop) -> None:
    job = shop.begin()
    shop.ask(job, {"gtid_set": shop.executed()})
    before = shop.stop_midway_in_keys(job)

    again = shop.begin()
    send.to_file(str(shop.signals), "wait", "pause-snapshot", {})
    for value in range(20):  # The list's file goes 16 batches after the last offset that names it.
        shop.mark(again, 20 + value)
    assert (again.offset.snapshot.paused, again.offset.snapshot.active) == (True, True)
    send.to_file(str(shop.signals), "go", "resume-snapshot", {})
    again.batches_until(lambda: again.offset.has_no_snapshot_left, "end of the snapshot")

    assert again.offset.job_id != before.job_id
    assert shop.notified(again, "COMPLETED") == ["keys"]
    assert shop.of_keys(again) == [("d", 7), ("r", 1), ("t", 7)]


def test_a_place_that_is_purged_or_of_another_server_is_refused(
    shop: SignalledShop, caplog: pytest.LogCaptureFixture
) -> None:
    job = shop.begin()
    old = shop.executed()
    shop.mark(job, 11)
    shop.purge()
    shop.ask(job, {"gtid_set": old}, 1)
    shop.ask(job, {"gtid_set": f"{old},aaaaaaaa-0000-4000-8000-00000000000a:1"}, 2)
    shop.ask(job, {"binlog_filename": "binlog.000001", "binlog_position": 4}, 3)
    before = shop.stop(job)

    assert "Signal ask-1 is ignored: incsnap.start.gtid.set: the binlog no longer holds" in caplog.text
    assert "Signal ask-2 is ignored: incsnap.start.gtid.set: the server does not know aaaaaaaa" in caplog.text
    assert "Signal ask-3 is ignored: incsnap.start.binlog.file: the server has no binlog file" in caplog.text
    begin_again_where_asked(shop.settings(), shop.root)
    assert newest_offset(str(shop.place)) == before


def test_a_place_that_is_purged_before_the_next_start_is_dropped(
    shop: SignalledShop, caplog: pytest.LogCaptureFixture
) -> None:
    job = shop.begin()
    shop.ask(job, {"gtid_set": shop.executed()})
    before = shop.stop(job)
    shop.purge()

    begin_again_where_asked(shop.settings(), shop.root)

    assert "Signal ask-1 cannot be obeyed any more" in caplog.text
    assert newest_offset(str(shop.place)) == before


def _end(shop: SignalledShop) -> dict[str, Any]:
    with closing(connect(shop.mysql)) as connection:
        file, position = end_of_binlog(connection)
    return {"binlog_filename": file, "binlog_position": position}
