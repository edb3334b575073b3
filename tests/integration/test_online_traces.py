"""Tests of jobs that begin beside tables of gh-ost and spirit, and beside tables that only look like theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.addresses import MySqlAddress
from tests.support.online_migration import Migration, migrations, wait_patiently
from tests.support.online_runs import gh_ost, spirit_of_several

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_patiently(monkeypatch)


@pytest.fixture
def make(mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[Any]:
    """Yield a function that begins a migration."""
    yield from migrations(mysql_address, kafka_address, topic_prefix, tmp_path)


def _until_swap(run: list[str]) -> int:
    """Return the number of the statement that swaps the tables."""
    return next(number for number, sql in enumerate(run) if sql.upper().startswith("RENAME"))


def _swapped(migration: Migration) -> set[str]:
    """Return the tables whose swaps were recognised."""
    notes = (each for each in migration.notifications() if each["type"] == "ONLINE_DDL_SWAP")
    return {each["data_collections"].rpartition(".")[2] for each in notes}


def test_the_alteration_of_a_copy_that_the_job_finds_is_unknown_also_behind_a_further_one(make: Any) -> None:
    migration = make(starts=False)
    run = gh_ost(migration.database)
    swap = _until_swap(run)
    migration.run(*run[:swap])
    assert migration.job
    migration.play(["ALTER TABLE _t_gho ADD c INT", run[swap]], copies="_t_gho")
    assert [ddl for type_, _, ddl in migration.schema_changes() if type_ == "ALTER"] == [run[swap]]
    assert migration.columns_after() == [["id", "v", "n", "c"]]
    assert _swapped(migration) == {"t"}
    assert migration.topics() == {"t"}


def test_a_job_that_begins_in_the_middle_knows_a_copy_of_gh_ost_with_a_name_of_its_own(make: Any) -> None:
    """--force-table-names."""
    migration = make(starts=False)
    run = [sql.replace("`_t_", "`_m42_") for sql in gh_ost(migration.database)]
    swap = _until_swap(run)
    migration.run(*run[:swap])
    assert migration.job
    migration.until_event(migration.insert())
    migration.run("INSERT IGNORE INTO _m42_gho (id, v) SELECT id, v FROM t")
    migration.until_event(migration.insert())
    migration.run("INSERT IGNORE INTO _m42_gho (id, v) SELECT id, v FROM t", *run[swap:])
    migration.until_event(migration.insert())
    assert migration.topics() == {"t"}
    assert not _swapped(migration)
    assert set(migration.events()[-1]) == {"id", "v", "n"}


@pytest.mark.parametrize("begins", ["before", "in the middle"])
def test_spirits_common_checkpoint_claims_the_tables_of_its_run_alone(make: Any, begins: str) -> None:
    migration = make(starts=begins == "before")
    migration.run("CREATE TABLE u LIKE t", "CREATE TABLE x LIKE t", "CREATE TABLE _x_new LIKE x")
    run = spirit_of_several(migration.database)
    swap = _until_swap(run)
    migration.run(*run[:swap])
    statement = "ALTER TABLE t ADD n INT; ALTER TABLE u ADD n INT"
    migration.run(f"INSERT INTO _spirit_checkpoint (copier_watermark, statement) VALUES ('', '{statement}')")
    assert migration.job
    migration.until_event(migration.insert())
    migration.run("INSERT INTO _x_new VALUES (1, 'a')", "INSERT INTO _t_new (id, v) SELECT id, v FROM t")
    key = migration.insert()
    migration.run(f"INSERT INTO _t_new (id, v) VALUES ({key}, 'b')", *run[swap:])
    migration.until_event(migration.insert())
    assert migration.topics() == {"t", "_x_new"}
    assert _swapped(migration) == {"t", "u"}
    assert [set(row) for row in migration.events()] == [{"id", "v"}, {"id", "v"}, {"id", "v", "n"}]


def test_a_job_takes_no_copy_for_spirits_before_the_common_checkpoint_has_a_row(make: Any) -> None:
    migration = make(starts=False)
    migration.run("CREATE TABLE u LIKE t")
    run = spirit_of_several(migration.database)
    migration.run(*run[: _until_swap(run)])
    assert migration.job
    migration.run("INSERT INTO _t_new (id, v) SELECT id, v FROM t")
    migration.until_event(migration.insert())
    assert migration.topics() == {"t", "_t_new"}
