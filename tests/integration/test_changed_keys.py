"""The keys that change in a stretch of a real binlog, and rows that are read by their keys."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from incsnap.config.load import from_properties
from incsnap.config.settings import Settings
from incsnap.mysql.catalog import shape_of
from incsnap.mysql.watermarks import executed, high_watermark
from incsnap.tables import TableId
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.changed_keys import ChangedKeys, TableChanged, place_in_log
from incsnap.verify.proof import Events, Low, TopicKey
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.sampling import ALL_KEYS, Sample
from incsnap.verify.table_side import VerifiedTable, read_by_keys
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.properties import QUIET

pytestmark = pytest.mark.servers


@pytest.fixture
def settings(mysql_address: MySqlAddress) -> Settings:
    return from_properties({**QUIET, **mysql_address.properties()}).settings


@pytest.fixture
def unnamed(minimal_mysql: MySqlAddress) -> Iterator[UnnamedRows]:
    """An empty database on a server whose rows do not name their columns."""
    database = f"test_{secrets.token_hex(5)}"
    with closing(connect(minimal_mysql)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        yield UnnamedRows(connection, from_properties({**QUIET, **minimal_mysql.properties()}).settings, database)


class UnnamedRows:
    """A database on a server with `binlog_row_metadata=MINIMAL`."""

    def __init__(self, connection: Connection[Any], settings: Settings, database: str) -> None:
        self._connection, self._settings, self._database = connection, settings, database

    def run(self, *statements: str) -> Low:
        """Run the statements, and return the low watermark behind them."""
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        return low_of(self._connection)

    def table(self, name: str) -> VerifiedTable:
        """Return a table as it is now."""
        return table_of(self._connection, self._settings, self._database, name)

    def log(self, *tables: VerifiedTable) -> Log:
        """Return the binlog for `tables`."""
        return Log(self._connection, self._settings, *tables)


def table_of(connection: Connection[Any], settings: Settings, database: str, name: str = "t") -> VerifiedTable:
    shape = shape_of(connection, TableId(database, name))
    assert shape is not None
    format_ = format_of(settings, shape)
    return VerifiedTable(shape, format_.topic, 2, RecordForm.of(format_, settings.formats))


def low_of(connection: Connection[Any]) -> Low:
    return Low(executed(connection), place_in_log(*high_watermark(connection)))


class Log:
    """The binlog behind a low watermark, for `tables`."""

    def __init__(self, connection: Connection[Any], settings: Settings, *tables: VerifiedTable) -> None:
        self._connection = connection
        by_id = {table.shape.id: table for table in tables}
        self._changed = ChangedKeys(connection, settings, by_id, Allowance())

    def events(self, low: Low, since: Low | None = None, sample: Sample = ALL_KEYS) -> Events:
        begin = low.end if since is None else since.end
        return self._changed.events(low, begin, high_watermark(self._connection), None, sample)


def test_changed_keys_and_their_last_places(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    table = table_of(connection, settings, database)
    log, first = Log(connection, settings, table), low_of(connection)
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    cursor.execute("FLUSH BINARY LOGS")
    second = low_of(connection)
    assert log.events(second).changed == set()
    cursor.execute("UPDATE t SET id = 4 WHERE id = 3")
    cursor.execute("DELETE FROM t WHERE id = 2")

    def key(number: int) -> TopicKey:
        return table.topic, b'{"id":%d}' % number

    events = log.events(second)
    assert events.changed == {key(2), key(3), key(4)}
    assert all(place >= second.end for place in events.last.values())

    # From an older place on, events of the low watermark are known and are not changes.
    older = log.events(second, since=first)
    assert older.since == first.end
    assert older.changed == events.changed
    assert first.end < older.last[key(1)] < second.end
    assert older.last[key(1)].row == 0


def test_changes_of_keys_outside_the_sample_are_not_kept(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    table = table_of(connection, settings, database)
    log, low = Log(connection, settings, table), low_of(connection)
    cursor.execute(f"INSERT INTO t VALUES {','.join(f'({number}, 0)' for number in range(100))}")
    keys = [b'{"id":%d}' % number for number in range(100)]
    every = log.events(low)
    assert every.changed == {(table.topic, key) for key in keys}

    for number in range(4):
        sample = Sample(4, number)
        is_chosen = sample.has(pa.array(keys, pa.binary())).tolist()
        chosen = {(table.topic, key) for key, is_in in zip(keys, is_chosen, strict=True) if is_in}
        events = log.events(low, sample=sample)
        assert events.changed == chosen
        assert events.last == {key: every.last[key] for key in chosen}


def test_rows_have_the_numbers_of_their_source_block(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    table = table_of(connection, settings, database)
    log, low = Log(connection, settings, table), low_of(connection)
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6)")
    cursor.execute("DELETE FROM t WHERE id < 3")
    cursor.execute("UPDATE t SET id = id + 10 * (id > 3) , v = 7 WHERE id < 6")

    events = log.events(low)

    rows = {number: events.last[table.topic, b'{"id":%d}' % number].row for number in (1, 2, 3, 4, 5, 6, 14, 15)}
    assert rows == {1: 0, 2: 1, 3: 0, 4: 1, 14: 1, 5: 2, 15: 2, 6: 5}


def test_events_of_compressed_transactions_are_due_behind_them(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    table = table_of(connection, settings, database)
    log, low = Log(connection, settings, table), low_of(connection)
    cursor.execute("SET SESSION binlog_transaction_compression = ON")
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    cursor.execute("UPDATE t SET v = 9 WHERE id = 1")
    cursor.execute("COMMIT")
    cursor.execute("SET SESSION binlog_transaction_compression = OFF")
    behind = low_of(connection)

    events = log.events(low)

    first, second = ((table.topic, b'{"id":%d}' % number) for number in (1, 2))
    # Both events have one place, and the second one begins with row 0 again.
    assert events.last[first] < events.last[second]
    assert events.last[second] < events.due[first] < behind.end
    assert second not in events.due


def test_events_of_xa_transactions_are_due_behind_xa_commit(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    table = table_of(connection, settings, database)
    log, low = Log(connection, settings, table), low_of(connection)
    for number in (1, 2):
        cursor.execute(f"XA START '{database}-{number}'")
        cursor.execute(f"INSERT INTO t VALUES ({number}, 0)")
        cursor.execute(f"XA END '{database}-{number}'")
        cursor.execute(f"XA PREPARE '{database}-{number}'")
    cursor.execute("INSERT INTO t VALUES (3, 3)")
    cursor.execute(f"XA COMMIT '{database}-1'")
    cursor.execute("FLUSH BINARY LOGS")
    second_file = low_of(connection)
    cursor.execute(f"XA COMMIT '{database}-2'")

    events = log.events(low)

    one, two, three = ((table.topic, b'{"id":%d}' % number) for number in (1, 2, 3))
    assert events.last[one] < events.last[two] < events.last[three] < events.due[one] < second_file.end
    assert events.due[two] > second_file.end
    assert three not in events.due


def test_the_last_statement_that_changed_the_columns_has_a_place(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    first = low_of(connection)
    cursor.execute("ALTER TABLE t ADD w INT")
    second = low_of(connection)
    cursor.execute("TRUNCATE TABLE t")
    third = low_of(connection)
    table = table_of(connection, settings, database)
    log = Log(connection, settings, table)

    assert first.end < log.events(third, since=first).altered[table.topic] < second.end
    # A FLUSH keeps the statements of the file out of the stretch.
    cursor.execute("FLUSH BINARY LOGS")
    assert log.events(low_of(connection), since=low_of(connection)).altered == {}


@pytest.mark.parametrize("statement", ["ALTER TABLE t ADD w INT", "TRUNCATE TABLE t"])
def test_a_statement_that_changes_the_table_is_an_error(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str, statement: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    log, low = Log(connection, settings, table_of(connection, settings, database)), low_of(connection)
    cursor.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    assert log.events(low).changed == set()
    cursor.execute(statement)

    with pytest.raises(TableChanged):
        log.events(low)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE INDEX i ON t (v)",
        "DROP INDEX j ON t",
        "ALTER TABLE t ADD UNIQUE i (v)",
        "ALTER TABLE t RENAME KEY j TO i",
    ],
)
def test_a_statement_about_indexes_changes_no_row(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str, statement: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY j (v))")
    table = table_of(connection, settings, database)
    log, low = Log(connection, settings, table), low_of(connection)
    cursor.execute(statement)
    cursor.execute("INSERT INTO t VALUES (1, 1)")

    assert log.events(low).changed == {(table.topic, b'{"id":1}')}
    # The CREATE TABLE is the last one that counts.
    assert log.events(low_of(connection), since=low).altered[table.topic] < low.end


def test_an_index_that_becomes_the_key_is_an_error(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)")
    log, low = Log(connection, settings, table_of(connection, settings, database)), low_of(connection)
    cursor.execute("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)")

    with pytest.raises(TableChanged):
        log.events(low)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD w INT FIRST",
        "ALTER TABLE t MODIFY v BIGINT",
        # The old rows fit the new columns, and their keys would be wrong.
        "ALTER TABLE t MODIFY id INT AFTER v",
        "RENAME TABLE t TO other, copy TO t",
    ],
)
def test_events_without_column_names_are_known_behind_the_last_statement_about_their_columns(
    unnamed: UnnamedRows, statement: str
) -> None:
    first = unnamed.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY)")
    unnamed.run("CREATE TABLE copy (v INT, id INT PRIMARY KEY)")
    before = unnamed.run("INSERT INTO t VALUES (1, 7)", "INSERT INTO u VALUES (1)")
    altered = unnamed.run(statement)
    low = unnamed.run("INSERT INTO t (id, v) VALUES (2, 8)", "INSERT INTO u VALUES (2)")
    table, other = unnamed.table("t"), unnamed.table("u")
    log = unnamed.log(table, other)
    unnamed.run("UPDATE t SET v = 9 WHERE id = 1", "INSERT INTO t (id, v) VALUES (3, 8)")

    events = log.events(low, since=first)

    assert {key for topic, key in events.last if topic == table.topic} == {b'{"id":2}', b'{"id":3}'} | (
        {b'{"id":1}'} if "RENAME" not in statement else set()
    )
    assert {key for topic, key in events.last if topic == other.topic} == {b'{"id":1}', b'{"id":2}'}
    assert events.begins.keys() == {table.topic}
    assert before.end < events.begins[table.topic] <= altered.end
    assert {key for _, key in events.changed} == {key for topic, key in events.last if topic == table.topic} - {
        b'{"id":2}'
    }


def test_rows_that_name_their_columns_are_known_before_a_statement_too(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    first = low_of(connection)
    cursor.execute("INSERT INTO t VALUES (1, 7)")
    cursor.execute("ALTER TABLE t MODIFY id INT AFTER v")
    table = table_of(connection, settings, database)

    events = Log(connection, settings, table).events(low_of(connection), since=first)

    assert events.last.keys() == {(table.topic, b'{"id":1}')}
    assert events.begins == {}


@pytest.mark.parametrize("statement", ["ALTER TABLE t ADD w INT FIRST", "ALTER TABLE t MODIFY id INT AFTER v"])
def test_rows_without_column_names_of_a_table_that_has_changed_are_an_error_about_this_table(
    unnamed: UnnamedRows, statement: str
) -> None:
    unnamed.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "CREATE TABLE u (id INT PRIMARY KEY)")
    table = unnamed.table("t")
    log = unnamed.log(table, unnamed.table("u"))
    # The statement lies before the low watermark, so its place does not tell that the table has changed.
    low = unnamed.run(statement)
    unnamed.run("INSERT INTO t (id, v) VALUES (1, 7)", "INSERT INTO u VALUES (2)")

    with pytest.raises(TableChanged) as changed:
        log.events(low)

    assert changed.value.tables == {table.shape.id}


@pytest.mark.parametrize(
    ("columns", "values", "keys"),
    [
        ("k BIGINT PRIMARY KEY", "(5), (-1)", [b'{"k":5}', b'{"k":-1}']),
        ("k VARCHAR(9) PRIMARY KEY", "('a'), ('é''')", [b'{"k":"a"}', '{"k":"é\'"}'.encode()]),
        ("k VARBINARY(4) PRIMARY KEY", "(x'00ff'), ('')", [b'{"k":"AP8="}', b'{"k":""}']),
        ("k DATE PRIMARY KEY", "('1970-01-02'), ('1969-12-31')", [b'{"k":1}', b'{"k":-1}']),
        ("k ENUM('x', 'y'), j INT, PRIMARY KEY (k, j)", "('y', 1), ('x', 2)", [b'{"k":"y","j":1}']),
        ("k DECIMAL(6,2) PRIMARY KEY", "(1.50), (2)", [b'{"k":"AJY="}']),
    ],
)
def test_rows_are_read_by_the_keys_of_their_records(
    connection: Connection[Any],
    cursor: Cursor,
    settings: Settings,
    database: str,
    columns: str,
    values: str,
    keys: list[bytes],
) -> None:
    cursor.execute(f"CREATE TABLE t ({columns})")
    cursor.execute(f"INSERT INTO t VALUES {values}")
    table = table_of(connection, settings, database)
    asked = [(table.topic, key) for key in keys]

    rows = read_by_keys(connection, settings, table, [*asked, (table.topic, keys[0].upper().replace(b"K", b"k"))])

    assert sorted(key for key, _, _ in rows) == sorted(asked)


def test_a_key_that_no_row_can_have_lets_nothing_be_read(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    cursor.execute(f"INSERT INTO t VALUES {','.join(f'({number})' for number in range(1_000))}")
    table = table_of(connection, settings, database)
    keys = [(table.topic, key) for key in (b'{"id":5}', b'{"id":"abc"}')]
    cursor.execute("FLUSH STATUS")

    rows = read_by_keys(connection, settings, table, keys)

    assert [key for key, _, _ in rows] == keys[:1]
    cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%next'")
    assert all(int(count) < 10 for _, count in cursor.fetchall())


def test_a_row_with_the_zero_date_is_read_by_its_key(
    connection: Connection[Any], cursor: Cursor, settings: Settings, database: str
) -> None:
    cursor.execute("SET sql_mode = ''")
    cursor.execute("CREATE TABLE t (`k` TIMESTAMP(6) PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES ('0000-00-00'), ('2026-01-01')")
    table = table_of(connection, settings, database)
    key = table.topic, b'{"k":"1970-01-01T00:00:00Z"}'

    assert [name for name, _, _ in read_by_keys(connection, settings, table, [key])] == [key]
