"""Tests of `incsnap.online.ddl.reread`: behind which statements a table is read again, and its topic then."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings
from incsnap.planner.chunk_readers import ReadOrders
from lab.addresses import MySqlAddress
from tests.support.online_runs import gh_ost, revert
from tests.support.planned_job import MakeJob, PlannedJob, ReadersAtHand, planned_jobs, settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

MakeSettings = Callable[..., Settings]
ROWS = 6


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    for table in ("items", "others", "bare"):
        key = "" if table == "bare" else " PRIMARY KEY"
        cursor.execute(f"CREATE TABLE {table} (id INT{key}, v VARCHAR(9), n INT)")
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s)", [(i, str(i), i) for i in range(1, ROWS + 1)])
    cursor.execute("CREATE TABLE ticks (id INT AUTO_INCREMENT PRIMARY KEY)")
    return cursor


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch wait for the server's definitions as long as a test waits.

    A batch that has waited for a second leaves the comparison to a later batch.
    """
    monkeypatch.setattr("incsnap.planner.server_port.WAIT_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def make_settings(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> MakeSettings:
    def make(**more: str) -> Settings:
        options = {
            "snapshot__mode": "initial",
            "incsnap__online__ddl__reread": "changed",
            "table__include__list": rf"{database}\.(items|others|ticks|bare)",
            "signal__enabled__channels": "",
            "notification__enabled__channels": "sink",
            "notification__sink__topic__name": f"{topic_prefix}-notifications",
            **more,
        }
        return settings_of(mysql_address, kafka_address, topic_prefix, database, **options)

    return make


@pytest.fixture
def make_job(make_settings: MakeSettings, tmp_path: Path) -> Iterator[MakeJob]:
    with planned_jobs(make_settings, tmp_path, one_checkpoint=True) as make:
        yield make


def stream(job: PlannedJob, cursor: Cursor) -> None:
    """Insert a row and wait until its event is sent, no snapshot runs, and no table is to be compared."""
    cursor.execute("INSERT INTO ticks VALUES ()")
    cursor.execute("SELECT DATABASE(), MAX(id) FROM ticks")
    ((database, key),) = cursor.fetchall()
    topic = f"{job.settings.topic_prefix}.{database}.ticks"
    job.batches_until(lambda: any(each.value["after"]["id"] == key for each in job.of(topic)), "the row's event")
    job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")


def begun(job: PlannedJob, cursor: Cursor) -> PlannedJob:
    """Let the job read all tables, and forget what it has sent of rows that were read."""
    stream(job, cursor)
    stream(job, cursor)
    return job


def notes(job: PlannedJob, type_: str) -> list[dict[str, str]]:
    """The notifications of a type about snapshots that the job has asked for by itself."""
    values = (each.value for each in job.of(job.settings.notifications.sink_topic or ""))
    return [each["additional_data"] for each in values if each["type"] == type_ and each["id"].startswith("reread-")]


def topic_of(job: PlannedJob, database: str, table: str = "items") -> dict[int, dict[str, Any]]:
    """The rows that a consumer of the topic has."""
    rows: dict[int, dict[str, Any]] = {}
    for each in job.of(f"{job.settings.topic_prefix}.{database}.{table}"):
        if each.value is None:
            continue
        after = each.value["after"]
        if after is None:
            rows.pop(each.key["id"], None)
        else:
            rows[after["id"]] = after
    return rows


def table_of(cursor: Cursor, table: str = "items") -> dict[int, dict[str, Any]]:
    cursor.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description or ()]
    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    return {row["id"]: row for row in rows}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ADD u VARCHAR(36) DEFAULT (UUID())",
        "ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))",
        "ALTER TABLE items ADD z INT NOT NULL",
        "ALTER TABLE items ADD g INT AS (n * 2) VIRTUAL, ADD s INT AS (n + 1) STORED",
        "ALTER TABLE items MODIFY n VARCHAR(20)",
        "ALTER TABLE items CHANGE n count BIGINT",
        "ALTER TABLE items RENAME COLUMN v TO n, RENAME COLUMN n TO v",
        "ALTER TABLE items MODIFY v VARCHAR(9) CHARACTER SET latin1, ALGORITHM=COPY",
    ],
    ids=["uuid", "expression", "implicit", "generated", "modify", "change", "swapped names", "charset"],
)
def test_the_topic_equals_the_table_behind_a_statement_that_gives_old_rows_values(
    cursor: Cursor, make_job: Any, database: str, statement: str
) -> None:
    job = begun(make_job(), cursor)
    # MySQL refuses a DEFAULT that differs on a replica in another format.
    cursor.execute(f"SET binlog_format = {'STATEMENT' if 'UUID' in statement else 'ROW'}")
    cursor.execute(statement)
    cursor.execute("SET binlog_format = ROW")
    cursor.execute("UPDATE items SET id = id + 100 WHERE id = 1")
    stream(job, cursor)

    assert topic_of(job, database) == table_of(cursor)
    (started,) = notes(job, "STARTED")
    assert started["data_collections"] == f"{database}.items"
    assert started["reason"].startswith(statement)
    (completed,) = notes(job, "TABLE_SCAN_COMPLETED")
    assert completed["total_rows_scanned"] == str(ROWS)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE items ADD x INT",
        "ALTER TABLE items ADD x INT NOT NULL DEFAULT 7",
        "ALTER TABLE items DROP n",
        "ALTER TABLE items DROP n, ADD m INT",
        "ALTER TABLE items MODIFY n BIGINT AFTER id",
        "ALTER TABLE items MODIFY v VARCHAR(200)",
        "ALTER TABLE items ALTER n SET DEFAULT 5",
        "CREATE INDEX i ON items (n)",
        "ALTER TABLE items ENGINE=InnoDB",
        "TRUNCATE TABLE items",
    ],
)
def test_a_table_is_not_read_again_if_consumers_know_all_values(cursor: Cursor, make_job: Any, statement: str) -> None:
    job = begun(make_job(), cursor)
    cursor.execute(statement)
    stream(job, cursor)
    stream(job, cursor)
    assert notes(job, "STARTED") == []
    if "ADD" in statement or "DROP" in statement or "MODIFY" in statement:
        job.restart(
            job.settings.model_copy(update={"snapshot": job.settings.snapshot.model_copy(update={"reread": "all"})})
        )
        cursor.execute("ALTER TABLE others DROP n")
        stream(job, cursor)
        assert [each["data_collections"].rpartition(".")[2] for each in notes(job, "STARTED")] == ["others"]


def test_two_statements_in_a_row_ask_for_one_snapshot(cursor: Cursor, make_job: Any, database: str) -> None:
    job = begun(make_job(), cursor)
    cursor.execute("ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    cursor.execute("INSERT INTO items (id) VALUES (50)")
    cursor.execute("ALTER TABLE items ADD w VARCHAR(36) DEFAULT (CONCAT('x', id))")
    stream(job, cursor)
    stream(job, cursor)
    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1


@pytest.mark.parametrize("reread", ["changed", "all"])
@pytest.mark.parametrize(
    "statements",
    [
        ["MODIFY n INT NOT NULL", "MODIFY n INT NULL"],
        [
            "MODIFY v VARCHAR(9) CHARACTER SET latin1",
            "MODIFY v VARBINARY(9)",
            "MODIFY v VARCHAR(9) CHARACTER SET utf8mb4",
        ],
        ["ADD x INT DEFAULT 5 NULL", "ALTER x DROP DEFAULT"],
        ["ADD x INT AS (id * 2) STORED", "MODIFY x INT"],
    ],
    ids=["null", "charset", "default", "generated"],
)
def test_what_the_first_of_two_statements_did_is_read_although_the_last_one_hides_it(
    cursor: Cursor, make_job: Any, database: str, statements: list[str], reread: str
) -> None:
    cursor.execute("SET SESSION sql_mode = ''")
    cursor.execute("UPDATE items SET n = NULL, v = 'Ã¤' WHERE id = 2")
    job = begun(make_job(incsnap__online__ddl__reread=reread), cursor)
    for statement in statements:
        cursor.execute(f"ALTER TABLE items {statement}")
    stream(job, cursor)
    stream(job, cursor)

    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1


def test_a_statement_during_the_snapshot_asks_once_more(
    cursor: Cursor, make_job: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(make_job(incremental__snapshot__chunk__size="1"), cursor)
    left, order = ["ALTER TABLE items ADD w VARCHAR(36) DEFAULT (CONCAT('x', id))"], ReadersAtHand.order

    def alter_after_some_chunks(self: ReadersAtHand, message: ReadOrders) -> None:
        order(self, message)
        if left and any(each.value["op"] == "r" and "u" in each.value["after"] for each in job.of(items)):
            cursor.execute(left.pop())

    items = f"{job.settings.topic_prefix}.{database}.items"
    monkeypatch.setattr(ReadersAtHand, "order", alter_after_some_chunks)
    cursor.execute("ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    stream(job, cursor)
    stream(job, cursor)
    assert left == []
    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 2


def test_a_job_that_dies_after_each_batch_asks_once(cursor: Cursor, make_job: Any, database: str) -> None:
    job = begun(make_job(incremental__snapshot__chunk__size="1"), cursor)
    cursor.execute("ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    deaths = 0
    while not (notes(job, "COMPLETED") and not job.offset.snapshot.active):
        if not job.batch():
            continue  # the tail of the new process has not read anything yet
        job.restart()
        deaths += 1
        assert deaths < 60
    assert deaths >= 3
    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1


def test_statements_while_the_job_is_stopped_are_obeyed(cursor: Cursor, make_job: Any, database: str) -> None:
    job = begun(make_job(), cursor)
    cursor.execute("ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    cursor.execute("ALTER TABLE others MODIFY n BIGINT")
    cursor.execute("DROP TABLE bare")
    job.restart(run="second")
    stream(job, cursor)
    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1


def test_a_table_that_is_replaced_in_two_steps_is_compared_with_what_it_was(
    cursor: Cursor, make_job: Any, database: str
) -> None:
    job = begun(make_job(), cursor)
    cursor.execute("CREATE TABLE copy LIKE items")
    cursor.execute("ALTER TABLE copy ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    cursor.execute("INSERT INTO copy (id, v, n) SELECT id, v, n FROM items")
    cursor.execute("RENAME TABLE items TO former")
    stream(job, cursor)
    cursor.execute("RENAME TABLE copy TO items")
    stream(job, cursor)
    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1


def test_a_table_that_is_dropped_and_created_again_has_no_old_rows(cursor: Cursor, make_job: Any) -> None:
    job = begun(make_job(), cursor)
    cursor.execute("DROP TABLE items")
    cursor.execute("CREATE TABLE items (id INT PRIMARY KEY, u VARCHAR(36) DEFAULT (CONCAT('x', id)))")
    cursor.execute("INSERT INTO items (id) VALUES (1)")
    stream(job, cursor)
    stream(job, cursor)
    assert notes(job, "STARTED") == []


def test_a_table_without_a_key_is_named_with_what_to_do(
    cursor: Cursor, make_job: Any, caplog: pytest.LogCaptureFixture
) -> None:
    job = begun(make_job(), cursor)
    cursor.execute("ALTER TABLE bare ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    stream(job, cursor)
    (ended,) = notes(job, "TABLE_SCAN_COMPLETED")
    assert ended["status"] == "NO_PRIMARY_KEY"
    assert "give it one" in caplog.text


def test_another_unique_key_in_place_of_a_primary_key_gives_old_rows_another_key(
    cursor: Cursor, make_job: Any, database: str
) -> None:
    cursor.execute("ALTER TABLE bare MODIFY id INT NOT NULL, MODIFY v VARCHAR(9) NOT NULL, ADD UNIQUE uk (id)")
    job = begun(make_job(), cursor)
    cursor.execute("ALTER TABLE bare DROP INDEX uk, ADD UNIQUE uk2 (v)")
    stream(job, cursor)

    (started,) = notes(job, "STARTED")
    assert started["reason"].endswith("the key is (v) now, and was (id)")
    keys = [each.key for each in job.of(f"{job.settings.topic_prefix}.{database}.bare")]
    assert [key for key in keys if "v" in key] == [{"v": str(i)} for i in range(1, ROWS + 1)]


def test_a_job_that_begins_to_look_says_what_it_does_not_know(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    job = begun(make_job(incsnap__online__ddl__reread="never"), cursor)
    assert not Path(job.root, "columns").exists()
    cursor.execute("ALTER TABLE items ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))")
    job.restart(make_settings())
    stream(job, cursor)
    assert notes(job, "STARTED") == []
    assert "it is not known what" in caplog.text
    cursor.execute("ALTER TABLE items ADD w VARCHAR(36) DEFAULT (CONCAT('x', id))")
    stream(job, cursor)
    assert len(notes(job, "STARTED")) == 1
    assert (
        Counter(json.loads(file.read_text())["is_complete"] for file in Path(job.root).glob("columns/*")) != Counter()
    )
    job.restart(make_settings(incsnap__online__ddl__reread="never"))
    stream(job, cursor)
    assert job.offset.signal_positions["columns"] == ""


@pytest.mark.parametrize(
    ("alter", "asks"),
    [("ADD u VARCHAR(36) DEFAULT (CONCAT('x', id))", True), ("ADD u INT", False), ("CHANGE n count INT", True)],
    ids=["expression", "null", "renamed"],
)
@pytest.mark.parametrize("two_step", [False, True], ids=["atomic", "two-step"])
def test_a_swap_of_a_tool_is_the_alter_table_that_it_makes(
    cursor: Cursor, make_job: Any, database: str, alter: str, asks: bool, two_step: bool
) -> None:
    job = begun(make_job(table__include__list=rf"{database}\..*"), cursor)
    for statement in gh_ost(database, "items", alter, two_step=two_step):
        cursor.execute(statement)
        if statement.endswith("AUTO_INCREMENT=11"):
            new = "count" if "count" in alter else "n"
            cursor.execute(f"INSERT INTO _items_gho (id, v, {new}) SELECT id, v, n FROM items")
    stream(job, cursor)
    stream(job, cursor)

    started = notes(job, "STARTED")
    assert len(started) == asks
    assert not job.of(f"{job.settings.topic_prefix}.{database}._items_gho")
    if asks:
        assert started[0]["reason"].startswith(f"ALTER TABLE `{database}`.`items` {alter}")
        assert topic_of(job, database) == table_of(cursor)


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_a_run_of_a_tool_and_its_revert_leave_the_topic_equal_to_the_table(
    cursor: Cursor, make_job: Any, database: str, at_once: bool
) -> None:
    job = begun(make_job(table__include__list=rf"{database}\..*"), cursor)
    for statement in gh_ost(database, "items", "DROP n", drops_old=False):
        cursor.execute(statement)
        if statement.endswith("AUTO_INCREMENT=11"):
            cursor.execute("INSERT INTO _items_gho SELECT id, v FROM items")
    if not at_once:
        stream(job, cursor)
    for statement in ("UPDATE items SET v = 'x' WHERE id = 1", "UPDATE _items_del SET v = 'x' WHERE id = 1"):
        cursor.execute(statement)
    for statement in revert(database, "items"):
        cursor.execute(statement)
    stream(job, cursor)
    stream(job, cursor)

    assert topic_of(job, database) == table_of(cursor)
    assert len(notes(job, "STARTED")) == 1
