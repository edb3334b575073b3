"""Tests of tables that change places under `binlog_row_metadata=MINIMAL`. The job runs or is far behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.minimal_shop import Shop

pytestmark = pytest.mark.servers

#: Statements, each with the table that gets a row behind it, the row's values and the columns that the row then has.
CUT_OVERS: dict[str, list[tuple[str, str, tuple[Any, ...], str]]] = {
    "two tables swap their names": [
        ("CREATE TABLE a (id INT PRIMARY KEY, x VARCHAR(9), y VARCHAR(9))", "a", (1, "x", "y"), "id x y"),
        ("CREATE TABLE b (id INT PRIMARY KEY, y VARCHAR(9), x VARCHAR(9))", "b", (1, "y", "x"), "id y x"),
        ("RENAME TABLE a TO tmp, b TO a, tmp TO b", "a", (2, "y", "x"), "id y x"),
        ("DO 0", "b", (2, "x", "y"), "id x y"),
        ("ALTER TABLE a RENAME COLUMN y TO z", "a", (3, "z", "x"), "id z x"),
        ("RENAME TABLE a TO tmp, b TO a, tmp TO b", "a", (4, "x", "y"), "id x y"),
        ("ALTER TABLE b DROP COLUMN z", "b", (4, "x"), "id x"),
    ],
    "gh-ost": [
        ("CREATE TABLE _t_ghc (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64), UNIQUE KEY u (hint))",
         "t", (1, "a", "b", "x"), "id a b e"),
        ("CREATE /* gh-ost */ TABLE _t_gho LIKE t", "t", (2, "a", "b", "x"), "id a b e"),
        ("ALTER /* gh-ost */ TABLE _t_gho RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD n INT", "t",
         (3, "a", "b", "x"), "id a b e"),
        ("CREATE TABLE _t_del (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB COMMENT='ghost-cut-over-sentry'", "t",
         (4, "a", "b", "x"), "id a b e"),
        ("DROP TABLE IF EXISTS _t_del", "t", (5, "a", "b", "x"), "id a b e"),
        ("RENAME /* gh-ost */ TABLE t TO _t_del, _t_gho TO t", "t", (6, "b", "a", "x", 1), "id b a e n"),
        ("DROP TABLE IF EXISTS _t_ghc", "t", (7, "b", "a", "x", 1), "id b a e n"),
        ("DROP TABLE IF EXISTS _t_del", "t", (8, "b", "a", "x", 1), "id b a e n"),
        ("ALTER TABLE t DROP COLUMN b", "t", (9, "a", "x", 1), "id a e n"),
    ],
    "pt-online-schema-change": [
        ("CREATE TABLE _t_new LIKE t", "t", (1, "a", "b", "x"), "id a b e"),
        ("ALTER TABLE _t_new DROP COLUMN a, ADD COLUMN c VARCHAR(20)", "t", (2, "a", "b", "x"), "id a b e"),
        ("CREATE TRIGGER pt_osc_ins AFTER INSERT ON t FOR EACH ROW REPLACE INTO _t_new (id, b, e)"
         " VALUES (NEW.id, NEW.b, NEW.e)", "t", (3, "a", "b", "x"), "id a b e"),
        ("INSERT LOW_PRIORITY IGNORE INTO _t_new (id, b, e) SELECT id, b, e FROM t FORCE INDEX (PRIMARY)", "t",
         (4, "a", "b", "x"), "id a b e"),
        ("ANALYZE TABLE _t_new", "t", (5, "a", "b", "x"), "id a b e"),
        ("RENAME TABLE t TO _t_old, _t_new TO t", "t", (6, "b", "x", "c"), "id b e c"),
        ("DROP TABLE IF EXISTS _t_old", "t", (7, "b", "x", "c"), "id b e c"),
        ("DROP TRIGGER IF EXISTS pt_osc_ins", "t", (8, "b", "x", "c"), "id b e c"),
        ("ALTER TABLE t RENAME COLUMN c TO d", "t", (9, "b", "x", "d"), "id b e d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("is_behind", [False, True], ids=["running", "behind"])
@pytest.mark.parametrize("captured", ["all", "one"])
@pytest.mark.parametrize("cut_over", CUT_OVERS.values(), ids=CUT_OVERS)
def test_rows_around_a_cut_over_have_the_columns_of_their_time(
    shop: Shop, cut_over: list[tuple[str, str, tuple[Any, ...], str]], captured: str, is_behind: bool
) -> None:
    tables = {table for _, table, _, _ in cut_over}
    if captured == "one":
        names = "|".join(sorted({"t", *tables}))
        shop.job_with(table__include__list=rf"{shop.database}\.({names})")
    shop.knows("t")
    if is_behind:
        shop.job.restart()
    expected: dict[str, list[dict[str, Any]]] = {}
    for statement, table, values, columns in cut_over:
        shop.run(statement)
        shop.insert(table, values)
        rows = expected.setdefault(table, [])
        rows.append(dict(zip(columns.split(), values, strict=True)))
        if not is_behind:
            assert shop.until(table, len(rows))[-1] == rows[-1]
    for table, rows in expected.items():
        assert shop.until(table, len(rows)) == rows


#: Statements about databases around tables, as above. `{}` is a database that is captured, as all with its beginning.
DATABASES: dict[str, list[tuple[str, str, tuple[Any, ...], str]]] = {
    "dropped and made again": [
        ("CREATE DATABASE {}", "", (), ""),
        ("CREATE TABLE {}.u (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))", "u", (1, "a", "b"), "id a b"),
        ("DROP DATABASE {}", "", (), ""),
        ("CREATE DATABASE {} CHARACTER SET latin1", "", (), ""),
        ("CREATE TABLE {}.u (id INT PRIMARY KEY, b VARCHAR(9), a VARCHAR(9))", "u", (2, "é", "a"), "id b a"),
        ("ALTER TABLE {}.u ADD c VARCHAR(3)", "u", (3, "b", "a", "é"), "id b a c"),
        ("DROP DATABASE IF EXISTS {}", "", (), ""),
        ("CREATE DATABASE IF NOT EXISTS {}", "", (), ""),
        ("CREATE TABLE IF NOT EXISTS {}.u (id INT PRIMARY KEY, z VARCHAR(9))", "u", (4, "€"), "id z"),
    ],
    "altered": [
        ("CREATE SCHEMA {} DEFAULT CHARACTER SET = latin1 COLLATE latin1_bin", "", (), ""),
        ("CREATE TABLE {}.u (id INT PRIMARY KEY, a VARCHAR(9))", "u", (1, "é"), "id a"),
        ("ALTER SCHEMA {} CHARACTER SET utf8mb4", "", (), ""),
        ("ALTER TABLE {}.u ADD b VARCHAR(9)", "u", (2, "é", "é"), "id a b"),
        ("CREATE TABLE {}.v (id INT PRIMARY KEY, a VARCHAR(9))", "v", (1, "€"), "id a"),
        ("ALTER DATABASE {} READ ONLY = 1", "", (), ""),
        ("ALTER DATABASE {} READ ONLY = 0", "", (), ""),
        ("ALTER TABLE {}.v ADD b VARCHAR(9)", "v", (2, "€", "€"), "id a b"),
    ],
    "of a table that moves there": [
        ("CREATE DATABASE {}", "", (), ""),
        ("RENAME TABLE t TO {}.t", "t", (1, "a", "b", "x"), "id a b e"),
        ("ALTER TABLE {}.t RENAME COLUMN a TO b, RENAME COLUMN b TO a", "t", (2, "b", "a", "x"), "id b a e"),
        ("DROP DATABASE {}", "", (), ""),
        ("CREATE DATABASE {}", "", (), ""),
        ("CREATE TABLE {}.t (id INT PRIMARY KEY, q INT)", "t", (3, 4), "id q"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("is_behind", [False, True], ids=["running", "behind"])
@pytest.mark.parametrize("statements", DATABASES.values(), ids=DATABASES)
def test_tables_of_databases_that_come_and_go_are_followed(
    shop: Shop, statements: list[tuple[str, str, tuple[Any, ...], str]], is_behind: bool
) -> None:
    new = f"{shop.database}_new"
    shop.job_with(database__include__list=f"{shop.database}.*")
    shop.knows("t")
    if is_behind:
        shop.job.restart()
    expected: dict[str, list[dict[str, Any]]] = {}
    try:
        for statement, table, values, columns in statements:
            shop.run(statement.format(new))
            if table:
                shop.insert(f"{new}.{table}", values)
                rows = expected.setdefault(table, [])
                rows.append(dict(zip(columns.split(), values, strict=True)))
                if not is_behind:
                    _until(shop, f"{shop.prefix}.{new}.{table}", rows)
        for table, rows in expected.items():
            _until(shop, f"{shop.prefix}.{new}.{table}", rows)
    finally:
        shop.run(f"DROP DATABASE IF EXISTS {new}")


def _until(shop: Shop, topic: str, rows: list[dict[str, Any]]) -> None:
    shop.job.batches_until(lambda: len(shop.job.of(topic)) >= len(rows), f"{len(rows)} rows of {topic}")
    assert [each.value["after"] for each in shop.job.of(topic)] == rows
