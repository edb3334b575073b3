"""MySQL's changes as a DataFrame, on a session as anybody has it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pymysql.connections import Connection
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.streaming.query import StreamingQuery

import incsnap
from incsnap.monitoring.status import STOPPED, JobStatus
from incsnap.monitoring.status import load as load_status
from incsnap.spark.described_batches import described_batch, described_stream
from incsnap.spark.lake_columns import StreamColumns
from incsnap.tables import TableId
from incsnap.tasks.described_rows import Alteration
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.running_job import write_properties
from lab.table_designs import ORDERS
from lab.workload import Writer
from signals import send
from tests.support.frames import SIGNALS, ReceivedRows, backwards, options, running, table_rows, wait, why_ended
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers
ROWS = 5_000
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    incsnap.register(session)
    yield session
    session.stop()


@pytest.fixture
def connection(connection: Connection[Any]) -> Connection[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(SIGNALS)
    return connection


@pytest.fixture
def execute(connection: Connection[Any]) -> Callable[..., None]:
    def run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return run


@pytest.fixture
def load(spark: SparkSession, mysql_address: MySqlAddress, database: str, tmp_path: Path) -> Callable[..., DataFrame]:
    def read(**more: str) -> DataFrame:
        given = options(mysql_address, database, tmp_path, **more)
        return spark.readStream.format("incsnap").options(**given).load()

    return read


def test_a_table_is_equal_to_its_changes_after_a_snapshot_under_load_and_a_restart(
    load: Callable[..., DataFrame],
    connection: Connection[Any],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    orders, received = ORDERS.create(connection, database, ROWS), ReceivedRows()

    def changes() -> DataFrame:
        return load(table=str(orders), incremental__snapshot__chunk__size="500").withColumn(
            "updated_at", col("updated_at").cast("timestamp_ntz")
        )

    with Writer(lambda: connect(mysql_address, database=database), [(ORDERS, orders)], seed=3, rate=100):
        with running(changes(), received, tmp_path) as query:
            wait(query, received, lambda received: received.counts["u"])
            send.to_table(connection, f"`{database}`.signals", "one", "execute-snapshot", data_of(orders))
            wait(query, received, lambda received: received.counts["r"] > ROWS // 4)
        # In the middle of the snapshot.
        with running(changes(), received, tmp_path) as query:
            before = received.counts["u"]
            wait(query, received, lambda received: received.counts["u"] > before + 100)
    with running(changes(), received, tmp_path) as query:
        wait(query, received, lambda received: received.state("id") == table_rows(connection, orders))

    places = [row["_position"] for row in received.rows]
    assert len(set(places)) == len(places)
    assert backwards(received) == []
    assert len(reads(received)) == len(set(reads(received)))
    assert all(row["_snapshot"] == (row["_op"] == "r") for row in received.rows)


def test_a_batch_read_equals_the_stream(
    spark: SparkSession,
    load: Callable[..., DataFrame],
    execute: Callable[..., None],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    execute(f"CREATE TABLE t ({TYPES})", f"INSERT INTO t VALUES ({VALUES})", "INSERT INTO t (id) VALUES (2)")
    received, given = ReceivedRows(), options(mysql_address, database, tmp_path, table=f"{database}.t")
    read = spark.read.format("incsnap").options(**given)
    with running(load(table=f"{database}.t", snapshot__mode="initial"), received, tmp_path) as query:
        wait(query, received, lambda received: received.ops().count("r") == 2)
        execute("UPDATE t SET id = id + 10")
        wait(query, received, lambda received: "u" in received.ops() or received.ops().count("d") == 2)

    rows = {row["id"]: values_of(row) for row in received.rows if row["_op"] == "r"}
    assert rows == {1: EXPECTED, 2: {**dict.fromkeys(EXPECTED), "id": 2}}
    changed = {row["id"]: values_of(row) for row in received.rows if row["_op"] == "c"}
    assert changed == {11: {**EXPECTED, "id": 11}, 12: {**dict.fromkeys(EXPECTED), "id": 12}}
    assert {row["id"]: values_of(row) for row in read.load().collect()} == changed
    assert read.load().schema == load(table=f"{database}.t").schema
    assert sorted(row["id"] for row in read.option("numPartitions", "2").load().collect()) == [11, 12]
    assert [name for name, kind in read.load().dtypes[5:] if kind != SPARK_TYPES[name]] == []


def test_an_envelope_has_both_row_images(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY, _op INT)")
    received = ReceivedRows()
    with running(load(table=f"{database}.t", envelope="true"), received, tmp_path) as query:
        begun(tmp_path)
        execute("INSERT INTO t VALUES (1, 5)", "UPDATE t SET _op = 6", "DELETE FROM t")
        wait(query, received, lambda received: received.ops() == ["c", "u", "d"])

    assert [(row["before"], row["after"]) for row in received.rows] == [
        (None, (1, 5)),
        ((1, 5), (1, 6)),
        ((1, 6), None),
    ]


def test_a_new_column_stops_the_stream_until_it_is_created_again(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)")
    received, table = ReceivedRows(), f"{database}.t"
    with running(load(table=table), received, tmp_path) as query:
        begun(tmp_path)
        execute("INSERT INTO t VALUES (1)")
        wait(query, received, lambda received: len(received.rows) == 1)
        execute("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD COLUMN name TEXT", "INSERT INTO t VALUES (3, 'x')")
        why = why_ended(query)
    assert f"{table}: its columns are not those of the DataFrame any more: name is new" in why
    assert "Make the stream anew" in why
    with running(load(table=table), received, tmp_path) as query:
        wait(query, received, lambda received: len(received.rows) == 3)

    assert [(row["id"], row.asDict().get("name")) for row in received.rows] == [(1, None), (2, None), (3, "x")]


def test_rows_for_merge_into_carry_their_columns_and_a_statement_ends_its_batch(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY, price INT)")
    stream, batches = described_stream(load(table=f"{database}.t"), "incsnap"), Described()
    assert stream is not None
    assert described_stream(load(table=f"{database}.t").where("id > 0"), "incsnap") is None
    writer = stream.writeStream.foreachBatch(batches).option("checkpointLocation", str(tmp_path / "spark"))
    query = writer.start()
    try:
        begun(tmp_path)
        execute(
            "INSERT INTO t VALUES (1, 10)",
            "ALTER TABLE t RENAME COLUMN price TO cost, ADD COLUMN name VARCHAR(9) DEFAULT 'n'",
            "UPDATE t SET cost = 11",
            "ALTER TABLE t MODIFY cost BIGINT",
            "DELETE FROM t",
        )
        wait_until(lambda: "d" in batches.ops or not query.isActive, every=0.2)
        assert query.isActive, str(query.exception())
        execute("ALTER TABLE t ADD COLUMN at DATETIME(3) DEFAULT '2024-02-29 01:02:03.5'")
        wait_until(lambda: len(batches.altered) == 3 or not query.isActive, every=0.2)
    finally:
        query.stop()

    assert batches.changes == [
        ("c", {"id": 1, "price": 10}),
        "ALTER TABLE t RENAME COLUMN price TO cost, ADD COLUMN name VARCHAR(9) DEFAULT 'n'",
        ("u", {"id": 1, "cost": 11, "name": "n"}),
        "ALTER TABLE t MODIFY cost BIGINT",
        ("d", {"id": 1, "cost": 11, "name": "n"}),
        "ALTER TABLE t ADD COLUMN at DATETIME(3) DEFAULT '2024-02-29 01:02:03.5'",
    ]
    first, _, (last, behind) = batches.altered
    assert (first[0].origins, first[0].defaults) == ({"cost": "price", "name": None}, {"name": "n"})
    assert last.origins == {"at": None}
    assert behind is not None
    assert (behind.names, behind.keys) == (["id", "cost", "name", "at"], ("id",))
    assert {name: value.to_pylist() for name, value in behind.defaults.items()} == {
        "name": ["n"],
        "at": [datetime(2024, 2, 29, 1, 2, 3, 500_000)],
    }


class Described:
    """What the batches of a stream with described rows hold."""

    def __init__(self) -> None:
        self.changes: list[Any] = []
        self.altered: list[tuple[Alteration, StreamColumns | None]] = []

    def __call__(self, frame: DataFrame, number: int) -> None:
        batch = described_batch(frame)
        rows = [] if batch.changes is None else batch.changes.orderBy("_position").collect()
        for row in rows:
            columns = {name: value for name, value in row.asDict().items() if not name.startswith("_")}
            self.changes.append((row["_op"], columns))
        if batch.alteration is not None:
            self.changes.append(batch.alteration.sql)
            self.altered.append((batch.alteration, batch.behind))

    @property
    def ops(self) -> list[str]:
        return [each[0] for each in self.changes if isinstance(each, tuple)]


MOVES = {
    "DATE NOT NULL": ("0000-00-00", "1970-01-01"),
    "DATE": ("0001-01-01", "2001-01-01"),
    "DATETIME(6) NOT NULL": ("0000-00-00 00:00:00", "1970-01-01 00:00:00"),
    "DATETIME(6)": ("2024-01-01 00:00:00.000001", "2024-01-01 00:00:00.000002"),
    "TIMESTAMP NOT NULL": ("0000-00-00 00:00:00", "1970-01-01 00:00:01"),
    "VARCHAR(9)": ("a", "A"),
    "VARCHAR(8)": ("a", "a "),
    "DECIMAL(40,20)": ("0.12345678901234567890", "0.12345678901234567891"),
    "DOUBLE": ("-0.0", "0.0"),
    "BIGINT UNSIGNED": ("18446744073709551615", "18446744073709551614"),
    "TIME(6)": ("30:00:00.000001", "06:00:00.000001"),
    "YEAR": ("0", "2000"),
    "BIT(64)": ("9223372036854775808", "0"),
    "BINARY(2)": ("a", "a "),
    "ENUM('a','A ','b') COLLATE utf8mb4_bin": ("1", "2"),
}
#: What gives values of these one form in Kafka's keys.
COARSE = {"time__precision__mode": "connect", "decimal__handling__mode": "double"}


def test_a_key_change_is_a_deletion_and_an_insertion_for_every_form_of_key(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    """Each pair is two rows in MySQL's binlog. In Kafka it would be one row, or a row that stays."""
    execute("SET sql_mode = ''")
    columns = [f"k{number} {kind}" for number, kind in enumerate(MOVES)]
    execute(f"CREATE TABLE t ({', '.join(columns)}, id INT, PRIMARY KEY (id, {', '.join(names_of(columns))}))")
    for row, values in enumerate(MOVES.values()):
        execute(f"INSERT INTO t (k{row}, id) VALUES ({literal(values[0])}, {row})")
    received, changes = ReceivedRows(), load(table=f"{database}.t", snapshot__mode="initial", **COARSE)
    with running(changes, received, tmp_path) as query:
        wait(query, received, lambda received: received.counts["r"] == len(MOVES))
        for row, values in enumerate(MOVES.values()):
            execute(f"UPDATE t SET k{row} = {literal(values[1])} WHERE id = {row}")
        execute("INSERT INTO t (id) VALUES (99)")
        wait(query, received, lambda received: "99" in {str(row["id"]) for row in received.rows})

    moves = [(row["id"], row["_op"]) for row in received.rows if row["_op"] != "r" and row["id"] != 99]
    assert moves == [(row, op) for row in range(len(MOVES)) for op in "dc"]


def literal(value: str) -> str:
    return value if value.isdecimal() else f"'{value}'"


def names_of(columns: list[str]) -> list[str]:
    return [column.split()[0] for column in columns]


def test_rows_of_a_snapshot_that_were_read_before_another_column_are_told_without_it(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY, old INT)", "INSERT INTO t VALUES (1, 10), (2, 20)")
    received, table, seen = ReceivedRows(), f"{database}.t", ReceivedRows()

    def fails(batch: DataFrame, number: int) -> None:
        seen(batch, number)
        if seen.counts["r"]:
            raise RuntimeError("the sink is away")

    changes = load(table=table, snapshot__mode="initial")
    writer = changes.writeStream.foreachBatch(fails).option("checkpointLocation", str(tmp_path / "spark"))
    assert "the sink is away" in why_ended(writer.start())
    execute("ALTER TABLE t DROP COLUMN old, ADD COLUMN name TEXT", "INSERT INTO t VALUES (3, 'x')")
    with running(load(table=table, snapshot__mode="initial"), received, tmp_path) as query:
        wait(query, received, lambda received: len(received.rows) == 3)

    assert [(row["_op"], row["id"], row["name"]) for row in received.rows] == [
        ("r", 1, None),
        ("r", 2, None),
        ("c", 3, "x"),
    ]


def test_truncations_are_rows_if_asked_for(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)")
    received = ReceivedRows()
    with running(load(table=f"{database}.t", skipped__operations="none"), received, tmp_path) as query:
        begun(tmp_path)
        execute("INSERT INTO t VALUES (1)", "TRUNCATE u", "TRUNCATE signals", "INSERT INTO u VALUES (1)", "TRUNCATE t")
        execute("INSERT INTO t VALUES (2)")
        wait(query, received, lambda received: len(received.rows) == 3)

    assert [(row["_op"], row["id"]) for row in received.rows] == [("c", 1), ("t", None), ("c", 2)]
    assert all(row["_gtid"] for row in received.rows)


def test_several_tables_are_told_as_kafka_would_be(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (7)")
    received = ReceivedRows()
    with running(load(snapshot__mode="initial", include__schema__changes="false"), received, tmp_path) as query:
        wait(query, received, lambda received: "r" in received.ops())
        execute("INSERT INTO t VALUES (1)", "DELETE FROM t")
        wait(query, received, lambda received: len(received.rows) == 4)

    rows = [(row["table"], row["topic"], bytes(row["key"]), row["_op"], row["value"] is None) for row in received.rows]
    t, u = (f"{database}.{name}" for name in "tu")
    assert rows == [
        (u, f"{database}.{u}", b'{"id":7}', "r", False),
        (t, f"{database}.{t}", b'{"id":1}', "c", False),
        (t, f"{database}.{t}", b'{"id":1}', "d", False),
        (t, f"{database}.{t}", b'{"id":1}', None, True),
    ]
    assert b'"after":{"id":7},"source":{' in bytes(received.rows[0]["value"])


def test_a_query_that_takes_what_is_there_ends_behind_it(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    changes, received = load(table=f"{database}.t", snapshot__mode="initial"), ReceivedRows()

    def once() -> None:
        writer = changes.writeStream.foreachBatch(received).option("checkpointLocation", str(tmp_path / "spark"))
        query = writer.trigger(availableNow=True).start()
        assert why_ended(query) == "None"

    once()
    assert received.ops() == ["r", "r"]
    execute("DELETE FROM t WHERE id = 1")
    once()
    assert received.ops() == ["r", "r", "d"]
    wait_until(lambda: status_file(tmp_path).exists() and status_in(tmp_path).state == STOPPED)
    stream = status_in(tmp_path).stream
    assert stream is not None
    assert stream.batch >= 2


def test_wrong_options_are_an_error_when_the_stream_is_created(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY, _gtid INT)")
    with pytest.raises(Exception, match=f"{database}.absent does not exist"):
        load(table=f"{database}.absent")
    with pytest.raises(Exception, match="Set the option envelope=true"):
        load(table=f"{database}.t")
    with pytest.raises(Exception, match="envelope=true needs the option table"):
        load(envelope="true")


def test_a_query_that_begins_anew_on_an_old_folder_is_refused(
    load: Callable[..., DataFrame], execute: Callable[..., None], database: str, tmp_path: Path
) -> None:
    execute("CREATE TABLE t (id INT PRIMARY KEY)")
    changes, received = load(table=f"{database}.t"), ReceivedRows()
    with running(changes, received, tmp_path) as query:
        begun(tmp_path)
        for number in (1, 2, 3):
            execute(f"INSERT INTO t VALUES ({number})")
            wait(query, received, lambda received, number=number: len(received.rows) == number)
    with running(changes, ReceivedRows(), tmp_path / "another") as query:
        why = why_ended(query)

    assert "this query begins with an empty checkpointLocation" in why


def test_the_first_lines_of_the_page_run_as_they_stand(
    spark: SparkSession,
    execute: Callable[..., None],
    mysql_address: MySqlAddress,
    database: str,
    tmp_path: Path,
) -> None:
    execute("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2)")
    given = options(mysql_address, database, tmp_path, snapshot__mode="initial")
    file = write_properties(tmp_path / "shop.properties", given)
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    for name, ours in {
        "shop.properties": str(file),
        "inventory.orders": f"{database}.orders",
        "checkpoints/orders": str(tmp_path / "spark"),
        "lake/orders": str(tmp_path / "lake"),
    }.items():
        assert f'"{name}"' in code
        code = code.replace(f'"{name}"', repr(ours))
    names: dict[str, Any] = {"spark": spark}
    exec(compile(code, str(PAGE), "exec"), names)
    query: StreamingQuery = names["query"]

    def written() -> int:
        assert query.isActive, str(query.exception())
        return int(spark.read.schema("id int").parquet(str(tmp_path / "lake")).count())

    wait_until(lambda: (tmp_path / "lake").exists() and written() == 2)
    query.stop()


TYPES = """
    id INT PRIMARY KEY, tiny TINYINT, tiny_u TINYINT UNSIGNED, small SMALLINT, small_u SMALLINT UNSIGNED,
    medium_u MEDIUMINT UNSIGNED, int_u INT UNSIGNED, big BIGINT, big_u BIGINT UNSIGNED, price DECIMAL(10,2),
    huge DECIMAL(65,1), f FLOAT, d DOUBLE, flag BIT(1), bits BIT(12), y YEAR, day DATE, at DATETIME(6),
    at_ms DATETIME(3), since TIMESTAMP(6) NULL, lasts TIME(2), doc JSON, e ENUM('a','b'), s SET('x','y'), c CHAR(4),
    txt TEXT, bin BINARY(3), blb BLOB, place POINT"""
VALUES = """
    1, -128, 255, -32768, 65535, 16777215, 4294967295, -9223372036854775808, 18446744073709551615, -12345678.90,
    1234567890123456789012345678901234567890.5, 0.5, 1e300, b'1', b'100000000001', 2155, '1000-01-01',
    '9999-12-31 23:59:59.999999', '2024-02-29 01:02:03.456', '2024-02-29 01:02:03.000001', '-838:59:58.25',
    '{"b": [1, "é"]}', 'b', 'x,y', 'ab', 'hé😀', x'01', x'0002',
    ST_GeomFromText('POINT(1 2)')"""
EXPECTED = {
    "id": 1, "tiny": -128, "tiny_u": 255, "small": -32768, "small_u": 65535, "medium_u": 16777215,
    "int_u": 4294967295, "big": -(2**63), "big_u": Decimal(2**64 - 1), "price": Decimal("-12345678.90"),
    "huge": "1234567890123456789012345678901234567890.5", "f": 0.5, "d": 1e300, "flag": True,
    "bits": b"\x08\x01", "y": 2155, "day": date(1000, 1, 1), "at": datetime(9999, 12, 31, 23, 59, 59, 999999),
    "at_ms": datetime(2024, 2, 29, 1, 2, 3, 456000), "since": datetime(2024, 2, 29, 1, 2, 3, 1),
    "lasts": "-838:59:58.25", "doc": '{"b":[1,"é"]}', "e": "b", "s": "x,y", "c": "ab", "txt": "hé😀",
    "bin": b"\x01\0\0", "blb": b"\0\x02",
    "place": bytes.fromhex("0101000000000000000000f03f0000000000000040"),
}  # fmt: skip
SPARK_TYPES = {
    "id": "int", "tiny": "tinyint", "tiny_u": "smallint", "small": "smallint", "small_u": "int", "medium_u": "int",
    "int_u": "bigint", "big": "bigint", "big_u": "decimal(20,0)", "price": "decimal(10,2)", "huge": "string",
    "f": "float", "d": "double", "flag": "boolean", "bits": "binary", "y": "int", "day": "date",
    "at": "timestamp_ntz", "at_ms": "timestamp_ntz", "since": "timestamp", "lasts": "string", "doc": "string",
    "e": "string", "s": "string", "c": "string", "txt": "string", "bin": "binary", "blb": "binary", "place": "binary",
}  # fmt: skip


def values_of(row: Any) -> dict[str, Any]:
    """Return the row's values without the columns that describe the change.

    PySpark gives a TIMESTAMP in the time zone of the process. It is converted to UTC.
    """
    values = {name: value for name, value in row.asDict().items() if not name.startswith("_")}
    if values["since"] is not None:
        values["since"] = values["since"].astimezone(UTC).replace(tzinfo=None)
    return {name: bytes(value) if isinstance(value, bytearray) else value for name, value in values.items()}


def begun(tmp_path: Path) -> None:
    """Wait until the stream knows where it begins."""
    wait_until((tmp_path / "incsnap" / "incsnap" / "first-offset.json").exists)


def status_file(tmp_path: Path) -> Path:
    return tmp_path / "incsnap" / "incsnap" / "status.json"


def status_in(tmp_path: Path) -> JobStatus:
    return load_status(json.loads(status_file(tmp_path).read_bytes()))


def data_of(table: TableId) -> dict[str, Any]:
    return send.snapshot_data([str(table)])


def reads(received: ReceivedRows) -> list[int]:
    return [row["id"] for row in received.rows if row["_op"] == "r"]
