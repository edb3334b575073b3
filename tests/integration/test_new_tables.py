"""Tests of `snapshot.new.tables`: which tables are read because they become captured, and when."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings
from incsnap.planner.chunk_readers import ReadOrders
from lab.addresses import MySqlAddress
from tests.support.planned_job import MakeJob, PlannedJob, ReadersAtHand, planned_jobs, settings_of

pytestmark = pytest.mark.servers

MakeSettings = Callable[..., Settings]


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    for table in ("first", "second", "hidden"):
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9))")
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", [(1, "a"), (2, "b"), (3, "c")])
    return cursor


@pytest.fixture
def make_settings(
    mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str, tmp_path: Path
) -> MakeSettings:
    def make(tables: str = "first", **more: str) -> Settings:
        options = {
            "snapshot__mode": "no_data",
            "snapshot__new__tables": "parallel",
            "table__include__list": ",".join(rf"{database}\.{table}" for table in tables.split()),
            "signal__enabled__channels": "file",
            "signal__file": str(tmp_path / "signals"),
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


def stream(job: PlannedJob, cursor: Cursor, table: str = "first") -> None:
    """Insert a row and wait until its event is sent and no snapshot runs."""
    cursor.execute(f"INSERT INTO {table} SELECT MAX(id) + 1, 'x' FROM {table}")
    cursor.execute(f"SELECT DATABASE(), MAX(id) FROM {table}")
    ((database, key),) = cursor.fetchall()
    topic = f"{job.settings.topic_prefix}.{database}.{table}"
    job.batches_until(
        lambda: any(each.value["op"] == "c" and each.value["after"]["id"] == key for each in job.of(topic)),
        "the row's event",
    )
    job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")


def reads(job: PlannedJob) -> dict[str, int]:
    """The number of rows that were read of each table."""
    read = (each.topic for each in job.sent if isinstance(each.value, dict) and each.value.get("op") == "r")
    return dict(Counter(topic.rpartition(".")[2] for topic in read))


def started(job: PlannedJob) -> int:
    """The number of snapshots that have started."""
    notes = (each.value for each in job.of(job.settings.notifications.sink_topic or ""))
    return sum(note["type"] == "STARTED" for note in notes)


def test_only_the_new_tables_of_a_wider_list_are_read_and_only_once(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings
) -> None:
    job = make_job()
    stream(job, cursor)
    assert reads(job) == {}

    job.restart(make_settings("first second"))
    stream(job, cursor)
    assert reads(job) == {"second": 3}
    job.restart(make_settings("first second"))
    stream(job, cursor, "second")
    assert (reads(job), started(job)) == ({"second": 3}, 1)


def test_a_job_that_dies_after_each_batch_reads_a_new_table_once(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings
) -> None:
    cursor.executemany("INSERT INTO second VALUES (%s, 'x')", [(key,) for key in range(10, 90)])
    job = make_job()
    stream(job, cursor)
    wider = make_settings("first second", incremental__snapshot__chunk__size="2")
    parts: list[int] = []
    job.restart(wider, run="second")
    deaths = 0
    while not (parts and not job.offset.snapshot.active):
        if not job.batch():
            continue  # the tail of the new process has not read anything yet
        if (rows := reads(job).get("second", 0)) > sum(parts):
            parts.append(rows - sum(parts))
        deaths += job.offset.snapshot.active
        job.restart(wider, run=f"run {deaths}")
    assert deaths >= 2
    assert reads(job) == {"second": 83}
    assert started(job) == 1


def test_a_table_that_the_lists_left_out_for_a_while_is_read_again(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings
) -> None:
    job = make_job()
    stream(job, cursor)
    for tables in ("second", "first second"):
        job.restart(make_settings(tables))
        stream(job, cursor, "second")

    # `second` has one row more than at first when it becomes captured, or its event comes instead.
    assert reads(job)["first"] == 4
    assert started(job) == 2


@pytest.mark.parametrize("how", ["off", "left out", "all"])
def test_new_tables_are_not_read_where_the_settings_say_so(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings, how: str, database: str
) -> None:
    wider = {
        "off": {"snapshot__new__tables": "off"},
        "left out": {"snapshot__include__collection__list": rf"{database}\.first"},
        "all": {"snapshot__mode": "always"},
    }[how]
    job = make_job()
    stream(job, cursor)
    job.restart(make_settings("first second", **wider), run="second")
    stream(job, cursor)
    job.restart(make_settings("first second"))
    stream(job, cursor)

    assert reads(job) == ({"first": 4, "second": 3} if how == "all" else {})


def test_the_condition_of_a_new_table_is_obeyed(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings, database: str
) -> None:
    job = make_job()
    stream(job, cursor)
    name = "snapshot.select.statement.overrides"
    wider = {name: f"{database}.second", f"{name}.{database}.second": f"SELECT * FROM {database}.second WHERE id > 1"}
    options = {key.replace(".", "__"): value for key, value in wider.items()}
    job.restart(make_settings("first second", **options))
    stream(job, cursor)

    assert reads(job) == {"second": 2}


def test_a_table_whose_rows_are_imported_is_read(cursor: Cursor, make_job: Any, database: str, tmp_path: Path) -> None:
    cursor.execute("SELECT @@datadir")
    ((place,),) = cursor.fetchall()
    folder = Path(place) / database
    if not (folder / "hidden.ibd").exists():
        pytest.skip("the files of the server are not on this machine")
    job = make_job(tables="first third")
    stream(job, cursor)
    cursor.execute("FLUSH TABLES hidden FOR EXPORT")
    shutil.copy(folder / "hidden.ibd", tmp_path / "third.ibd")
    cursor.execute("UNLOCK TABLES")
    cursor.execute("CREATE TABLE third LIKE hidden")
    cursor.execute("ALTER TABLE third DISCARD TABLESPACE")
    shutil.copy(tmp_path / "third.ibd", folder / "third.ibd")
    cursor.execute("ALTER TABLE third IMPORT TABLESPACE")
    stream(job, cursor)

    assert reads(job) == {"third": 3}


@pytest.mark.parametrize(
    ("statements", "read"),
    [
        (("RENAME TABLE hidden TO third",), {"third": 3}),
        (("ALTER TABLE hidden RENAME TO Third",), {"Third": 3}),
        (("RENAME TABLE hidden TO other, other TO third",), {"third": 3}),
        # `second` is captured: its rows are in its own topic, and rows of a table that moves are not read again.
        (("RENAME TABLE second TO third",), {}),
        # One table takes the place of another, as behind an online ALTER.
        (("RENAME TABLE second TO away, hidden TO second",), {}),
    ],
)
def test_a_table_that_is_renamed_into_the_lists_is_read(
    cursor: Cursor, make_job: Any, statements: tuple[str, ...], read: dict[str, int]
) -> None:
    job = make_job(tables="first second third")
    stream(job, cursor)
    for statement in statements:
        cursor.execute(statement)
    stream(job, cursor)

    assert reads(job) == read


@pytest.mark.parametrize(
    ("statements", "read"),
    [
        (("RENAME TABLE hidden TO third",), {"third": 3}),
        (("RENAME TABLE hidden TO second", "ALTER TABLE second RENAME TO third"), {"third": 3}),
        (
            ("RENAME TABLE hidden TO fourth", "RENAME TABLE fourth TO second", "RENAME TABLE second TO third"),
            {"third": 3},
        ),
        # `hidden` is another table now, which is read in its place.
        (("RENAME TABLE hidden TO third, other TO hidden",), {"hidden": 1}),
    ],
)
@pytest.mark.parametrize("batches", ["one for each statement", "as they come"])
def test_a_new_table_that_is_renamed_before_it_is_read_is_read_under_its_new_name(
    cursor: Cursor,
    make_job: Any,
    make_settings: MakeSettings,
    monkeypatch: pytest.MonkeyPatch,
    statements: tuple[str, ...],
    read: dict[str, int],
    batches: str,
) -> None:
    if batches == "one for each statement":
        # Then the job opens a table under a name that the next statement has taken from the table.
        monkeypatch.setattr("incsnap.planner.schema_changes.alters_frame", lambda *_: True)
    cursor.execute("DROP TABLE second")
    cursor.execute("CREATE TABLE other (id INT PRIMARY KEY, v VARCHAR(9))")
    cursor.execute("INSERT INTO other VALUES (1, 'other')")
    job = make_job()
    stream(job, cursor)
    left, order = list(statements), ReadersAtHand.order

    def rename_first(self: ReadersAtHand, message: ReadOrders) -> None:
        if message.orders:
            while left:
                cursor.execute(left.pop(0))
        order(self, message)

    monkeypatch.setattr(ReadersAtHand, "order", rename_first)
    job.restart(make_settings("first second third fourth hidden"), run="second")
    stream(job, cursor)
    # The first row's event may come before the statements. The next one is behind them.
    stream(job, cursor)

    assert left == []
    assert reads(job) == read


def test_a_table_that_is_renamed_while_the_job_is_stopped_is_read(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings
) -> None:
    job = make_job(tables="first third")
    stream(job, cursor)
    cursor.execute("RENAME TABLE hidden TO third")
    cursor.execute("INSERT INTO third VALUES (4, 'd')")
    job.restart(make_settings("first third"))
    stream(job, cursor)

    # The event of the last row discards the row that was read, or is sent in a batch before.
    sent = job.of(next(each.topic for each in job.sent if each.topic.endswith(".third")))
    assert {each.value["after"]["id"] for each in sent} == {1, 2, 3, 4}
    assert {each.value["after"]["id"] for each in sent if each.value["op"] == "r"} >= {1, 2, 3}


def test_a_job_whose_filter_is_gone_reads_nothing_and_says_so(
    cursor: Cursor, make_job: Any, make_settings: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    job = make_job()
    stream(job, cursor)
    for file in Path(job.root).glob("filters/*"):
        file.unlink()
    job.restart(make_settings("first second"))
    stream(job, cursor)

    assert reads(job) == {}
    assert "it is not known which tables the job captured before" in caplog.text


@pytest.mark.parametrize("statement", ["RENAME TABLE second TO third", "RENAME TABLE second TO third, other TO second"])
def test_a_table_that_is_renamed_during_the_snapshot_of_a_signal_leaves_no_row_in_a_wrong_topic(
    cursor: Cursor, make_job: Any, monkeypatch: pytest.MonkeyPatch, database: str, tmp_path: Path, statement: str
) -> None:
    cursor.execute("CREATE TABLE other (id INT PRIMARY KEY, v VARCHAR(9))")
    cursor.execute("INSERT INTO other VALUES (7, 'other')")
    job = make_job(tables="first second third", incremental__snapshot__chunk__size="1")
    stream(job, cursor)
    left, order = [statement], ReadersAtHand.order

    def rename_after_one_chunk(self: ReadersAtHand, message: ReadOrders) -> None:
        if message.orders and left:
            order(self, message._replace(orders=message.orders[:1]))
            cursor.execute(left.pop())
            message = message._replace(orders=message.orders[1:])
        order(self, message)

    def signal(table: str) -> None:
        data = {"type": "incremental", "data-collections": [f"{database}.{table}"]}
        with (tmp_path / "signals").open("a") as file:
            file.write(json.dumps({"id": table, "type": "execute-snapshot", "data": data}) + "\n")

    monkeypatch.setattr(ReadersAtHand, "order", rename_after_one_chunk)
    signal("second")
    job.batches_until(lambda: not left, "the statement")
    stream(job, cursor)
    notes = (each.value for each in job.of(job.settings.notifications.sink_topic or ""))
    statuses = [note["additional_data"]["status"] for note in notes if note["type"] == "TABLE_SCAN_COMPLETED"]
    taken = "other" in statement
    assert statuses == ["SUCCEEDED" if taken else "UNKNOWN_SCHEMA"]
    ids = [each.value["after"]["id"] for each in job.of(f"{job.settings.topic_prefix}.{database}.second")]
    assert set(ids) <= ({1, 2, 3, 7} if taken else {1, 2, 3})
    assert (ids[-1:] == [7]) == taken
    signal("third")
    job.batches_until(lambda: reads(job).get("third") == 3, "the rows under the new name")
