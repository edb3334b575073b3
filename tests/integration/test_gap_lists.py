"""Tests of a job that begins again with `incsnap.gap.recovery=differences`: the planner obeys the answers of the
comparison, each in one batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import GapAnswer, GapFiles, TableAnswer
from incsnap.config.settings import Settings
from incsnap.gtid import GtidSet
from incsnap.mysql import lost_place
from incsnap.mysql.preflight import findings
from incsnap.planner.begin_again import begin_again_where_lost
from incsnap.planner.begin_where_asked import begin_again_where_asked
from incsnap.tables import TableId
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap import GapCourse, in_groups
from lab.addresses import MySqlAddress
from signals import send
from tests.integration.test_begun_again import Shop, until_read
from tests.support.online_runs import gh_ost
from tests.support.planned_job import PlannedJob

pytestmark = pytest.mark.servers


class DifferingShop(Shop):
    """A shop whose job closes gaps by differences."""

    def settings(self, mode: str = "when_needed") -> Settings:
        settings = super().settings(mode)
        return settings.model_copy(
            update={"snapshot": settings.snapshot.model_copy(update={"gap_recovery": "differences"})}
        )

    def gap(self, job: PlannedJob) -> GapFiles:
        return GapFiles(Files(self.root), job.offset.job_id)

    def of_table(self, job: PlannedJob, table: str = "a") -> list[tuple[str, int]]:
        """Return (op, id) of each record; `t` for a tombstone."""
        return [
            ("t" if each.value is None else each.value["op"], each.key["id"])
            for each in job.of(f"{self.prefix}.shop.{table}")
        ]


@pytest.fixture
def shop(
    own_mysql: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DifferingShop]:
    monkeypatch.setattr(lost_place, "_CATCH_UP_SECONDS", 0.3)
    with closing(DifferingShop(own_mysql, kafka_address, topic_prefix, tmp_path)) as made:
        yield made


def begun_again(shop: DifferingShop) -> PlannedJob:
    """Return a job that begins again behind a purged binlog, in which row 1 of `a` was deleted and row 2 inserted."""
    job = shop.start()
    until_read(job)
    shop.stop(job)
    shop.run("DELETE FROM shop.a", "INSERT INTO shop.a VALUES (2, 2)")
    shop.purge()
    return shop.start()


def test_nothing_is_read_until_an_answer_is_there_and_changes_are_streamed(shop: DifferingShop) -> None:
    again = begun_again(shop)
    behind = shop.gap(again).behind()
    assert behind == GtidSet.parse(shop.run("SELECT @@global.gtid_executed")[0][0])
    shop.run("INSERT INTO shop.a VALUES (3, 3)")

    again.until(f"{shop.prefix}.shop.a")

    assert shop.of_table(again) == [("c", 3)]
    assert shop.notified(again, "STARTED") == []
    assert shop.gap(again).is_open()


def test_each_answer_is_obeyed_once_also_by_a_job_that_is_started_again(shop: DifferingShop) -> None:
    job = begun_again(shop)
    gap, id_ = shop.gap(job), job.offset.job_id[:8]
    keys = gap.write_keys(1, "0-0", [b'{"id":1}', b'{"id":2}'])
    gap.write_answer(1, GapAnswer((TableAnswer("shop.a", keys, 2),), ("shop.a",), is_last=False))
    job.batches_until(lambda: bool(shop.notified(job, "COMPLETED")), "end of the first answer")
    assert sorted(shop.of_table(job)) == [("d", 1), ("r", 2), ("t", 1)]
    shop.stop(job)

    again = shop.start()
    gap.write_answer(2, GapAnswer((TableAnswer("shop.b", whole=True, reason="no key"),), ("shop.b",), is_last=True))
    again.batches_until(lambda: bool(shop.notified(again, "COMPLETED")), "end of the second answer")

    assert again.offset.job_id == job.offset.job_id
    assert shop.notified(again, "COMPLETED") == [f"gap-{id_}-2"]
    assert shop.of_table(again) == []
    assert shop.of_table(again, "b") == [("r", 1)]
    assert again.offset.signal_positions["gap"] == "closed"
    assert not gap.is_open()


@pytest.mark.parametrize("is_compared", [False, True])
def test_a_gap_that_is_not_repaired_is_compared_again_by_a_job_at_another_place(
    shop: DifferingShop, *, is_compared: bool
) -> None:
    job = begun_again(shop)
    gap = shop.gap(job)
    place = str(shop.run("SELECT @@global.gtid_executed")[0][0]).replace("\n", "")
    send.to_file(str(shop.signals), "skip", "set-binlog-position", {"gtid_set": place})
    job.batches_until(lambda: Files(shop.root).exists("asked-place.json"), "another place")
    if is_compared:  # and the list of the last answer is not sent
        keys = gap.write_keys(1, "0-0", [b'{"id":1}'])
        gap.write_answer(1, GapAnswer((TableAnswer("shop.a", keys, 1),), ("shop.a", "shop.b"), is_last=True))
        job.batches_until(lambda: job.offset.signal_positions["gap"] == "closed", "the last answer")
        assert job.offset.snapshot.active
    before = shop.stop(job)

    begin_again_where_asked(shop.settings(), shop.root)
    again = shop.start()
    assert again.offset.job_id != before.job_id
    assert shop.gap(again).is_open()
    assert shop.gap(again).behind() == GtidSet.parse(place)
    assert not gap.is_open()
    keys = shop.gap(again).write_keys(1, "0-0", [b'{"id":1}', b'{"id":2}'])
    answer = GapAnswer((TableAnswer("shop.a", keys, 2),), ("shop.a", "shop.b"), is_last=True)
    shop.gap(again).write_answer(1, answer)
    again.batches_until(lambda: bool(shop.notified(again, "COMPLETED")), "end of the answer")

    assert sorted(shop.of_table(again)) == [("d", 1), ("r", 2), ("t", 1)]
    assert shop.notified(again, "COMPLETED") == [f"gap-{again.offset.job_id[:8]}-1"]
    assert shop.notified(again, "ABORTED") == ([f"gap-{before.job_id[:8]}-1"] if is_compared else [])


def test_a_table_of_many_keys_and_a_table_that_is_read_whole_come_in_several_snapshots(shop: DifferingShop) -> None:
    job = begun_again(shop)
    gap, id_ = shop.gap(job), job.offset.job_id[:8]
    lists = [gap.write_keys(1, f"0-{number}", [b'{"id":%d}' % number]) for number in (1, 5)]
    tables = (
        TableAnswer("shop.a", whole=True),
        *(TableAnswer("shop.a", name, 1) for name in lists),
        TableAnswer("shop.b", whole=True),
    )
    gap.write_answer(1, GapAnswer(tables, ("shop.a", "shop.b"), is_last=True))

    until_read(job)
    job.batches_until(lambda: len(shop.notified(job, "COMPLETED")) == 3, "end of all snapshots")

    assert set(shop.notified(job, "COMPLETED")) == {f"gap-{id_}-1", f"gap-{id_}-1-2", f"gap-{id_}-1-3"}
    assert sorted(shop.of_table(job)) == [("d", 1), ("d", 5), ("r", 2), ("t", 1), ("t", 5)]


def test_a_second_gap_forgets_the_answers_and_stops_the_repair_of_the_first(shop: DifferingShop) -> None:
    job = begun_again(shop)
    first = shop.gap(job)
    keys = first.write_keys(1, "0-0", [b'{"id":2}'])
    first.write_answer(1, GapAnswer((TableAnswer("shop.a", keys, 1),), ("shop.a", "shop.b"), is_last=True))
    send.to_file(str(shop.signals), "wait", "pause-snapshot", {})
    job.batches_until(lambda: bool(shop.notified(job, "STARTED")), "start of the repair")
    shop.stop(job)
    shop.run("UPDATE shop.b SET v = 2")
    shop.purge()

    again = shop.start()
    again.batches_until(lambda: bool(shop.notified(again, "ABORTED")), "end of the first repair")

    assert first.behind() is None
    assert shop.gap(again).is_open()
    assert again.offset.has_no_snapshot_left
    assert shop.of_table(again) == []


def test_a_server_that_has_used_delivered_gtids_again_is_a_gap(shop: DifferingShop) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run(shop.reset_statement, *["UPDATE shop.a SET v = v + 1"] * (len(before.stream.delivered) + 50))
    executed = GtidSet.parse(shop.run("SELECT @@global.gtid_executed")[0][0])
    assert before.stream.delivered <= executed, "the server must have used all of them again"

    again = shop.start()
    again.batch()

    assert again.offset.job_id != before.job_id
    assert shop.gap(again).behind() == executed


def test_without_the_setting_such_a_server_is_no_gap(shop: DifferingShop) -> None:
    job = shop.start()
    until_read(job)
    before = shop.stop(job)
    shop.run(shop.reset_statement, *["UPDATE shop.a SET v = v + 1"] * (len(before.stream.delivered) + 50))

    begin_again_where_lost(Shop.settings(shop), shop.root)

    assert not (Path(shop.root) / "gap").exists()
    assert before.job_id in (Path(shop.root) / "first-offset.json").read_text()


def test_tables_that_cannot_be_compared_are_read_whole_and_named(
    shop: DifferingShop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.run("CREATE TABLE shop.bare (v INT)", "INSERT INTO shop.bare VALUES (1)", "INSERT INTO shop.b VALUES (7, 7)")
    job = begun_again(shop)
    settings = shop.settings()
    chosen = settings.snapshot.model_copy(update={"include": (r"shop\.(b|bare)",), "conditions": {"shop.b": "v > 1"}})
    settings = settings.model_copy(update={"snapshot": chosen})
    no_spark: Any = None
    course = GapCourse(no_spark, settings, shop.root, job.offset.job_id, Allowance())
    assert course.is_open()

    course.run(alone=False)

    assert not course.is_open()
    assert (
        "shop.bare cannot be compared, so the table is read whole. Deletions made in the gap are not sent: It has no"
        in (caplog.text)
    )
    assert "snapshot.select.statement.overrides chooses its rows" in caplog.text
    (answer,) = shop.gap(job).answers()
    assert {(each.table, each.whole, bool(each.reason)) for each in answer.tables} == {
        ("`shop`.`b`", True, True),
        ("`shop`.`bare`", True, True),
    }


def test_tables_of_tools_are_neither_compared_nor_read(shop: DifferingShop) -> None:
    job = begun_again(shop)
    shop.run(*gh_ost("shop", "b")[:3], "INSERT INTO shop._b_gho SELECT * FROM shop.b")
    shop.run("INSERT INTO shop._b_ghc (hint, value) VALUES ('state', 'copying')")
    settings = shop.settings()
    chosen = settings.snapshot.model_copy(update={"include": (r"shop\..*b.*",), "conditions": {"shop.b": "v > 1"}})
    no_spark: Any = None
    course = GapCourse(
        no_spark, settings.model_copy(update={"snapshot": chosen}), shop.root, job.offset.job_id, Allowance()
    )

    course.run(alone=False)

    (answer,) = shop.gap(job).answers()
    assert [each.table for each in answer.tables] == ["`shop`.`b`"]
    assert answer.named == ("shop.b",)


def test_small_tables_are_compared_together_and_large_ones_alone() -> None:
    tables = {TableId("shop", name): rows for name, rows in (("a", 10), ("b", 5_000_000), ("c", 20), ("d", 30))}

    assert [[table.table for table in group] for group in in_groups(tables)] == [["a"], ["b"], ["c", "d"]]
    assert in_groups({}) == []


def test_check_says_that_a_gap_is_closed_by_what_differs(shop: DifferingShop) -> None:
    job = shop.start()
    before = shop.stop(job)
    shop.run("UPDATE shop.a SET v = 2")
    shop.purge()

    (finding,) = [each for each in findings(shop.settings(), before.stream.delivered) if each.name == "gtid_purged"]

    assert finding.repair.endswith("the job begins again and sends what differs")
