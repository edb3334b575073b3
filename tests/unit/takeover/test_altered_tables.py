"""Tests of the sentences about a connector's schema history, with the statements of a modelled binlog."""

from __future__ import annotations

from typing import Any

import pytest

from incsnap.binlog.capture_options import CaptureOptions
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.taken_over import TakenOver, write_taken_over
from incsnap.ddl.statements import schema_change
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import ConfigError
from incsnap.events import Origin, SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.table_definitions import Definition, shown
from incsnap.tables import TableId
from incsnap.takeover import altered_tables
from incsnap.takeover.schema_history import how_to_renew
from tests.support.files_in_memory import FilesInMemory
from tests.support.job_settings import loaded_with

_SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
_TABLES = [TableId("crm", "people"), TableId("erp", "bills"), TableId("shop", "audit"), TableId("shop", "orders")]
_DATABASES = ("crm", "erp", "mysql", "shop")
_MADE = Definition("CREATE TABLE `t` (`id` int)", shown("CREATE TABLE `t` (`id` int)"))
_ONLY_CAPTURED = {"schema__history__internal__store__only__captured__tables__ddl": "true"}


class Binlog:
    """Statements behind a take-over. The job has stopped behind the first `passed` of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
        self.statements: list[SchemaChange] = []
        self.passed = 100
        self.files: Files = FilesInMemory()
        write_taken_over(self.files, TakenOver("shop", f"{_SERVER}:1-10", Seam(_SERVER, RecordPlace(1, 4))))
        self._settings = loaded_with(
            database__include__list="shop", table__include__list=r"shop\.orders", **settings
        ).settings
        monkeypatch.setattr(altered_tables, "statements_behind", self._behind)
        monkeypatch.setattr(altered_tables, "definitions_of", lambda _, tables: dict.fromkeys(tables, _MADE))
        monkeypatch.setattr(catalog, "all_tables", lambda _: _TABLES)
        monkeypatch.setattr(catalog, "database_charsets", lambda _: dict.fromkeys(_DATABASES, "latin1"))
        monkeypatch.setattr(catalog, "charsets", lambda _: {})
        monkeypatch.setattr(watermarks, "purged", lambda _: GtidSet())
        monkeypatch.setattr(watermarks, "server_uuid", lambda _: _SERVER)
        monkeypatch.setattr(watermarks, "high_watermark", lambda _: ("binlog.000001", 9_000))

    def run(self, *statements: str, database: str = "shop") -> None:
        """Append statements of a session in `database`."""
        for sql in statements:
            change = schema_change(sql, database)
            assert change is not None
            number = len(self.statements) + 1
            origin = Origin(f"{_SERVER}:{10 + number}", "binlog.000001", 100 * number, 0, 1)
            self.statements.append(SchemaChange(change.tables, change.database, sql, origin=origin))

    def needs(self) -> str:
        """Return what the connector's schema history needs."""
        delivered = GtidSet.parse(f"{_SERVER}:1-{10 + self.passed}")
        stream = StreamPosition(delivered, "binlog.000001", 9_000)
        connection: Any = None
        return " ".join(altered_tables.what_it_needs(self._settings, connection, self.files, stream, how_to_renew({})))

    def described(self, known: set[str]) -> tuple[dict[str, str | None], dict[TableId, str]]:
        """Return what a history that names the databases `known` is to have."""
        connection: Any = None
        delivered = GtidSet.parse(f"{_SERVER}:1-{10 + self.passed}")
        return altered_tables.described(self._settings, connection, delivered, known)

    def _behind(self, connect: object, server_id: int, options: CaptureOptions, *_: object) -> list[SchemaChange]:
        return [each for each in self.statements if options.concerns(each)]


@pytest.fixture
def binlog(monkeypatch: pytest.MonkeyPatch) -> Binlog:
    return Binlog(monkeypatch)


def test_the_history_is_right_if_no_statement_ran(binlog: Binlog) -> None:
    assert "the connector's schema history is right" in binlog.needs()


@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("ALTER TABLE audit ADD c INT", "shop"),
        ("CREATE TABLE _orders_gho LIKE orders", "shop"),
        ("ALTER TABLE people ADD c INT", "crm"),
    ],
)
def test_a_statement_about_a_table_that_is_not_captured_counts(binlog: Binlog, sql: str, database: str) -> None:
    binlog.run(sql, database=database)

    needs = binlog.needs()

    assert sql in needs
    assert "snapshot.mode=recovery" in needs


def test_only_captured_tables_count_if_the_history_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    binlog = Binlog(monkeypatch, **_ONLY_CAPTURED)
    binlog.run("ALTER TABLE audit ADD c INT")
    assert "the connector's schema history is right" in binlog.needs()

    binlog.run("ALTER TABLE orders ADD c INT")
    assert "1 statements" in binlog.needs()


def test_a_captured_table_that_was_altered_behind_the_jobs_place_is_refused(binlog: Binlog) -> None:
    binlog.run("ALTER TABLE orders ADD c INT")
    binlog.passed = 0

    with pytest.raises(ConfigError, match="altered behind the place"):
        binlog.needs()


def test_another_table_that_was_altered_behind_the_jobs_place_is_read_by_the_connector(binlog: Binlog) -> None:
    binlog.run("ALTER TABLE audit ADD c INT")
    binlog.passed = 0

    assert "the connector's schema history is right" in binlog.needs()


def test_no_definitions_of_now_are_right_if_another_table_was_altered_behind_the_jobs_place(binlog: Binlog) -> None:
    binlog.run("ALTER TABLE orders ADD c INT", "ALTER TABLE audit RENAME COLUMN a TO b")
    binlog.passed = 1

    with pytest.raises(ConfigError, match="RENAME COLUMN"):
        binlog.needs()


@pytest.mark.parametrize("took_over", [True, False])
def test_a_statement_that_may_come_again_behind_the_jobs_place_is_not_refused(binlog: Binlog, took_over: bool) -> None:
    if not took_over:
        binlog.files = FilesInMemory()
    binlog.run("ALTER TABLE audit ADD c INT")
    binlog.run(
        "CREATE TABLE etl.tmp_1 (id INT, likes INT) COMMENT 'like t'",
        "create table if not exists etl.tmp_1 as select 1 as n",
        "CREATE UNIQUE INDEX i ON etl.tmp_1 (id)",
        "DROP INDEX i ON etl.tmp_1",
        "DROP TABLE IF EXISTS etl.tmp_1, etl.tmp_2",
    )
    binlog.passed = 1

    assert "snapshot.mode=recovery" in binlog.needs()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE etl.tmp_1 (like etl.tmp_2)",
        "CREATE TABLE etl.tmp_1 LIKE etl.tmp_2",
        "ALTER TABLE etl.tmp_1 CHANGE a b INT",
        "RENAME TABLE etl.tmp_1 TO etl.tmp_2",
        "RENAME TABLE etl.tmp_1 TO shop.orders",
        "DROP TABLE etl.tmp_1, shop.orders",
        "CREATE INDEX i ON shop.orders (id)",
        "CREATE TABLE shop.orders (id INT)",
        "DROP DATABASE etl",
        "ALTER DATABASE etl CHARACTER SET latin1",
    ],
)
def test_a_statement_that_may_not_come_again_behind_the_jobs_place_is_refused(binlog: Binlog, sql: str) -> None:
    binlog.run("ALTER TABLE audit ADD c INT", sql)
    binlog.passed = 1

    with pytest.raises(ConfigError, match="altered behind the place"):
        binlog.needs()


def test_the_databases_of_the_history_are_described_too_if_they_are_not_captured(binlog: Binlog) -> None:
    databases, tables = binlog.described({"crm", "gone", "shop"})

    assert databases == {"crm": "latin1", "gone": None, "shop": "latin1"}
    assert sorted(tables) == [TableId("crm", "people"), TableId("shop", "audit"), TableId("shop", "orders")]


def test_only_captured_tables_are_described_if_the_history_has_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    binlog = Binlog(monkeypatch, **_ONLY_CAPTURED)

    assert binlog.described({"crm", "shop"}) == ({"shop": "latin1"}, {TableId("shop", "orders"): _MADE.ddl})


def test_a_table_of_another_database_that_was_altered_behind_the_jobs_place_is_left_out(binlog: Binlog) -> None:
    binlog.run("ALTER TABLE people ADD c INT", database="crm")
    binlog.passed = 0

    databases, tables = binlog.described({"crm", "shop"})

    assert databases["crm"] == "latin1"
    assert TableId("crm", "people") not in tables
