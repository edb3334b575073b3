"""Truncations, statements, transactions and schema changes, from a real server's binlog through the planner."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from lab.addresses import MySqlAddress
from tests.support.far_server import far_away
from tests.support.planned_job import MakeJob, PlannedJob, planned_jobs, run, settings_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch wait for the server's definitions as long as a test waits.

    A batch that has waited for a second sends records without them.
    """
    monkeypatch.setattr("incsnap.planner.schema_changes.WAIT_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def make_job(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Iterator[MakeJob]:
    settings = partial(settings_of, mysql_address, kafka_address, topic_prefix, database)
    with planned_jobs(settings, tmp_path) as make:
        yield make


def _run(cursor: Cursor, *statements: str) -> None:
    for statement in statements:
        cursor.execute(statement)


def _ops(job: PlannedJob, topic: str) -> list[str]:
    return [each.value["op"] for each in job.of(topic) if each.value]


def test_a_truncation_is_sent_in_order_with_the_changes_around_it(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    job = make_job(skipped__operations="none")
    _run(
        cursor, "INSERT INTO t VALUES (1), (2)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (3)", "TRUNCATE u",
        "INSERT INTO t VALUES (4)",
    )  # fmt: skip
    topic = f"{topic_prefix}.{database}.t"
    job.until(topic, 5)
    job.until(f"{topic_prefix}.{database}.u")

    # The keys 1 to 4 may be in different buckets, so the order is that of batches: 3 and 4 came after the truncation.
    ops = _ops(job, topic)
    assert sorted(ops) == ["c", "c", "c", "c", "t"]
    truncation = next(each for each in job.of(topic) if each.value["op"] == "t")
    assert truncation.key is None
    assert truncation.value["before"] is None
    assert truncation.value["after"] is None
    assert truncation.value["source"]["table"] == "t"
    assert truncation.value["source"]["gtid"]
    assert truncation.value["source"]["snapshot"] == "false"
    assert truncation.value["source"]["ts_us"] % 1000 == 0
    assert [
        each.value["after"]["id"] for each in job.sent[job.sent.index(truncation) + 1 :] if each.topic == topic
    ] == [3, 4]


def test_no_truncation_is_told_by_default(cursor: Cursor, make_job: Any, database: str, topic_prefix: str) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)")
    job = make_job()
    _run(cursor, "INSERT INTO t VALUES (1)", "TRUNCATE TABLE t", "INSERT INTO t VALUES (2)")
    job.until(f"{topic_prefix}.{database}.t", 2)
    assert _ops(job, f"{topic_prefix}.{database}.t") == ["c", "c"]
    assert [each.value["ddl"][:6] for each in job.of(topic_prefix)] == ["CREATE"]


def test_each_row_has_its_statement_if_include_query_is_set(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    job = make_job(include__query="true", max__batch__size="2")
    _run(
        cursor,
        "INSERT INTO t VALUES (1, 'no')",
        "SET SESSION binlog_rows_query_log_events = ON",
        "BEGIN",
        "INSERT INTO t VALUES (2, 'é'), (3, '')",
        "UPDATE t SET v = 'x' WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "COMMIT",
    )
    job.until(f"{topic_prefix}.{database}.t", 6)
    records = [each.value for each in job.of(f"{topic_prefix}.{database}.t") if each.value]
    queries = [(value["op"], value["source"]["query"]) for value in records]
    insert = "INSERT INTO t VALUES (2, 'é'), (3, '')"
    assert sorted(queries, key=str) == sorted(
        [
            ("c", None),
            ("c", insert),
            ("c", insert),
            ("u", "UPDATE t SET v = 'x' WHERE id = 2"),
            ("d", "DELETE FROM t WHERE id = 3"),
        ],
        key=str,
    )


def test_transactions_are_numbered_alike_however_batches_cut_them(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(
        cursor,
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE b (id INT PRIMARY KEY)",
        "CREATE TABLE other (id INT)",
    )
    included = rf"{database}\.[ab]"
    options = {"provide__transaction__metadata": "true", "table__include__list": included}
    whole = make_job(**options)
    cut = make_job(**options, max__batch__size="2")
    _run(
        cursor,
        "INSERT INTO other VALUES (1)",
        "BEGIN",
        "INSERT INTO a VALUES (1, 0), (2, 0), (3, 0)",
        "INSERT INTO b VALUES (1)",
        "INSERT INTO other VALUES (2)",
        "UPDATE a SET v = 1",
        "INSERT INTO b VALUES (2), (3)",
        "UPDATE a SET id = id + 10",
        "DELETE FROM a WHERE id = 11",
        "COMMIT",
        "INSERT INTO b VALUES (4)",
    )
    topics = (f"{topic_prefix}.{database}.a", f"{topic_prefix}.{database}.b")
    of_jobs = []
    for job in (whole, cut):
        if job is cut:
            job.batches_until(lambda: len(cut.batches) >= 3, "third batch")
            job.restart()
        job.until(topics[1], 4)
        job.until(f"{topic_prefix}.transaction", 4)
        numbers = [
            (each.topic, each.value["op"], each.value["transaction"], each.value["after"])
            for topic in topics
            for each in job.of(topic)
            if each.value
        ]
        of_jobs.append((sorted(numbers, key=str), [each.value for each in job.of(f"{topic_prefix}.transaction")]))
    assert len(cut.batches) > 3, "the transaction was not cut"
    assert of_jobs[0] == of_jobs[1]
    numbers, borders = of_jobs[0]
    big = next(value["id"] for value in borders if value["event_count"] == 16)
    assert sorted(t["total_order"] for _, _, t, _ in numbers if t["id"] == big) == list(range(1, 17))
    of_b = [t["data_collection_order"] for topic, _, t, _ in numbers if t["id"] == big and topic == topics[1]]
    assert sorted(of_b) == [1, 2, 3]
    assert [value["status"] for value in borders] == ["BEGIN", "END", "BEGIN", "END"]
    assert borders[1]["data_collections"] == [
        {"data_collection": f"{database}.a", "event_count": 13},
        {"data_collection": f"{database}.b", "event_count": 3},
    ]
    assert borders[0]["event_count"] is None
    assert borders[0]["ts_ms"] == borders[1]["ts_ms"]


@pytest.mark.parametrize("mode", ["initial", "no_data"])
@pytest.mark.parametrize("milliseconds", [20, 100])
def test_tables_are_told_at_a_jobs_beginning_however_far_the_server_is_away(
    cursor: Cursor, make_job: Any, mysql_address: MySqlAddress, topic_prefix: str, milliseconds: int, mode: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    with far_away(mysql_address.host, mysql_address.port, milliseconds / 1000) as port:
        job = make_job(database__hostname="127.0.0.1", database__port=str(port), snapshot__mode=mode)
        job.until(topic_prefix, 2)
        job.close()
    assert [each.value["tableChanges"][0]["table"]["columns"][0]["name"] for each in job.of(topic_prefix)] == ["id"] * 2


def test_definitions_are_told_where_they_are_certain(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x')")
    only = {"schema__history__internal__store__only__captured__tables__ddl": "true"}
    job = make_job(table__include__list=rf"{database}\.t.*", **only)
    job.until(topic_prefix)
    (first,) = job.of(topic_prefix)
    assert first.key == {"databaseName": database}
    assert first.value["source"]["snapshot"] == "last"
    assert first.value["tableChanges"][0]["type"] == "CREATE"
    assert first.value["tableChanges"][0]["id"] == f'"{database}"."t"'
    assert [c["defaultValueExpression"] for c in first.value["tableChanges"][0]["table"]["columns"]] == [None, "x"]

    _run(cursor, "ALTER TABLE t ADD COLUMN w DECIMAL(6,2)")
    job.until(topic_prefix, 2)
    altered = job.of(topic_prefix)[1].value
    assert altered["ddl"] == "ALTER TABLE t ADD COLUMN w DECIMAL(6,2)"
    assert [c["name"] for c in altered["tableChanges"][0]["table"]["columns"]] == ["id", "v", "w"]
    assert altered["source"]["snapshot"] == "false"
    assert altered["source"]["table"] == "t"
    assert altered["source"]["thread"] is None

    with caplog.at_level(logging.WARNING):
        _run(
            cursor,
            "ALTER TABLE t DROP COLUMN v",
            "ALTER TABLE t DROP COLUMN w",
            "CREATE TABLE elsewhere (id INT)",
            "CREATE TABLE t2 LIKE t",
            "DROP TABLE t2, elsewhere",
            "CREATE INDEX i ON t (id)",
            "RENAME TABLE t TO t3",
        )
        job.until(topic_prefix, 7)
    values = [each.value for each in job.of(topic_prefix)[2:]]
    changes = [
        (value["ddl"], [(c["type"], c["id"].split(".")[1], c["table"] is not None) for c in value["tableChanges"]])
        for value in values
    ]
    assert changes == [
        ("ALTER TABLE t DROP COLUMN v", []),
        ("ALTER TABLE t DROP COLUMN w", []),
        ("CREATE TABLE t2 LIKE t", []),
        (f"DROP TABLE `{database}`.`t2`", [("DROP", '"t2"', False)]),
        ("RENAME TABLE t TO t3", [("ALTER", '"t3"', True)]),
    ]
    assert "cannot be told any more" in caplog.text


def test_a_repeated_batch_sends_its_control_records_again(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)")
    job = make_job(skipped__operations="none")
    job.until(topic_prefix)
    before = len(job.batches)
    _run(cursor, "ALTER TABLE t ADD COLUMN v INT", "INSERT INTO t VALUES (1, 2)", "TRUNCATE TABLE t")
    job.until(f"{topic_prefix}.{database}.t", 2)
    # One, or as many as the binlog came in.
    planned = [(start, end) for start, end in job.batches[before:] if end.control]
    sent = [each for each in job.sent if each.topic == topic_prefix or each.value["op"] == "t"]

    _run(cursor, "ALTER TABLE t DROP COLUMN v", "DROP TABLE t")
    again = []
    for start, end in planned:
        job.offset = start
        job.restart()
        again += run(job.planner.parts(start, end), job.settings, job.root)
    control = [each for each in again if each.topic == topic_prefix or each.value["op"] == "t"]
    assert len(control) == 2
    assert all(each in sent for each in control)


def test_schemas_of_a_batch_that_is_run_again_show_the_defaults_that_they_showed(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT 7)", "CREATE TABLE u (id INT PRIMARY KEY)")
    json = "org.apache.kafka.connect.json.JsonConverter"
    job = make_job(value__converter=json, value__converter__schemas__enable="true")
    topic = f"{topic_prefix}.{database}.t"
    _run(cursor, "INSERT INTO t VALUES (1, 2)", "INSERT INTO u VALUES (1)")
    job.until(topic)
    job.until(f"{topic_prefix}.{database}.u")
    start, end = next((start, end) for start, end in job.batches if end.layout.partitions.get(topic))
    sent = list(job.of(topic))
    assert _defaults(sent[0].value) == {"v": 7}

    _run(cursor, "ALTER TABLE t ALTER COLUMN v SET DEFAULT 8", "INSERT INTO t VALUES (2, 2)")
    job.until(topic, 2)
    assert _defaults(job.of(topic)[1].value) == {"v": 8}
    job.offset = start
    job.restart()
    again = run(job.planner.parts(start, end), job.settings, job.root)
    assert [each for each in again if each.topic == topic] == sent


def _defaults(value: Any) -> dict[str, Any]:
    """Return the defaults by column, as the schema of `after` shows them."""
    [after] = [field for field in value["schema"]["fields"] if field["field"] == "after"]
    return {field["field"]: field["default"] for field in after["fields"] if "default" in field}


def test_schema_changes_are_not_sent_if_switched_off(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)")
    job = make_job(include__schema__changes="false")
    _run(cursor, "ALTER TABLE t ADD COLUMN v INT", "INSERT INTO t VALUES (1, 2)")
    job.until(f"{topic_prefix}.{database}.t")
    assert {each.topic for each in job.sent} == {f"{topic_prefix}.{database}.t"}
    assert topic_prefix not in job.offset.layout.partitions


def _reported(job: PlannedJob) -> list[tuple[str, list[str]]]:
    """The verb and object of each statement on the schema change topic, and the tables whose definitions it shows."""
    records = [each.value for each in job.of(job.settings.topic_prefix)]
    return [
        (" ".join(each["ddl"].split()[:2]), [change["id"].split('"')[3] for change in each["tableChanges"]])
        for each in records
    ]


def test_statements_about_tables_that_are_not_captured_are_reported(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    job = make_job(table__include__list=f"{database}.t")
    job.batch()
    _run(cursor, f"CREATE DATABASE {database}_other", f"CREATE TABLE {database}_other.x (id INT)")
    _run(cursor, f"DROP DATABASE {database}_other")
    _run(cursor, "ALTER TABLE u ADD v INT", "RENAME TABLE u TO w", "INSERT INTO w VALUES (1, 1)", "DROP TABLE w")
    _run(cursor, "ALTER TABLE t ADD v INT")
    job.until(topic_prefix, 6)

    assert _reported(job) == [
        ("CREATE TABLE", ["t"]), ("CREATE TABLE", ["u"]), ("ALTER TABLE", []), ("RENAME TABLE", []),
        ("DROP TABLE", ["w"]), ("ALTER TABLE", ["t"]),
    ]  # fmt: skip
    assert job.of(f"{topic_prefix}.{database}.w") == []


@pytest.mark.parametrize(("mode", "last"), [("no_data", "last"), ("initial", "true")])
def test_the_last_definition_ends_the_snapshot_unless_rows_follow(
    cursor: Cursor, make_job: Any, topic_prefix: str, mode: str, last: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    job = make_job(snapshot__mode=mode)
    job.until(topic_prefix, 2)

    assert [each.value["source"]["snapshot"] for each in job.of(topic_prefix)] == ["true", last]


def test_statements_about_tables_that_are_not_captured_can_be_left_out(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    only = {"schema__history__internal__store__only__captured__tables__ddl": "true"}
    job = make_job(table__include__list=f"{database}.t", **only)
    job.batch()
    _run(cursor, "ALTER TABLE u ADD v INT", "ALTER TABLE t ADD v INT")
    job.until(topic_prefix, 2)

    assert _reported(job) == [("CREATE TABLE", ["t"]), ("ALTER TABLE", ["t"])]


@pytest.mark.parametrize("zone", ["+11:00", "+00:00", "-03:00"])
def test_a_default_is_reported_as_its_statement_has_it(
    cursor: Cursor, make_job: Any, topic_prefix: str, zone: str
) -> None:
    _run(cursor, "CREATE TABLE before_the_job (id INT PRIMARY KEY)")
    job = make_job()
    job.until(topic_prefix)
    _run(cursor, f"SET time_zone = '{zone}'")
    _run(cursor, "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP DEFAULT '1970-01-01 11:00:01')")
    job.until(topic_prefix, 2)

    record = next(each for each in job.of(topic_prefix) if each.value["source"]["table"] == "t")
    columns = record.value["tableChanges"][0]["table"]["columns"]
    assert columns[1]["defaultValueExpression"] == "1970-01-01 11:00:01"
