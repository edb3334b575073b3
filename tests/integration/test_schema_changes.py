"""DDL of every kind between rows, on a real server: each row is decoded by the shape it was written with.

Also by a tail that is started again before the change, and however the stream is cut into batches. Here without Spark;
tests/e2e/test_schema_changes.py puts the changes into the middle of windows.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from incsnap.errors import BinlogError
from incsnap.events import StreamPosition
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.schema_play import MB, Play, Row, by_table
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers


@pytest.fixture
def play(mysql_address: MySqlAddress, database: str) -> Iterator[Play]:
    play = Play(mysql_address, database)
    play.run(
        "CREATE TABLE t (id int PRIMARY KEY, a varchar(20), b int, e enum('x','y'), s varchar(10) NOT NULL DEFAULT 'd')"
    )
    yield play
    play.connection.close()


def check(play: Play, start: StreamPosition, *touched: str) -> None:
    """Read from `start` several times with batches of different sizes, and compare all changes with the expected."""
    end = play.here()
    for max_rows in (1, 2, 1 << 30):
        row_changes, changes = play.read(start, end, max_rows)
        assert by_table(row_changes) == by_table(play.expected)
        for name in touched:
            table = TableId(play.database, name)
            assert any(change.touches(table) for _, change in changes), f"{name} was changed: {changes}"


ALTERATIONS = [
    ("ADD COLUMN n int DEFAULT 5", {"n": 7}),
    ("ADD COLUMN n int NOT NULL FIRST", {"n": 7}),
    ("ADD COLUMN n text AFTER id, ALGORITHM=INPLACE", {"n": "text"}),
    ("ADD COLUMN n int DEFAULT 3, ALGORITHM=INSTANT", {"n": 7}),
    ("ADD COLUMN g int AS (b + 1) STORED", {}),
    ("ADD COLUMN i int INVISIBLE DEFAULT 2", {}),
    ("DROP COLUMN b", None),
    ("DROP COLUMN b, ALGORITHM=INSTANT", None),
    ("DROP COLUMN a, ADD COLUMN a int", {"a": 12}),
    ("RENAME COLUMN a TO aa", {"aa": "renamed"}),
    ("RENAME COLUMN a TO s, RENAME COLUMN s TO a", {"a": "swapped"}),
    ("MODIFY a varchar(300)", {"a": "x" * 290}),
    ("MODIFY a text CHARACTER SET latin1", {"a": "Zürich"}),
    ("MODIFY b bigint unsigned", {"b": 1 << 63}),
    ("MODIFY b varchar(9)", {"b": "text"}),
    ("MODIFY b int FIRST", {"b": 4}),
    ("MODIFY id int AFTER s", {"b": 4}),
    ("MODIFY e enum('x','new','y')", {"e": "new"}),
    ("MODIFY e varchar(5)", {"e": "other"}),
    ("CHANGE b bb decimal(9, 2)", {"bb": "17.25"}),
    ("CONVERT TO CHARACTER SET latin1", {"a": "größe"}),
    ("DROP PRIMARY KEY, ADD PRIMARY KEY (s, id)", {"b": 4}),
    ("DROP PRIMARY KEY", {"b": 4}),
    ("ADD INDEX (b)", {"b": 4}),
    ("COMMENT 'nothing, RENAME TO z'", {"b": 4}),
    ("ENGINE=InnoDB", {"b": 4}),
    ("PARTITION BY KEY (id) PARTITIONS 3", {"b": 4}),
]


@pytest.mark.parametrize(("alteration", "values"), ALTERATIONS, ids=[sql for sql, _ in ALTERATIONS])
def test_rows_around_an_alteration_have_the_shape_of_their_moment(
    play: Play, alteration: str, values: Row | None
) -> None:
    start = play.here()
    play.write("t", 1, a="one", b=1, e="x")
    play.write("t", 2, a="zwölf", b=2, e="y")
    play.run(f"ALTER TABLE t {alteration}")
    play.write("t", 3, **(values or {}))
    if values is None:
        play.write("t", 1, e="y")
    else:
        play.write("t", 1, **{**values, "e": "y"} if "e" not in values else values)
    play.delete("t", 2)
    _visible(play)
    check(play, start, "t")


def _visible(play: Play) -> None:
    """A SELECT * leaves invisible columns out; the binlog has them."""
    columns = {row["Field"]: row for row in play.run("SHOW COLUMNS FROM t")}
    hidden = [name for name, row in columns.items() if "INVISIBLE" in str(row["Extra"])]
    for name in hidden:
        play.expected = [
            (op, table, {**row, name: 2} if nth >= 2 else row) for nth, (op, table, row) in enumerate(play.expected)
        ]


def test_a_table_that_goes_back_to_an_earlier_shape_keeps_the_order_of_its_rows(play: Play) -> None:
    start = play.here()
    for number in range(6):
        play.write("t", 1, b=number + 10)
        play.run("ALTER TABLE t ADD COLUMN n int" if number % 2 == 0 else "ALTER TABLE t DROP COLUMN n")
    check(play, start, "t")


def test_renamed_and_swapped_tables_are_told_apart(play: Play) -> None:
    play.run("CREATE TABLE u (id int PRIMARY KEY, other double, v varchar(5))")
    start = play.here()
    play.write("t", 1, a="t", b=1)
    play.write("u", 1, other=1.5, v="u")
    play.run("RENAME TABLE t TO x, u TO t, x TO u")
    play.write("t", 2, other=2.5, v="was u")
    play.write("u", 2, a="was t", b=2)
    play.run("ALTER TABLE t RENAME TO w")
    play.write("w", 3, other=3.5)
    play.run("RENAME TABLE u TO t")
    play.write("t", 3, a="back", b=3)
    check(play, start, "t", "u", "w", "x")


def test_a_table_dropped_and_made_again_has_its_new_shape(play: Play) -> None:
    start = play.here()
    play.write("t", 1, a="old", b=1)
    play.run("DROP TABLE t", "CREATE TABLE t (b varchar(9), id bigint PRIMARY KEY)")
    play.write("t", 1, b="new")
    play.run("DROP TABLE t", "CREATE TABLE t SELECT 7 AS id, 'x' AS a")
    play.expected.append(("c", "t", {"id": 7, "a": "x"}))
    play.write("t", 8, a="y")
    check(play, start, "t")


def test_new_tables_and_truncated_ones_are_followed(play: Play) -> None:
    start = play.here()
    play.write("t", 1, a="before", b=1)
    play.run("CREATE TABLE fresh LIKE t")
    play.write("fresh", 1, a="fresh", b=1)
    play.run("TRUNCATE TABLE t")
    play.write("t", 1, a="after", b=1)
    check(play, start, "t", "fresh")
    _, changes = play.read(start, play.here(), 1 << 30)
    own = [change for _, change in changes if change.touches(TableId(play.database, "t"))]
    assert [change.truncates for change in own] == [True]


def test_an_exchanged_partition_touches_both_tables_and_writes_no_rows(play: Play) -> None:
    """Rows change tables without any event: the topics cannot know. Windows of both are read again."""
    play.run(
        "CREATE TABLE p (id int PRIMARY KEY, v int) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10),"
        " PARTITION p1 VALUES LESS THAN (20))",
        "CREATE TABLE part (id int PRIMARY KEY, v int)",
    )
    start = play.here()
    play.write("p", 1, v=1)
    play.write("part", 2, v=2)
    play.run("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE part")
    play.write("p", 2, v=3)
    play.write("part", 1, v=4)
    play.run("ALTER TABLE p TRUNCATE PARTITION p0")
    check(play, start, "p", "part")


def test_a_change_of_a_table_lies_between_the_rows_before_and_behind_it(play: Play) -> None:
    start = play.here()
    play.write("t", 1, b=1)
    play.run("ALTER TABLE t ADD COLUMN n int")
    play.write("t", 2, b=2)
    end = play.here()
    for max_rows in (1, 1 << 30):
        row_changes, changes = play.read(start, end, max_rows)
        assert len(row_changes) == 2
        table = TableId(play.database, "t")
        [(rows_before, change)] = [each for each in changes if each[1].touches(table)]
        assert change.tables == frozenset({table})
        assert rows_before >= 1


@pytest.mark.named_rows("it decodes slices without definitions")
def test_a_restart_in_the_middle_of_a_transaction_and_before_a_change(play: Play) -> None:
    start = play.here()
    play.connection.begin()
    for key in range(1, 6):
        play.write("t", key, b=key)
    play.connection.commit()
    play.run("ALTER TABLE t DROP COLUMN a, ADD COLUMN c datetime(3) FIRST")
    play.write("t", 6, b=6)
    end = play.here()
    with play.tail(start) as tail:
        inside = start
        while not inside.open_gtid:  # transactions of others may end batches before
            assert not inside.reached(end.file, end.pos)
            inside = tail.advance(inside, MB, 2, (end.file, end.pos), PATIENCE_SECONDS).end
        first = [row for one in tail.slices(start, inside, 1) for row in play.rows(one)]
    rest, _ = play.read(inside, end, 1 << 30)
    assert first + rest == play.expected


@pytest.mark.named_rows("what the test knows by itself would name the rows")
def test_table_maps_without_names_are_refused_if_the_definition_is_unknown(minimal_mysql: MySqlAddress) -> None:
    """With `binlog_row_metadata=MINIMAL` names and ENUM literals are missing. They are never guessed."""
    play = Play(minimal_mysql, "mysql")
    play.run("CREATE DATABASE minimal", "CREATE TABLE minimal.t (id int unsigned PRIMARY KEY, e enum('x', 'y'))")
    play.database = "minimal"
    play.connection.select_db("minimal")
    start = play.here()
    play.run("INSERT INTO t VALUES (4000000000, 'y')")
    with pytest.raises(BinlogError, match=r"\.\d{6}:\d+: .*minimal\.t .*MINIMAL.* not known") as failure:
        play.read(start, play.here(), 100)
    assert "binlog_row_metadata = FULL" in failure.value.hint
    # With the setting, later rows can be read though those before it cannot.
    play.run("SET GLOBAL binlog_row_metadata = FULL")
    start = play.here()
    play.write("t", 1, e="x")
    row_changes, _ = play.read(start, play.here(), 100)
    assert row_changes == play.expected
    play.connection.close()
