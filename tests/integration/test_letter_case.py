"""A server with lower_case_table_names=1, on which names of tables are written in any letter case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incsnap.config.settings import Settings
from incsnap.mysql.preflight import findings
from incsnap.spark.frames import ChangesFrame
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from signals import send
from tests.support.frames import options
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, settings_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

_ROWS = [(1, "a"), (2, "b"), (3, "c")]


@pytest.fixture(scope="module")
def server() -> Iterator[MySqlAddress]:
    options = ["--server-id=84", "--lower-case-table-names=1"]
    with servers(kafka=False, mysql_options=options) as started:
        yield started.mysql


@pytest.fixture
def session(server: MySqlAddress) -> Iterator[Any]:
    with closing(connect(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE Inventory")
        for table in ("Orders", "Items"):
            cursor.execute(f"CREATE TABLE Inventory.{table} (Id INT PRIMARY KEY, Note VARCHAR(9))")
            cursor.executemany(f"INSERT INTO Inventory.{table} VALUES (%s, %s)", _ROWS)
        try:
            yield cursor
        finally:
            cursor.execute("DROP DATABASE Inventory")


@pytest.fixture
def make_settings(
    server: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path
) -> Callable[..., Settings]:
    def make(**more: str) -> Settings:
        options = {
            "signal__enabled__channels": "file",
            "signal__file": str(tmp_path / "signals"),
            "notification__enabled__channels": "sink",
            "notification__sink__topic__name": f"{topic_prefix}-notifications",
            **more,
        }
        return settings_of(server, kafka_address, topic_prefix, "INVENTORY", **options)

    return make


@pytest.fixture
def make_job(make_settings: Callable[..., Settings], tmp_path: Path, session: Any) -> Iterator[MakeJob]:
    with planned_jobs(make_settings, tmp_path) as make:
        yield make


def _statuses(job: PlannedJob, type_: str) -> list[tuple[str, str | None]]:
    notes = (each.value for each in job.of(job.settings.notifications.sink_topic or ""))
    return [(note["id"], note["additional_data"].get("status")) for note in notes if note["type"] == type_]


def _signal(job: PlannedJob, name: str, tables: list[str], conditions: Any = ()) -> None:
    send.to_file(job.settings.signals.file, name, "execute-snapshot", send.snapshot_data(tables, conditions))
    job.batches_until(lambda: (name, None) in _statuses(job, "COMPLETED"), f"end of {name}")


def _reads(job: PlannedJob) -> list[tuple[str, Any]]:
    """Return (table, row) of each row that snapshots have sent since the last call."""
    reads = [
        (each.topic.removeprefix(f"{job.settings.topic_prefix}."), each.value["after"])
        for each in job.sent
        if isinstance(each.value, dict) and each.value.get("op") == "r"
    ]
    job.sent.clear()
    return sorted(reads, key=str)


def test_a_signal_may_write_names_and_expressions_in_any_letter_case(make_job: MakeJob) -> None:
    job = make_job()
    condition = ("INVENTORY.Orders", "id = 2")

    _signal(job, "name", ["Inventory.Orders"], [condition])
    assert _reads(job) == [("inventory.orders", {"Id": 2, "Note": "b"})]
    _signal(job, "quoted", ["`Inventory`.`Orders`"], [condition])
    assert _reads(job) == [("inventory.orders", {"Id": 2, "Note": "b"})]
    _signal(job, "pattern", ["Inventory\\.O.*"], [("Inventory\\.O.+", "id = 3")])
    assert _reads(job) == [("inventory.orders", {"Id": 3, "Note": "c"})]


def test_a_table_is_stopped_in_any_letter_case(make_job: MakeJob) -> None:
    job = make_job()
    file = job.settings.signals.file
    send.to_file(file, "all", "execute-snapshot", send.snapshot_data(["inventory.orders", "inventory.items"]))
    send.to_file(file, "stop", "stop-snapshot", send.snapshot_data(["Inventory.Items"]))
    job.batches_until(lambda: ("all", None) in _statuses(job, "COMPLETED"), "end of all")

    assert {table for table, _ in _reads(job)} == {"inventory.orders"}


def test_settings_may_write_names_in_any_letter_case(make_job: MakeJob) -> None:
    overrides = "snapshot.select.statement.overrides"
    job = make_job(
        **{
            "snapshot__mode": "initial",
            "table__include__list": "INVENTORY.ORDERS,Inventory.Items",
            "snapshot__include__collection__list": "Inventory.Orders",
            overrides: "Inventory.Orders",
            f"{overrides}.Inventory.Orders": "SELECT * FROM Inventory.Orders WHERE Id < 3",
            "message__key__columns": "Inventory.Orders:NOTE",
            "column__mask__with__1__chars": "Inventory.Orders.NOTE",
        }
    )
    job.batches_until(lambda: bool(_statuses(job, "COMPLETED")), "end of the snapshot")

    keys = [each.key for each in job.sent if each.topic.endswith(".inventory.orders")]
    assert sorted(keys, key=str) == [{"Note": "a"}, {"Note": "b"}]
    assert [row for _, row in _reads(job)] == [{"Id": 1, "Note": "*"}, {"Id": 2, "Note": "*"}]


def test_the_table_of_a_dataframe_may_be_written_in_any_letter_case(
    server: MySqlAddress, session: Any, tmp_path: Path
) -> None:
    session.execute("CREATE TABLE Inventory.Signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data TEXT)")
    frame = ChangesFrame(options(server, "inventory", tmp_path, table="INVENTORY.Orders", snapshot__mode="initial"))
    reader = frame.streamReader(frame.schema())
    changes: list[tuple[str, int]] = []
    try:
        ends = [reader.initialOffset()]

        def has_read(count: int) -> bool:
            end = reader.latestOffset(ends[-1], None)
            if end != ends[-1]:
                for part in reader.partitions(ends[-1], end):
                    for rows in reader.read(part):
                        changes.extend((row["_op"], row["Id"]) for row in rows.to_pylist())
                reader.commit(end)
                ends.append(end)
            return len(changes) >= count

        wait_until(lambda: has_read(3))
        session.execute("DELETE FROM Inventory.Orders WHERE Id = 2")
        wait_until(lambda: has_read(4))
    finally:
        reader.stop()

    assert changes == [("r", 1), ("r", 2), ("r", 3), ("d", 2)]


def test_a_signal_table_must_be_called_as_the_server_calls_it(
    make_settings: Callable[..., Settings], session: Any
) -> None:
    session.execute(
        "CREATE TABLE Inventory.Sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048))"
    )
    settings = make_settings(signal__data__collection="Inventory.Sig", signal__enabled__channels="source")

    (finding,) = (each for each in findings(settings) if each.name == "signal.data.collection")
    assert (finding.severity, finding.repair) == ("error", "Set signal.data.collection=inventory.sig")
