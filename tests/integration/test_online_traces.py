"""Tests of jobs that begin beside tables of gh-ost and spirit, and beside tables that only look like theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from incsnap.errors import PreflightFailed
from incsnap.mysql.online_tables import tables_of_tools
from incsnap.mysql.session import connect
from lab.addresses import MySqlAddress
from tests.support.online_migration import Migration, migrations, wait_patiently
from tests.support.online_runs import gh_ost, revert, spirit_of_several

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


@pytest.mark.parametrize("runs", ["before the restart", "before and behind the restart"])
def test_a_job_with_a_further_database_knows_the_run_that_is_under_way_there(make: Any, runs: str) -> None:
    migration, further = make(), make(starts=False)
    run = gh_ost(further.database)
    swap = _until_swap(run)
    if runs == "before the restart":
        further.run(*run[:swap])
    migration.until_event(migration.insert())
    if runs != "before the restart":
        # The statements are behind the job's place, so they come by the stream as well.
        further.run(*run[:swap])
    databases = (migration.database, further.database)
    tables = migration.settings.tables.model_copy(update={"database_include": databases})
    job = migration.job
    job.restart(migration.settings.model_copy(update={"tables": tables}), run="second")
    job.restart()
    further.run("INSERT INTO _t_gho (id, v) SELECT id, v FROM t")
    key = further.insert()
    further.run(f"INSERT INTO _t_gho (id, v) VALUES ({key}, 'b')")
    migration.until_event(migration.insert())
    further.run(*run[swap:])
    further.insert()
    migration.until_event(migration.insert())
    begin = f"{migration.prefix}.{further.database}."
    sent = [each for each in job.sent if each.topic.startswith(begin)]
    assert {each.topic.removeprefix(begin) for each in sent} == {"t"}
    assert [set(each.value["after"]) for each in sent if each.value] == [{"id", "v"}, {"id", "v", "n"}]
    # Statements behind the job's place report tables once more.
    notes = list(dict.fromkeys((each["type"], each["data_collections"]) for each in migration.notifications()))
    own = ["_t_ghc", "_t_gho", *(["_t_del"] if runs != "before the restart" else [])]
    reported = [("ONLINE_DDL_TABLE", f"{further.database}.{name}") for name in own]
    assert notes == [*reported, ("ONLINE_DDL_SWAP", f"{further.database}.t")]


@pytest.mark.parametrize("two_step", [False, True], ids=["atomic", "two-step"])
def test_a_revert_of_a_run_from_before_the_job_is_an_alter(make: Any, two_step: bool) -> None:
    migration = make(starts=False)
    migration.play(gh_ost(migration.database, drops_old=False)[:-1], copies="_t_gho", batches=False)
    migration.run("DROP TABLE _t_ghc")
    assert migration.job
    back = revert(migration.database)
    if two_step:
        halves = ["alter /* gh-ost */ table t rename _t_rev_del", "alter /* gh-ost */ table _t_del rename t"]
        back = [back[0], *halves, back[-1]]
    migration.play(back[:-1])
    migration.run("INSERT INTO _t_rev_del (id, v) VALUES (1000, 'c')", back[-1])
    migration.until_event(migration.insert())
    assert [tables for type_, tables, _ in migration.schema_changes() if type_ == "ALTER"][-1] == ["t"]
    assert "_t_rev_del" not in {name for _, tables, _ in migration.schema_changes() for name in tables}
    assert _swapped(migration) == {"t"}
    assert migration.topics() == {"t"}
    assert set(migration.events()[-1]) == {"id", "v"}


@pytest.mark.parametrize("reverts", [False, True], ids=["a run", "a revert"])
def test_a_new_job_is_refused_between_the_two_renames_of_a_cut_over(make: Any, reverts: bool) -> None:
    migration = make(starts=False)
    if reverts:
        migration.play(gh_ost(migration.database, drops_old=False), copies="_t_gho", batches=False)
        run = [revert(migration.database)[0], "alter /* gh-ost */ table t rename _t_rev_del"]
        second, former = "alter /* gh-ost */ table _t_del rename t", "_t_rev_del"
    else:
        run = gh_ost(migration.database, two_step=True)[:-2]
        second, former = run.pop(), "_t_del"
    migration.run(*run)
    with pytest.raises(PreflightFailed, match=rf"{former}, and no {migration.database}\.t$") as refused:
        assert migration.job
    assert "Start the job again when gh-ost has ended" in refused.value.hint
    migration.run(second)
    assert migration.job
    migration.until_event(migration.insert())
    assert "t" in migration.topics()


def test_a_new_job_begins_beside_tables_of_a_run_whose_table_it_does_not_capture(make: Any) -> None:
    migration = make(starts=False, table__include__list=r".*\.u")
    migration.run("CREATE TABLE u (id INT NOT NULL PRIMARY KEY)", *gh_ost(migration.database, two_step=True)[:-3])
    assert not migration.has_table()
    assert migration.job


def test_triggers_that_the_user_may_not_see_are_named_in_a_warning(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    migration = make(starts=False)
    migration.run("CREATE TABLE _t_new (id INT NOT NULL PRIMARY KEY)")
    user, role = f"u_{migration.database}", f"r_{migration.database}"
    migration.run(f"CREATE USER {user} IDENTIFIED BY 'pw'", f"CREATE ROLE {role}", f"GRANT {role} TO {user}")
    settings = migration.settings
    asks = settings.model_copy(
        update={"mysql": settings.mysql.model_copy(update={"user": user, "password": SecretStr("pw")})}
    )
    grants = {
        f"GRANT SELECT ON `{migration.database}`.* TO {user}": True,
        f"GRANT TRIGGER ON `{migration.database}`.* TO {role}": True,
        f"ALTER USER {user} DEFAULT ROLE {role}": False,
        f"ALTER USER {user} DEFAULT ROLE NONE": True,
        f"GRANT TRIGGER ON `{migration.database}`.t TO {user}": False,
    }
    try:
        for grant, warns in grants.items():
            migration.run(grant)
            caplog.clear()
            with closing(connect(asks.mysql)) as connection:
                tables_of_tools(connection, asks)
            assert (f"{migration.database}._t_new may be filled" in caplog.text) is warns, grant
    finally:
        migration.run(f"DROP USER {user}", f"DROP ROLE {role}")
