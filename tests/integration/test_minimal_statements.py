"""Statements and rows under ``binlog_row_metadata=MINIMAL`` that ask for no definition: the job goes on behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.minimal_shop import Shop, row

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def address() -> Iterator[MySqlAddress]:
    with servers(kafka=False, mysql_options=["--binlog-row-metadata=MINIMAL"]) as started:
        yield started.mysql


@pytest.fixture
def shop(address: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[Shop]:
    with closing(Shop(address, kafka_address, topic_prefix, tmp_path)) as opened:
        opened.run("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, a VARCHAR(20), b VARCHAR(20), e ENUM('x', 'y'))")
        yield opened


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


def test_a_table_whose_name_looks_like_utf8_in_its_clients_character_set_is_the_one_that_changes(shop: Shop) -> None:
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
