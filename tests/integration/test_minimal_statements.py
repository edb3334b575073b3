"""Tests of statements and rows under `binlog_row_metadata=MINIMAL` that need no new definition: the job continues."""

from __future__ import annotations

from contextlib import closing

import pytest

from lab.mysql_client import connect
from tests.support.minimal_shop import Shop, row

pytestmark = pytest.mark.servers


@pytest.mark.parametrize(("charset", "codec"), [("latin1", "latin-1"), ("gbk", "gbk"), ("cp932", "cp932")])
def test_statements_of_a_client_in_any_character_set_leave_other_tables_known(
    shop: Shop, charset: str, codec: str
) -> None:
    shop.run("CREATE TABLE other (id INT PRIMARY KEY)")
    shop.knows("t", "other")
    shop.job.restart()
    text = {"latin-1": "größe", "gbk": "大小", "cp932": "大きさ"}[codec]
    with closing(connect(shop.address, database=shop.database, charset=charset)) as client, client.cursor() as cursor:
        for number in (1, 2):
            cursor.execute(f"ALTER TABLE other COMMENT '{text}{number}'")
            shop.insert("t", (number, "a", "b", "y"))
    assert shop.until("t", 2) == [row(1, "a", "b", "y"), row(2, "a", "b", "y")]


def test_a_latin1_table_name_that_looks_like_utf8_is_decoded_as_latin1(shop: Shop) -> None:
    """C4 B5 are two half-width characters in cp932, and one other letter in UTF-8. The topic is named `__`."""
    shop.run("CREATE TABLE `ﾄｵ` (id INT PRIMARY KEY, price INT, cost INT)")
    shop.knows("ﾄｵ")
    shop.insert("`ﾄｵ`", (1, 100, 1))
    shop.until("__", 1)
    with closing(connect(shop.address, database=shop.database, charset="cp932")) as client, client.cursor() as cursor:
        cursor.execute("ALTER TABLE `ﾄｵ` RENAME COLUMN price TO cost, RENAME COLUMN cost TO price")
    shop.insert("`ﾄｵ`", (2, 1, 100))
    assert shop.until("__", 2) == [{"id": 1, "price": 100, "cost": 1}, {"id": 2, "cost": 1, "price": 100}]


#: Tables that a statement opens beside the one that it changes, and the statement.
MAPS_WITHOUT_ROWS = {
    "a trigger that does not write": (
        "CREATE TRIGGER tr BEFORE UPDATE ON parent FOR EACH ROW"
        " BEGIN IF NEW.v > 1000 THEN INSERT INTO child VALUES (NEW.id, 1, 0); END IF; END",
        "UPDATE parent SET v = v + 1 WHERE id = 1",
    ),
    "an update of several tables that changes one": (
        "UPDATE parent JOIN child USING (id) SET parent.v = parent.v + 1, child.v = child.v",
    ),
    "a delete from several tables that finds rows in one": (
        "DELETE parent, child FROM parent LEFT JOIN child ON child.id = parent.id AND child.v = 77 WHERE parent.id = 2",
    ),
    "an update of a parent": (
        "CREATE TABLE kid (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON UPDATE CASCADE)",
        "UPDATE parent SET v = 2 WHERE id = 1",
    ),
    "a delete of a parent without children": (
        "CREATE TABLE kid (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
        "DELETE FROM parent WHERE id = 2",
    ),
    "a delete of a parent that children forget": (
        "CREATE TABLE kid (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL)",
        "DELETE FROM parent WHERE id = 2",
    ),
}


@pytest.mark.parametrize("statements", MAPS_WITHOUT_ROWS.values(), ids=MAPS_WITHOUT_ROWS)
def test_tables_that_a_statement_opens_and_does_not_change_need_no_definition(
    shop: Shop, statements: tuple[str, ...]
) -> None:
    shop.run(
        "CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE child (id INT PRIMARY KEY, q INT, v INT)",
    )
    shop.knows("parent", "child")
    shop.run(
        "INSERT INTO parent VALUES (1, 1), (2, 2)",
        "INSERT INTO child VALUES (1, 1, 1)",
    )
    shop.until("child", 1)
    shop.run(*statements, "INSERT INTO parent VALUES (9, 9)")
    shop.job.batches_until(lambda: {"id": 9, "v": 9} in shop.sent("parent"), "the row behind the statement")
    assert len(shop.sent("child")) == 1


#: Statements that leave columns and key as they are, with the table's name `t`.
NEUTRAL = [
    "CREATE TABLE IF NOT EXISTS t (other INT)",
    "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (4000))",
    "ALTER TABLE t DROP PARTITION p1",
    "CREATE INDEX i ON t (a)",
    "ALTER TABLE t ADD INDEX j (b), COMMENT = 'größe'",
    "DROP INDEX i ON t",
    "ALTER TABLE t AUTO_INCREMENT = 100",
    "ALTER TABLE t ENGINE = InnoDB",
    "ALTER TABLE t FORCE, ALGORITHM = INPLACE, LOCK = NONE",
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT 'n', ALTER INDEX j INVISIBLE",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (id >= 0)",
    "TRUNCATE TABLE t",
]


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
def test_statements_that_leave_the_columns_as_they_are_leave_the_definition(shop: Shop, is_down: bool) -> None:
    shop.run(
        "DROP TABLE t",
        "CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), e ENUM('x', 'y'))"
        " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN (3000))",
    )
    shop.knows("t")
    if is_down:
        shop.job.restart()
    for number, statement in enumerate(NEUTRAL):
        shop.run(statement)
        shop.insert("t", (number, "a", None, "y"))
    assert shop.until("t", len(NEUTRAL)) == [row(number, "a", None, "y") for number in range(len(NEUTRAL))]


#: Statements, each with the values of a row behind it and the columns that the row then has.
MIGRATIONS: dict[str, list[tuple[str, str, tuple[object, ...], str]]] = {
    "columns": [
        ("ALTER TABLE t ADD COLUMN n INT FIRST, ADD m CHAR(3) AFTER a", "t", (5, 1, "a", "m", "b", "y"),
         "n id a m b e"),
        ("ALTER TABLE t DROP COLUMN m, CHANGE a c VARCHAR(9), MODIFY n BIGINT AFTER c", "t", (2, "c", 7, "b", "x"),
         "id c n b e"),
        ("ALTER TABLE t RENAME COLUMN c TO b, RENAME COLUMN b TO c", "t", (3, "b", 7, "c", "x"), "id b n c e"),
        ("ALTER TABLE t MODIFY e ENUM('y', 'x', 'z')", "t", (4, "b", 7, "c", "z"), "id b n c e"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1, DROP PRIMARY KEY, ADD PRIMARY KEY (b, id)", "t",
         (5, "é", 8, "c", "x"), "id b n c e"),
    ],
    "tables": [
        ("CREATE TABLE u LIKE t", "u", (1, "a", "b", "x"), "id a b e"),
        ("ALTER TABLE u DROP COLUMN a", "u", (2, "b", "y"), "id b e"),
        ("RENAME TABLE t TO old, u TO t", "t", (3, "b", "y"), "id b e"),
        ("DROP TABLE t", "old", (4, "a", "b", "y"), "id a b e"),
        ("CREATE TABLE t (k INT PRIMARY KEY, v VARCHAR(10) CHARACTER SET latin1)", "t", (5, "é"), "k v"),
        ("CREATE TABLE s SELECT k AS x, v AS y FROM t", "s", (6, "é"), "x y"),
        ("ALTER TABLE s RENAME TO r, ADD COLUMN z SET('p', 'q') DEFAULT 'q'", "r", (7, "é", "p,q"), "x y z"),
        ("DROP TABLE r, old, t", "", (), ""),
    ],
    "databases": [
        ("ALTER DATABASE CHARACTER SET latin1", "t", (1, "a", "b", "x"), "id a b e"),
        ("CREATE TABLE IF NOT EXISTS w (id INT PRIMARY KEY, v VARCHAR(10))", "w", (2, "é"), "id v"),
        ("ALTER TABLE w ADD x CHAR(1)", "w", (3, "é", "ä"), "id v x"),
        ("ALTER TABLE t ADD x CHAR(1)", "t", (4, "a", "b", "x", "€"), "id a b e x"),
        ("ALTER TABLE w DROP v, DROP x, ADD y INT", "w", (5, 1), "id y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
@pytest.mark.parametrize("migration", MIGRATIONS.values(), ids=MIGRATIONS)
def test_statements_that_change_columns_are_followed(
    shop: Shop, migration: list[tuple[str, str, tuple[object, ...], str]], is_down: bool
) -> None:
    shop.knows("t")
    if is_down:
        shop.job.restart()
    expected: dict[str, list[dict[str, object]]] = {}
    for statement, table, values, columns in migration:
        shop.run(statement)
        if table == "s":
            expected["s"] = [{"x": 5, "y": "é"}]
        if table:
            shop.insert(table, values)
            expected.setdefault(table, []).append(dict(zip(columns.split(), values, strict=True)))
    for table, rows in expected.items():
        assert shop.until(table, len(rows)) == rows


def test_an_uncaptured_table_renamed_to_a_captured_name_is_known(shop: Shop) -> None:
    """Tools for online schema changes do so: they alter a copy, which then takes the table's place."""
    shop.job_with(table__include__list=rf"{shop.database}\.t")
    shop.knows("t")
    shop.job.restart()
    shop.run("CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD n INT AFTER id, DROP b")
    shop.insert("t", (1, "a", "b", "y"))
    shop.run("RENAME TABLE t TO _t_del, _t_gho TO t")
    shop.insert("t", (2, 3, "a", "x"))
    shop.run("ALTER TABLE t ADD m INT", "DROP TABLE _t_del")
    shop.insert("t", (4, 5, "a", "x", 6))
    assert shop.until("t", 3) == [
        row(1, "a", "b", "y"),
        {"id": 2, "n": 3, "a": "a", "e": "x"},
        {"id": 4, "n": 5, "a": "a", "e": "x", "m": 6},
    ]


def test_an_existing_table_that_is_not_captured_is_not_taken_for_a_new_one(shop: Shop) -> None:
    shop.job_with(table__include__list=rf"{shop.database}\.t")
    shop.run("CREATE TABLE u (id INT UNSIGNED PRIMARY KEY, a VARCHAR(20))")
    shop.knows("t")
    shop.job.restart()
    shop.run("CREATE TABLE IF NOT EXISTS u (id INT UNSIGNED PRIMARY KEY, wrong VARCHAR(20))")
    shop.run("RENAME TABLE t TO old, u TO t")
    shop.insert("t", (1, "a"))
    assert shop.until("t", 1) == [{"id": 1, "a": "a"}]


def test_tables_of_a_database_that_is_made_if_it_is_missing_are_followed(shop: Shop) -> None:
    new = f"{shop.database}_new"
    shop.job_with(database__include__list=f"{shop.database}.*")
    shop.knows("t")
    shop.job.restart()
    try:
        shop.run(f"CREATE DATABASE IF NOT EXISTS {new}", f"CREATE TABLE {new}.u (id INT PRIMARY KEY, a VARCHAR(9))")
        shop.insert(f"{new}.u", (1, "é"))
        shop.run(f"ALTER TABLE {new}.u ADD b CHAR(3)")
        shop.insert(f"{new}.u", (2, "é", "ü"))
        topic = f"{shop.prefix}.{new}.u"
        shop.job.batches_until(lambda: len(shop.job.of(topic)) == 2, "the rows")
        assert [each.value["after"] for each in shop.job.of(topic)] == [
            {"id": 1, "a": "é"},
            {"id": 2, "a": "é", "b": "ü"},
        ]
    finally:
        shop.run(f"DROP DATABASE {new}")


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
@pytest.mark.parametrize("is_new", [False, True], ids=["there before the job", "made behind its start"])
def test_a_table_that_comes_from_a_database_that_is_not_captured_is_known(
    shop: Shop, *, is_new: bool, is_down: bool
) -> None:
    far = f"{shop.database}_far"
    try:
        creation = [f"CREATE TABLE {far}.{name} (id INT PRIMARY KEY, x CHAR(3), y CHAR(3))" for name in ("u", "v")]
        shop.run(f"CREATE DATABASE {far}", *(() if is_new else creation))
        shop.knows("t")
        if is_down:
            shop.job.restart()
        shop.run("DO 0", *(creation if is_new else ()))
        swap = "RENAME COLUMN x TO y, RENAME COLUMN y TO x"
        shop.run(f"ALTER TABLE {far}.u {swap}", f"RENAME TABLE {far}.u TO u", f"CREATE TABLE v LIKE {far}.v")
        shop.insert("u", (1, "y", "x"))
        shop.insert("v", (1, "x", "y"))
        shop.run(f"ALTER TABLE u {swap}", f"ALTER TABLE v {swap}", f"ALTER TABLE {far}.v DROP COLUMN x")
        shop.insert("u", (2, "x", "y"))
        shop.insert("v", (2, "y", "x"))
        shop.run("DROP TABLE u", "ALTER TABLE v ADD z INT")
        rows = [{"id": 1, "x": "x", "y": "y"}, {"id": 2, "x": "x", "y": "y"}]
        assert shop.until("u", 2) == rows
        assert shop.until("v", 2) == rows
    finally:
        shop.run(f"DROP DATABASE {far}")


def test_a_locked_table_that_is_not_captured_does_not_hold_up_the_job(shop: Shop) -> None:
    far = f"{shop.database}_far"
    shop.run(f"CREATE DATABASE {far}", f"CREATE TABLE {far}.locked (id INT PRIMARY KEY)")
    try:
        with closing(connect(shop.address)) as other, other.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {far}.locked WRITE")
            shop.knows("t")
            shop.insert("t", (1, "a", "b", "x"))
            assert shop.until("t", 1) == [row(1, "a", "b", "x")]
    finally:
        shop.run(f"DROP DATABASE {far}")


def test_a_definition_that_the_server_does_not_confirm_stops_the_job(shop: Shop) -> None:
    shop.knows("t")
    shop.run("SET sql_log_bin = 0", "ALTER TABLE t RENAME COLUMN a TO hidden", "SET sql_log_bin = 1")
    shop.run("ALTER TABLE t ADD COLUMN n INT")
    assert "its column 2" in shop.stops("is not what its statements in the binlog made of it")


#: What leads to a view of a table's name, and to a table of this name that is made if it is missing. The statement
#: about the view is logged and does nothing.
VIEWS: dict[str, tuple[str, ...]] = {
    "a view that is dropped": (
        "CREATE VIEW v AS SELECT 1 AS x",
        "CREATE TABLE IF NOT EXISTS v (id INT PRIMARY KEY, price INT)",
        "DROP VIEW v",
    ),
    "a view that gets another name": (
        "CREATE VIEW w AS SELECT 1 AS x",
        "CREATE TABLE IF NOT EXISTS w (id INT PRIMARY KEY, price INT)",
        "RENAME TABLE w TO v",
        "CREATE TABLE IF NOT EXISTS v LIKE like_price",
        "DROP VIEW v",
    ),
    "a view that takes a table's place": (
        "CREATE TABLE v LIKE like_price",
        "CREATE VIEW w AS SELECT 1 AS x",
        "RENAME TABLE v TO old, w TO v",
        "CREATE TABLE IF NOT EXISTS v (id INT PRIMARY KEY, price INT)",
        "DROP TABLE IF EXISTS v",
        "RENAME TABLE v TO w",
    ),
}


@pytest.mark.parametrize("is_down", [False, True], ids=["running", "down"])
@pytest.mark.parametrize("statements", VIEWS.values(), ids=VIEWS)
def test_the_columns_of_a_temporary_view_are_not_taken_for_a_later_table(
    shop: Shop, statements: tuple[str, ...], is_down: bool
) -> None:
    shop.run("CREATE TABLE like_price (id INT PRIMARY KEY, price INT)")
    shop.knows("t", "like_price")
    if is_down:
        shop.job.restart()
    for statement in statements:
        shop.run(statement)
        shop.insert("t", (shop.run("SELECT COUNT(*) FROM t")[0][0], "a", "b", "x"))
        if not is_down:
            shop.job.batches_until(lambda: bool(shop.sent("t")), "batch")
    shop.run("CREATE TABLE IF NOT EXISTS v (id INT PRIMARY KEY, cost INT)")
    shop.insert("v", (1, 7))
    shop.run("ALTER TABLE v ADD z INT", "DROP TABLE v")
    assert shop.until("v", 1) == [{"id": 1, "cost": 7}]


def test_a_table_of_another_engine_that_is_made_if_it_is_missing_is_asked_for(shop: Shop) -> None:
    shop.knows("t")
    shop.run("CREATE TABLE IF NOT EXISTS m (id INT PRIMARY KEY, cost INT) ENGINE = MyISAM")
    shop.insert("m", (1, 7))
    assert shop.until("m", 1) == [{"id": 1, "cost": 7}]
    shop.run("ALTER TABLE m ADD z INT")
    shop.insert("m", (2, 7, 8))
    assert shop.until("m", 2)[1:] == [{"id": 2, "cost": 7, "z": 8}]


def test_a_table_of_another_engine_that_a_view_may_have_stood_in_for_stops_the_job(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    shop.run(
        "CREATE VIEW m AS SELECT 1 AS x",
        "CREATE TABLE IF NOT EXISTS m (id INT PRIMARY KEY, price INT)",
        "DROP VIEW m",
        "CREATE TABLE IF NOT EXISTS m (id INT PRIMARY KEY, cost INT) ENGINE = MyISAM",
    )
    shop.insert("m", (1, 7))
    shop.run("ALTER TABLE m ADD z INT")
    assert "may have been there" in shop.stops("rows of .*m were written")


def test_a_table_that_is_made_of_a_query_if_it_is_missing_is_followed(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    shop.run(
        "CREATE TABLE IF NOT EXISTS made SELECT 1 AS id, 7 AS cost",
        "CREATE TABLE IF NOT EXISTS made SELECT 1 AS wrong, 8 AS names",
        "ALTER TABLE made DROP id",
    )
    assert shop.until("made", 1) == [{"id": 1, "cost": 7}]
