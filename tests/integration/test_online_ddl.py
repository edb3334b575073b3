"""Tests of jobs beside gh-ost, pt-online-schema-change and spirit: the statements of these tools on real servers.

Without Spark, as `binlog_row_metadata=FULL` and as MINIMAL. The statements are those that the tools send, in their
order. Between them rows of the table change, and rows come into the copy as the tools write them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.tail import Tail
from incsnap.checkpoint.files import Files
from incsnap.config.settings import StartPlace
from incsnap.planner.online_ddl import OnlineDdl, online_tables_at
from tests.support.online_migration import Migration, migrations, wait_patiently
from tests.support.online_runs import gh_ost, pt_osc, resumed, revert, spirit
from tests.support.planned_job import read_to_the_end

pytestmark = pytest.mark.servers

_DEFINITION = "`id` int NOT NULL,\n  `v` varchar(9) DEFAULT NULL,\n  PRIMARY KEY (`id`)"
_BEFORE, _AFTER = {"id", "v"}, {"id", "v", "n"}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_patiently(monkeypatch)


@pytest.fixture(params=["FULL", "MINIMAL"])
def make(request: pytest.FixtureRequest, kafka_address: str, topic_prefix: str, tmp_path: Path) -> Iterator[Any]:
    """Yield a function that begins a migration on a server with this `binlog_row_metadata`."""
    address = request.getfixturevalue("mysql_address" if request.param == "FULL" else "minimal_mysql")
    yield from migrations(address, kafka_address, topic_prefix, tmp_path)


def runs(database: str) -> dict[str, tuple[list[str], str, set[str]]]:
    """Each tool's statements, the name of its copy and the names of its tables."""
    checkpoint = gh_ost(database, checkpoint=True)
    return {
        "gh-ost": (checkpoint, "_t_gho", {"_t_gho", "_t_ghc", "_t_ghk"}),
        "gh-ost --resume": (resumed(checkpoint), "_t_gho", {"_t_gho", "_t_ghc", "_t_ghk"}),
        "two-step": (gh_ost(database, two_step=True), "_t_gho", {"_t_gho", "_t_ghc"}),
        "pt-osc": (pt_osc(database, definition=_DEFINITION, columns="`id`, `v`"), "_t_new", {"_t_new"}),
        "spirit": (spirit(database), "_t_new", {"_t_new", "_t_chkpnt"}),
    }


TOOLS = ("gh-ost", "gh-ost --resume", "two-step", "pt-osc", "spirit")


def check(migration: Migration, tables: set[str], alters: int = 1) -> None:
    """Check what consumers see of a run: one ALTER, no table of the tool, and each row once in the form of its time."""
    assert migration.topics() == {"t"}
    assert migration.recognised() - {"_t_del"} == tables
    statements = [each for each in migration.schema_changes() if not each[2].startswith("CREATE TABLE `t`")]
    assert [(type_, names) for type_, names, _ in statements] == [("ALTER", ["t"])] * alters, statements
    assert all(ddl == f"ALTER TABLE `{migration.database}`.`t` ADD n INT" for _, _, ddl in statements)
    rows = migration.events()
    assert [row["id"] for row in rows] == migration.keys[-len(rows) :]
    forms = [set(row) for row in rows]
    changed = forms.index(_AFTER)
    assert all(form == _BEFORE for form in forms[:changed])
    assert all(form == _AFTER for form in forms[changed:])


@pytest.mark.parametrize("is_behind", [False, True], ids=["running", "behind"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_run_is_one_alter_and_its_tables_belong_to_nobody(
    make: Any, tool: str, is_behind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration = make()
    run, copy, tables = runs(migration.database)[tool]
    migration.until_event(migration.insert())
    migration.play(run, copies=copy, batches=not is_behind)
    if is_behind:
        # Each statement has a batch of its own. Triggers that follow tell that a table is a copy of
        # pt-online-schema-change, but the tail has not read them.
        monkeypatch.setattr("incsnap.planner.schema_changes.alters_frame", lambda *_: True)
        behind = Tail.changes_behind
        monkeypatch.setattr(
            Tail, "changes_behind", lambda tail, at, end, wait: behind(tail, at, end, wait) if wait else ()
        )
    migration.until_event(migration.insert())
    check(migration, tables)
    assert [each["type"] for each in migration.notifications()].count("ONLINE_DDL_SWAP") == 1
    assert not migration.job.offset.online or tool.startswith("gh-ost")
    if not is_behind:
        assert migration.columns_after() == [["id", "v", "n"]]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_restart_behind_each_batch_loses_nothing(make: Any, tool: str) -> None:
    migration = make()
    run, copy, tables = runs(migration.database)[tool]
    migration.until_event(migration.insert())
    migration.play(run, copies=copy, restarts=True)
    check(migration, tables)


def test_two_runs_in_a_row_are_two_alters(make: Any) -> None:
    migration = make()
    for alter in ("ADD n INT", "MODIFY n BIGINT"):
        migration.play(gh_ost(migration.database, alter=alter), copies="_t_gho")
    begin = f"ALTER TABLE `{migration.database}`.`t` "
    ddl = [text for _, _, text in migration.schema_changes() if not text.startswith("CREATE TABLE `t`")]
    assert ddl == [f"{begin}ADD n INT", f"{begin}MODIFY n BIGINT"]
    assert migration.topics() == {"t"}


def test_a_run_that_is_given_up_leaves_no_trace(make: Any) -> None:
    migration = make()
    run = gh_ost(migration.database)
    swap = next(number for number, sql in enumerate(run) if sql.startswith("rename"))
    migration.play([*run[:swap], "DROP TABLE _t_ghc", "DROP TABLE _t_gho"], copies="_t_gho")
    assert migration.topics() == {"t"}
    assert all(ddl.startswith("CREATE TABLE `t`") for _, _, ddl in migration.schema_changes())
    assert not migration.job.offset.online
    migration.play(run, copies="_t_gho")
    check(migration, {"_t_gho", "_t_ghc"})


def test_a_copy_of_pt_osc_that_is_kept_is_swapped_by_hand_as_one_alter(make: Any) -> None:
    """--no-swap-tables, --no-drop-new-table and --no-drop-triggers."""
    migration = make()
    run = pt_osc(migration.database, definition=_DEFINITION, columns="`id`, `v`")
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    migration.play([*run[:swap], "RENAME TABLE t TO _t_old, _t_new TO t"], copies="_t_new")
    check(migration, {"_t_new"})


def test_the_drop_before_the_swap_of_pt_osc_is_no_drop(make: Any) -> None:
    """--alter-foreign-keys-method=drop_swap."""
    migration = make()
    run = pt_osc(migration.database, definition=_DEFINITION, columns="`id`, `v`")
    swap = next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))
    migration.play(run[:swap], copies="_t_new")
    drop = ("SET foreign_key_checks = 0", "DROP TABLE IF EXISTS t")
    migration.run("INSERT IGNORE INTO _t_new (id, v) SELECT id, v FROM t", *drop)
    migration.job.batch()
    migration.play([f"RENAME TABLE {migration.database}._t_new TO {migration.database}.t"])
    check(migration, {"_t_new"})


def _alters(migration: Migration) -> list[tuple[list[str], str]]:
    """Return the tables and the text of each ALTER that was reported."""
    return [(names, ddl) for type_, names, ddl in migration.schema_changes() if type_ == "ALTER"]


def test_the_child_tables_that_pt_osc_alters_have_ordinary_alters(make: Any) -> None:
    """--alter-foreign-keys-method=rebuild_constraints."""
    migration = make()
    migration.run(
        "CREATE TABLE child (id INT NOT NULL PRIMARY KEY, parent INT,"
        " CONSTRAINT parent FOREIGN KEY (parent) REFERENCES t (id))"
    )
    run = pt_osc(migration.database, definition=_DEFINITION, columns="`id`, `v`", rebuilds="child")
    migration.play(run, copies="_t_new")
    migration.run("INSERT INTO child VALUES (1, 1)")
    migration.until_event(migration.insert())
    rebuilt = next(sql for sql in run if "`child`" in sql)
    assert _alters(migration) == [(["t"], f"ALTER TABLE `{migration.database}`.`t` ADD n INT"), (["child"], rebuilt)]
    assert migration.topics() == {"t", "child"}
    assert migration.events("child") == [{"id": 1, "parent": 1}]


def test_the_tables_own_triggers_move_to_the_copy_and_what_they_write_is_captured(make: Any) -> None:
    """--preserve-triggers."""
    migration = make()
    writes = "INSERT INTO audits (row_id) VALUES (NEW.id)"
    migration.run(
        "CREATE TABLE audits (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, row_id INT)",
        f"CREATE TRIGGER audit AFTER INSERT ON t FOR EACH ROW {writes}",
    )
    run = pt_osc(migration.database, definition=_DEFINITION, columns="`id`, `v`", preserves=writes)
    moves = next(number for number, sql in enumerate(run) if "`audit`" in sql)
    migration.play(run[:moves])
    migration.run("INSERT IGNORE INTO _t_new (id, v) SELECT id, v FROM t")
    migration.play(run[moves:])
    assert _alters(migration) == [(["t"], f"ALTER TABLE `{migration.database}`.`t` ADD n INT")]
    assert migration.recognised() == {"_t_new"}
    assert migration.topics() == {"t", "audits"}
    with migration.connection.cursor() as cursor:
        cursor.execute("SELECT id, row_id FROM audits ORDER BY id")
        rows = cursor.fetchall()
    assert [(row["id"], row["row_id"]) for row in migration.events("audits")] == list(rows)


def test_a_revert_is_one_more_alter(make: Any) -> None:
    migration = make()
    migration.play(gh_ost(migration.database, drops_old=False), copies="_t_gho")
    migration.play(revert(migration.database), copies="_t_del")
    assert migration.topics() == {"t"}
    assert [set(row) for row in migration.events()][-1] == _BEFORE
    assert migration.columns_after() == [["id", "v", "n"], ["id", "v"]]


def test_a_start_knows_the_former_table_that_a_run_has_left(make: Any, tmp_path: Path) -> None:
    migration = make()
    migration.play(gh_ost(migration.database, drops_old=False), copies="_t_gho")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "incsnap").symlink_to(migration.root)
    settings = migration.settings.model_copy(update={"checkpoint_location": str(tmp_path / "checkpoint")})
    assert online_tables_at(settings, migration.job.offset).names() == {f"{migration.database}._t_del"}
    assert not online_tables_at(settings, None).tables


def test_a_real_table_with_such_a_name_is_captured(make: Any) -> None:
    migration = make()
    migration.run(
        "CREATE TABLE _x_new (id INT PRIMARY KEY)", "CREATE TABLE _t_new LIKE t", "CREATE TABLE _t_old LIKE t"
    )
    migration.run(
        "INSERT INTO _x_new VALUES (1)", "INSERT INTO _t_new SELECT * FROM t", "INSERT INTO _t_old VALUES (1, 'a')"
    )
    migration.until_event(migration.insert())
    assert migration.topics() == {"t", "_x_new", "_t_new", "_t_old"}
    assert not migration.notifications()
    migration.run("RENAME TABLE t TO x, _t_new TO t")
    migration.until_event(migration.insert())
    assert "ONLINE_DDL_SWAP" not in {each["type"] for each in migration.notifications()}


def test_an_alter_of_a_real_table_with_such_a_name_is_reported(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    migration = make()
    migration.run("CREATE TABLE _t_new LIKE t")
    migration.until_event(migration.insert())
    read_to_the_end(monkeypatch, migration.address)
    alter = "ALTER TABLE _t_new RENAME COLUMN v TO w"
    migration.run("INSERT INTO _t_new SELECT * FROM t", alter)
    migration.until_event(migration.insert())
    assert migration.schema_changes()[-1] == ("ALTER", ["_t_new"], alter)
    assert migration.columns_after() == [["id", "w"]]


def test_the_setting_gives_debeziums_way(make: Any) -> None:
    migration = make(incsnap__online__ddl__tables="capture")
    migration.play(gh_ost(migration.database), copies="_t_gho")
    assert migration.topics() == {"t", "_t_gho"}
    assert not migration.notifications()
    assert len(migration.schema_changes()) > 6


def test_a_job_that_begins_in_the_middle_of_a_run_knows_its_tables(make: Any) -> None:
    migration = make(starts=False, snapshot__mode="initial")
    migration.run("CREATE TABLE u (id INT NOT NULL, PRIMARY KEY (id))")
    for run in (gh_ost(migration.database), pt_osc(migration.database, "u")):
        migration.run(*run[: next(number for number, sql in enumerate(run) if sql.upper().startswith("RENAME"))])
    migration.run("INSERT INTO _t_gho (id, v) SELECT id, v FROM t", "INSERT INTO u VALUES (1)")
    assert migration.job
    migration.until_event(migration.insert())
    migration.job.batches_until(lambda: not migration.job.offset.snapshot.active, "the end of the snapshot")
    assert migration.topics() == {"t", "u"}
    created = {names[0] for type_, names, _ in migration.schema_changes() if type_ == "CREATE"}
    assert created == {"t", "u"}
    assert migration.topics_in_kafka() == {"t", "u"}
    assert migration.recognised() == {"_t_ghc", "_t_gho", "_u_new"}


def test_a_job_that_begins_in_the_middle_of_a_run_knows_a_copy_by_its_triggers_alone(make: Any) -> None:
    migration = make(starts=False, snapshot__mode="initial")
    migration.run("CREATE TABLE u (id INT NOT NULL, PRIMARY KEY (id))")
    run = pt_osc(migration.database, "u", new="u_v2")
    migration.run(*run[: next(number for number, sql in enumerate(run) if sql.startswith("RENAME"))])
    migration.run("INSERT INTO u VALUES (1)")
    assert migration.job
    migration.until_event(migration.insert())
    migration.job.batches_until(lambda: not migration.job.offset.snapshot.active, "the end of the snapshot")
    assert migration.topics() == {"t", "u"}
    assert migration.topics_in_kafka() == {"t", "u"}
    assert migration.recognised() == {"u_v2"}


def test_a_job_from_a_place_in_the_middle_of_a_run_knows_no_table_from_before(make: Any) -> None:
    migration = make(starts=False)
    run = gh_ost(migration.database)
    migration.run(*run[: next(number for number, sql in enumerate(run) if sql.startswith("rename"))])
    [(executed,)] = migration.run("SELECT @@GLOBAL.gtid_executed")
    start = StartPlace(gtid_set=str(executed).replace("\n", ""))
    migration.settings = migration.settings.model_copy(update={"start": start})
    assert migration.job
    assert migration.topics_in_kafka() == {"t"}
    migration.run("INSERT INTO _t_gho (id, v) SELECT id, v FROM t")
    migration.until_event(migration.insert())
    assert migration.topics() == migration.topics_in_kafka() == {"t", "_t_gho"}
    assert not migration.notifications()


def test_a_table_with_rows_and_no_trace_is_not_asked_about_again(make: Any) -> None:
    migration = make()
    migration.run("CREATE TABLE _import_new (id INT PRIMARY KEY)")
    migration.until_event(migration.insert())
    assert migration.job.offset.online
    migration.run("INSERT INTO _import_new VALUES (1)")
    migration.until_event(migration.insert())
    assert not migration.job.offset.online


@pytest.mark.parametrize("table", ["_t", "__t"])
def test_a_copy_of_a_table_whose_name_begins_as_a_copys_is_hidden_before_its_triggers(make: Any, table: str) -> None:
    migration = make()
    run = pt_osc(migration.database, table)
    migration.run(f"CREATE TABLE {table} (id INT NOT NULL, PRIMARY KEY (id))")
    for statement in run[: next(number for number, sql in enumerate(run) if "TRIGGER" in sql)]:
        migration.run(statement)
        migration.until_event(migration.insert())
    assert not [each for each in migration.schema_changes() if f"_{table}_new" in each[2]]


def test_a_signal_of_all_tables_leaves_out_those_of_tools(make: Any) -> None:
    migration = make()
    run = gh_ost(migration.database)
    swap = next(number for number, sql in enumerate(run) if sql.startswith("rename"))
    migration.play(run[:swap], copies="_t_gho")
    _signal(migration, rf"{migration.database}\\..*")
    migration.job.batches_until(lambda: len(migration.reads()) == len(migration.keys), "the snapshot")
    assert migration.topics() == {"t"}


def test_a_signal_of_all_tables_reads_a_table_between_the_halves_of_its_swap(make: Any) -> None:
    migration = make()
    run = gh_ost(migration.database, two_step=True)
    first = next(number for number, sql in enumerate(run) if " rename `_t_del`" in sql)
    migration.play(run[:first], copies="_t_gho")
    migration.run("INSERT IGNORE INTO _t_gho (id, v) SELECT id, v FROM t", run[first])
    migration.job.batches_until(lambda: _is_away(migration), "the first half")
    _signal(migration, rf"{migration.database}\\..*")
    migration.job.batches_until(lambda: migration.job.offset.snapshot.active, "the signal")
    before = set(migration.keys)
    migration.play(run[first + 1 :])
    migration.job.batches_until(lambda: set(migration.reads()) >= before, "the snapshot")
    assert migration.topics() == {"t"}


def _is_away(migration: Migration) -> bool:
    """Whether the offset says that `t` has left and that its copy has not taken its name yet."""
    online = OnlineDdl(migration.settings, Files(str(migration.root))).at(migration.job.offset)
    return online is not None and bool(online.away)


def _signal(migration: Migration, tables: str) -> None:
    """Ask for a snapshot of these tables."""
    data = f'{{"type": "incremental", "data-collections": ["{tables}"]}}'
    line = f'{{"id": "ad-hoc", "type": "execute-snapshot", "data": {data}}}\n'
    (migration.root / "signals").write_text(line)


_ROWS = 500
_TEXT_IN_KEY = "MODIFY v VARCHAR(9) NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"
_COLLATION = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
#: What a person does to `t` before the job begins, what the tool does to `t`, and whether a snapshot that is under way
#: goes on at its key.
CHANGES = {
    "a column": ("", "ADD n INT", True),
    "another column of its name": ("", "DROP COLUMN id, ADD COLUMN id INT NOT NULL AUTO_INCREMENT PRIMARY KEY", False),
    "a type of the key": ("", "MODIFY id BIGINT NOT NULL", False),
    "another key": ("", "DROP PRIMARY KEY, ADD PRIMARY KEY (v, id), MODIFY v VARCHAR(9) NOT NULL", False),
    "a collation of the key": (_TEXT_IN_KEY, _COLLATION, False),
    "a collation beside the key": ("", _COLLATION, True),
}


@pytest.mark.long
@pytest.mark.parametrize(("before", "alter", "goes_on"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("two_step", [False, True], ids=["atomic", "two-step"])
def test_a_snapshot_goes_on_behind_the_swap_where_the_key_is_the_same(
    make: Any, two_step: bool, before: str, alter: str, goes_on: bool
) -> None:
    migration = make(rows=_ROWS, starts=False, incsnap__snapshot__throttle__rows__per__second="100")
    if before:
        migration.run(f"ALTER TABLE t {before}")
    assert migration.job
    run = gh_ost(migration.database, alter=alter, two_step=two_step)
    swap = next(number for number, sql in enumerate(run) if " rename" in sql or sql.startswith("rename"))
    migration.play(run[:swap], copies="_t_gho")
    migration.run("INSERT IGNORE INTO _t_gho (id, v) SELECT id, v FROM t")
    _signal(migration, f"{migration.database}.t")
    migration.job.batches_until(lambda: len(migration.reads()) >= 100, "a part of the snapshot")
    read = migration.reads()
    assert len(read) < _ROWS
    if two_step:
        migration.run(run[swap])
        for _ in range(5):
            migration.job.batch()
        swap += 1
    migration.run(run[swap])
    migration.job.batches_until(lambda: not migration.job.offset.snapshot.active and _is_altered(migration), "its end")
    reads = migration.reads()
    assert set(reads) >= set(range(1, _ROWS + 1))
    twice = sum(count > 1 for count in reads.values())
    assert (twice == 0) is goes_on, f"{twice} of {len(reads)} rows were read twice, {len(read)} before the swap"


def _is_altered(migration: Migration) -> bool:
    return "ONLINE_DDL_SWAP" in {each["type"] for each in migration.notifications()}
