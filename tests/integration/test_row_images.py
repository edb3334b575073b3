"""Row images decoded from a real server's binlog, against what the server's SELECT and mysql-replication say."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from incsnap.binlog.protocol.row_images import DELETE, UPDATE, WRITE
from incsnap.errors import BinlogError
from incsnap.mysql.catalog import shape_of
from incsnap.tables import TableId
from incsnap.types.column_type import describe
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.binlog_dump import TableEvents, charsets_of, events_since, table_events
from tests.support.mysql_versions import end_of_binlog, has_vector
from tests.support.random_values import CASES, canonical

pytestmark = [pytest.mark.servers, pytest.mark.named_rows("it decodes table maps without a job")]

_ROWS = 150


def _connect(address: MySqlAddress) -> Any:
    return connect(address, init_command="SET time_zone='+00:00', sql_mode='STRICT_TRANS_TABLES'")


class Server:
    """A query connection, and the events of a table since it was last asked."""

    def __init__(self, address: MySqlAddress, database: str) -> None:
        self.address = address
        self.database = database
        self.connection = _connect(address)
        self.connection.select_db(database)
        self.charsets = charsets_of(self.connection)
        self.begin = end_of_binlog(self.connection)

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def insert(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Row by row, so that each is an event of its own, in one transaction: a commit costs a sync of the disk."""
        self.connection.begin()
        for row in rows:
            self.run(sql, *row)
        self.connection.commit()

    def events(self, table: str) -> TableEvents:
        with closing(_connect(self.address)) as dump:
            return table_events(events_since(dump, self.begin), TableId(self.database, table), self.charsets)


@pytest.fixture
def server(mysql_address: MySqlAddress, database: str) -> Iterator[Server]:
    server = Server(mysql_address, database)
    yield server
    server.connection.close()


def _known(server: Server) -> list[str]:
    """The cases whose types the server has."""
    return [name for name in CASES if name != "vector" or has_vector(server.connection)]


def _python(array: pa.Array) -> list[Any]:
    return list(array.to_pylist())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("part", range(6))
def test_every_type_decodes_to_what_a_select_gives(server: Server, part: int, seed: int) -> None:
    known = _known(server)
    names = [name for index, name in enumerate(CASES) if index % 6 == part and name in known]
    server.run(f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'`{n}` {CASES[n].sql}' for n in names)})")
    source = random.Random(f"{part}-{seed}")
    rows = [
        (number, *(None if source.random() < 0.2 else CASES[name].value(source) for name in names))
        for number in range(_ROWS)
    ]
    insert = f"INSERT INTO t VALUES ({', '.join(['%s'] * (len(names) + 1))})"
    server.insert(insert, rows)
    images = server.events("t").decode()
    # PyMySQL cannot read a VECTOR, and a FLOAT is printed with six digits.
    cast = {"float": "double", "vector": "binary"}
    select = ", ".join(f"CAST(`{n}` AS {cast[n]})" if n in cast else f"`{n}`" for n in names)
    selected = server.run(f"SELECT {select} FROM t ORDER BY id")
    assert _python(images.columns[0]) == list(range(_ROWS))
    assert images.event.tolist() == list(range(_ROWS))
    shape = shape_of(server.connection, TableId(server.database, "t"))
    assert shape is not None
    for place, name in enumerate(names):
        column = images.columns[place + 1]
        column.validate(full=True)
        assert column.type == describe(shape.columns[place + 1], shape.id).arrow
        assert _python(column) == [canonical(name, row[place]) for row in selected], name


def test_table_maps_describe_a_table_as_information_schema_does(server: Server) -> None:
    columns = ", ".join(f"`{name}` {CASES[name].sql}" for name in _known(server))
    server.run(
        f"CREATE TABLE t (a int NOT NULL, {columns}, b char(7) NOT NULL, c varbinary(9) NOT NULL, i int INVISIBLE,"
        " w float(7,3) unsigned, u decimal(9,2) unsigned NOT NULL, x char(70) character set utf8mb3,"
        " PRIMARY KEY (c, b, a))"
    )
    server.run("INSERT INTO t (a, b, c, u) VALUES (1, 'x', 'y', 1)")
    mapped, known = server.events("t").table_map.shape, shape_of(server.connection, TableId(server.database, "t"))
    assert known is not None
    for seen, read in zip(mapped.columns, known.columns, strict=True):
        assert seen == read
    assert mapped == known


def test_a_key_on_a_prefix_is_the_whole_column(server: Server) -> None:
    server.run("CREATE TABLE t (v varchar(100), n int, PRIMARY KEY (n, v(10)))")
    server.run("INSERT INTO t VALUES ('x', 1)")
    shape = server.events("t").table_map.shape
    assert shape.key == (1, 0)
    assert shape == shape_of(server.connection, TableId(server.database, "t"))


def test_inserts_updates_and_deletes_give_their_images_in_order(server: Server) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(40), n int unsigned, d decimal(20,3), b blob)")
    source = random.Random(7)
    expected: list[tuple[Any, ...]] = []
    kinds: list[int] = []
    present: dict[int, tuple[Any, ...]] = {}

    def current() -> dict[int, tuple[Any, ...]]:
        return {row[0]: row for row in server.run("SELECT * FROM t ORDER BY id")}

    for step in range(120):
        before = present
        match source.randrange(4):
            case 0 | 1:
                ids = [step * 10 + i for i in range(source.randint(1, 9))]
                rows = [
                    (i, source.choice([None, "v" * source.randrange(40)]), i, i / 8, source.randbytes(5)) for i in ids
                ]
                with server.connection.cursor() as cursor:
                    cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s)", rows)
                present = current()
                expected += [present[i] for i in ids]
                kinds.append(WRITE[1])
            case 2:
                if not server.connection.cursor().execute(
                    "UPDATE t SET v = IF(v IS NULL, 'now', NULL), n = n + 1 WHERE id % 3 = 1 ORDER BY id"
                ):
                    continue
                present = current()
                for i in sorted(before):
                    if i % 3 == 1:
                        expected += [before[i], present[i]]
                kinds.append(UPDATE[1])
            case _:
                gone = sorted(before)[: source.randrange(3)]
                if not gone:
                    continue
                server.run(f"DELETE FROM t WHERE id IN ({', '.join(map(str, gone))}) ORDER BY id")
                present = current()
                expected += [before[i] for i in gone]
                kinds.append(DELETE[1])
    events = server.events("t")
    images = events.decode()
    assert list(zip(*map(_python, images.columns), strict=True)) == expected
    # A statement of many rows may be several events: each is one of the kinds, in order.
    assert [kind for kind, last in zip(events.kinds, [0, *events.kinds], strict=False) if kind != last] == [
        kind for kind, last in zip(kinds, [0, *kinds], strict=False) if kind != last
    ]
    assert (images.event[1:] >= images.event[:-1]).all()


@pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning")
def test_mysql_replication_reads_the_same_rows(server: Server, mysql_address: MySqlAddress) -> None:
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    # Not here, since the library is wrong and SELECT agrees with us: negative times with a fraction, the year 0000.
    names = ["tinyint", "mediumint_unsigned", "bigint_unsigned", "decimal_30_30", "double", "varchar", "text",
             "blob", "varbinary", "enum", "date", "datetime_3", "time_0", "smallint"]  # fmt: skip
    server.run(f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'`{n}` {CASES[n].sql}' for n in names)})")
    source = random.Random(11)
    insert = f"INSERT INTO t VALUES ({', '.join(['%s'] * (len(names) + 1))})"
    rows = [
        (number, *(None if source.random() < 0.3 else CASES[name].value(source) for name in names))
        for number in range(80)
    ]
    server.insert(insert, rows)
    server.run("UPDATE t SET id = id + 1000, `varchar` = `enum`, `blob` = NULL WHERE id > 40")
    server.run("DELETE FROM t WHERE id % 2 = 0")
    stream = BinLogStreamReader(
        connection_settings={
            "host": mysql_address.host,
            "port": mysql_address.port,
            "user": mysql_address.user,
            "password": mysql_address.password,
            "connect_timeout": 10,
            "read_timeout": 60,
            "write_timeout": 60,
        },
        server_id=random.randrange(3 * 10**9, 4 * 10**9),
        log_file=server.begin[0],
        log_pos=server.begin[1],
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        only_schemas=[server.database],
    )
    theirs = []
    with closing(stream):
        for event in stream:
            for row in event.rows:
                theirs += [row["before_values"], row["after_values"]] if "before_values" in row else [row["values"]]
    images = server.events("t").decode()
    ours = {name: _python(column) for name, column in zip(["id", *names], images.columns, strict=True)}
    for name in ["id", *names]:
        # The library gives '' for an empty blob: an empty value has no type to it.
        empty = b"" if name in ("blob", "varbinary") else ""
        values = [empty if row[name] == "" else row[name] for row in theirs]
        assert ours[name] == [canonical(name, value) for value in values], name


def test_dates_that_are_none_become_null(server: Server) -> None:
    server.run("SET sql_mode = 'ALLOW_INVALID_DATES'")
    server.run("CREATE TABLE t (d date, t datetime(3), s timestamp(2) NULL)")
    for day in ["0000-00-00", "2024-00-10", "2024-05-00", "0000-05-05", "2023-02-29", "2024-04-31"]:
        server.run("INSERT INTO t VALUES (%s, %s, '0000-00-00 00:00:00')", day, f"{day} 10:11:12.5")
    images = server.events("t").decode()
    assert [column.null_count for column in images.columns] == [6, 6, 6]


def test_enum_index_zero_is_the_empty_string(server: Server) -> None:
    server.run("SET sql_mode = ''")
    server.run("CREATE TABLE t (e enum('a','b'))")
    server.run("INSERT IGNORE INTO t VALUES ('nonsense'), ('b'), (NULL)")
    assert _python(server.events("t").decode().columns[0]) == ["", "b", None]


def test_json_of_opaque_values_reads_as_the_server_prints_it(server: Server) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, j json)")
    for sql in [
        "json_array(1.50, -0.1, -12345678901234567890.123456789, cast(1 as decimal(65,30)), .00012)",
        "json_array(cast(18446744073709551615 as unsigned), -9223372036854775808, 32767, -32769, 65535, 65536)",
        "json_array(4294967295, 2147483647, -2147483648, 2147483648)",
        "json_array(date'2024-01-02', time'-838:59:58', time'00:00:00.000001', timestamp'2024-01-02 03:04:05.000001')",
        "json_array(time'-00:00:00.5', cast('9999-12-31' as datetime))",
        "json_array(x'0102', b'101', _binary'', _binary'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
        "json_array(repeat(_binary'abc', 100), repeat('é', 70000))",
        "json_object('k', json_object('', json_array()), repeat('w', 65535), 1, 'n', null, 't', true)",
        "'true'", "'null'", "'-0.0'", "'\"\"'", "'{}'", "'[]'", "'17'", "'\"x\"'", "'1e300'",
    ]:  # fmt: skip
        server.run(f"INSERT INTO t (j) VALUES ({sql})")
    server.run("INSERT INTO t (j) SELECT json_arrayagg(id) FROM (SELECT a.id + 100000 id FROM t a, t b, t c, t d) x")
    selected = [canonical("json", row[0]) for row in server.run("SELECT j FROM t ORDER BY id")]
    assert _python(server.events("t").decode().columns[1]) == selected


def test_json_doubles_are_printed_as_the_server_does(server: Server) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, j json)")
    source = random.Random(3)
    for _ in range(20):
        numbers = [source.choice([1, -1]) * source.random() * 10.0 ** source.randint(-30, 30) for _ in range(150)]
        numbers += [float(source.randrange(10 ** source.randint(1, 17))) for _ in range(50)]
        numbers += [10.0 ** source.randint(-300, 300), round(source.random() * 1e6, source.randint(0, 6))]
        server.run("INSERT INTO t (j) VALUES (%s)", repr(numbers))
    selected = [canonical("json", row[0]) for row in server.run("SELECT j FROM t ORDER BY id")]
    assert _python(server.events("t").decode().columns[1]) == selected


def test_a_json_document_of_greatest_depth_is_read(server: Server) -> None:
    server.run("CREATE TABLE t (j json)")
    server.run("INSERT INTO t VALUES (%s)", "[" * 100 + "]" * 100)
    assert _python(server.events("t").decode().columns[0]) == ["[" * 100 + "]" * 100]


def test_statements_of_many_rows_and_one_row_events_mix(server: Server) -> None:
    server.run("CREATE TABLE t (id bigint PRIMARY KEY, v varchar(300))")
    server.run(
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900)"
        " SELECT i, repeat(char(97 + i % 26), i % 300) FROM n"
    )
    server.insert("INSERT INTO t VALUES (%s, NULL)", [(10_000 + number,) for number in range(60)])
    server.run("UPDATE t SET id = id + 100000 ORDER BY id DESC")
    images = server.events("t").decode()
    ids = _python(images.columns[0])
    assert ids[:960] == [*range(1, 901), *range(10_000, 10_060)]
    assert sorted(ids[960::2]) == ids[:960]
    assert [after - before for before, after in zip(ids[960::2], ids[961::2], strict=True)] == [100_000] * 960
    assert _python(images.columns[1])[:900] == [chr(97 + i % 26) * (i % 300) for i in range(1, 901)]


def test_images_without_all_columns_are_refused_with_the_setting_that_helps(server: Server) -> None:
    server.run("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
    server.run("SET SESSION binlog_row_image = MINIMAL")
    server.run("INSERT INTO t VALUES (1, 2, 3)")
    server.run("UPDATE t SET a = 5")
    with pytest.raises(BinlogError, match="without all columns") as failure:
        server.events("t").decode()
    assert "binlog_row_image=FULL" in failure.value.hint
