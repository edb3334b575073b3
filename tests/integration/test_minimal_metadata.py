"""Tests with `binlog_row_metadata=MINIMAL`, MySQL's default.

Rows are decoded if their table's definition is certain. Otherwise the job stops with an error that names the table. The
tests have their own server, because the setting is global.
"""

from __future__ import annotations

import itertools
import json
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from incsnap.errors import DefinitionUnknown
from incsnap.mysql.preflight import findings, require
from incsnap.planner.server_definitions import ask_server
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.minimal_shop import Shop, row
from tests.support.mysql_versions import has_vector
from tests.support.planned_job import Sent, planner_at_hand, run
from tests.support.random_values import CASES

pytestmark = pytest.mark.servers


def test_rows_have_the_names_and_literals_that_their_table_maps_leave_out(shop: Shop) -> None:
    shop.knows("t")
    shop.run("INSERT INTO t VALUES (4000000000, 'é', NULL, 'y'), (1, NULL, 'b', 'x')")
    assert sorted(shop.until("t", 2), key=lambda each: each["id"]) == [
        row(1, None, "b", "x"),
        row(4000000000, "é", None, "y"),
    ]


def test_rows_that_came_before_anybody_asked_are_certain_where_no_statement_followed(shop: Shop) -> None:
    assert shop.job.offset.batch == 0
    shop.run("INSERT INTO t VALUES (1, 'a', NULL, NULL)")
    assert shop.until("t", 1) == [row(1, "a")]


#: Statements, the row behind them, and the columns that it has then.
CHANGES = [
    ("ALTER TABLE t RENAME COLUMN a TO aa", (2, "new", None, "x"), "id aa b e"),
    ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", (2, "b", "a", "x"), "id b a e"),
    ("ALTER TABLE t DROP COLUMN a, ADD COLUMN n VARCHAR(20) AFTER id", (2, "n", None, "x"), "id n b e"),
    ("ALTER TABLE t DROP COLUMN a, ALGORITHM=INSTANT", (2, "b", "x"), "id b e"),
    ("ALTER TABLE t ADD COLUMN n INT FIRST, ALGORITHM=INSTANT", (7, 2, "a", None, "x"), "n id a b e"),
    ("ALTER TABLE t MODIFY e ENUM('y', 'x')", (2, None, None, "y"), "id a b e"),
    ("ALTER TABLE t MODIFY e ENUM('y', 'new') CHARACTER SET latin1", (2, None, None, "new"), "id a b e"),
    ("ALTER TABLE t RENAME gone; CREATE TABLE t LIKE gone; ALTER TABLE t CHANGE a q TEXT",
     (2, "q", "b", "x"), "id q b e"),
    ("CREATE TABLE u LIKE t; ALTER TABLE u CHANGE a q CHAR(9); DROP TABLE t; RENAME TABLE u TO t",
     (2, "q", None, "x"), "id q b e"),
    ("CREATE TABLE u (id INT UNSIGNED PRIMARY KEY, q VARCHAR(20), r VARCHAR(20), e ENUM('x', 'y'));"
     " RENAME TABLE t TO gone, u TO t", (2, "q", None, "x"), "id q r e"),
    ("DROP TABLE t; CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, q VARCHAR(20))", (2, "q"), "id q"),
    ("ALTER DATABASE CHARACTER SET latin1; ALTER TABLE t ADD COLUMN n TEXT", (2, None, None, "x", "é"), "id a b e n"),
    ("CREATE UNIQUE INDEX i ON t (b)", (2, "a", "c", "x"), "id a b e"),
    ("TRUNCATE TABLE t", (2, "a", "b", "x"), "id a b e"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "values", "columns"), CHANGES, ids=[each[0] for each in CHANGES])
def test_rows_before_and_behind_a_statement_each_have_their_own_columns(
    shop: Shop, statements: str, values: tuple[Any, ...], columns: str
) -> None:
    shop.knows("t")
    shop.run("INSERT INTO t VALUES (1, 'a', 'b', 'y')", *statements.split(";"))
    shop.insert("t", values)
    assert shop.until("t", 2)[:2] == [row(1, "a", "b", "y"), dict(zip(columns.split(), values, strict=True))]


def test_a_table_that_is_made_of_a_select_has_its_rows(shop: Shop) -> None:
    shop.knows("t")
    shop.run("INSERT INTO t VALUES (1, 'a', NULL, 'y')", "CREATE TABLE s AS SELECT id, a AS c, e FROM t")
    assert shop.until("s", 1) == [{"id": 1, "c": "a", "e": "y"}]
    shop.run("INSERT INTO s VALUES (2, 'd', 'x')")
    assert shop.until("s", 2)[1] == {"id": 2, "c": "d", "e": "x"}


@pytest.mark.parametrize("part", range(4))
def test_rows_of_every_type_are_the_same_as_with_full_metadata(shop: Shop, part: int) -> None:
    """Also their keys, and their schemas."""
    names = [name for nth, name in enumerate(CASES) if nth % 4 == part and "?" not in CASES[name].sql]
    if not has_vector(shop.connection):
        names = [name for name in names if name != "vector"]
    shop.job_with(
        value__converter="org.apache.kafka.connect.json.JsonConverter",
    )
    shop.run(
        f"CREATE TABLE v (n INT, {', '.join(f'`{name}` {CASES[name].sql}' for name in names)},"
        " id INT NOT NULL, k CHAR(3) NOT NULL, PRIMARY KEY (k, id))"
    )
    shop.knows("v")
    rng = random.Random(f"minimal-{part}")
    rows = [
        [number, *(CASES[name].value(rng) if rng.random() > 0.2 else None for name in names)] for number in range(30)
    ]
    for metadata, k in (("FULL", "f"), ("MINIMAL", "m")):
        shop.run(f"SET GLOBAL binlog_row_metadata = {metadata}")
        shop.insert("v", *([*values, values[0], k] for values in rows))
    topic = f"{shop.prefix}.{shop.database}.v"
    shop.job.until(topic, 2 * len(rows))
    full, minimal = ({each.key["id"]: each for each in shop.job.of(topic) if each.key["k"] == k} for k in ("f", "m"))
    assert len(full) == len(minimal) == len(rows)
    for number, theirs in full.items():
        ours = minimal[number]
        assert list(ours.key) == list(theirs.key) == ["k", "id"]
        assert json.dumps(ours.value["schema"]) == json.dumps(theirs.value["schema"])
        after = ours.value["payload"]["after"]
        assert json.dumps({**after, "k": "f"}) == json.dumps(theirs.value["payload"]["after"])


def test_rows_between_two_statements_are_read_by_the_first_ones_outcome(shop: Shop) -> None:
    shop.knows("t")
    shop.run(
        "ALTER TABLE t RENAME COLUMN a TO c",
        "INSERT INTO t VALUES (1, 'c', NULL, NULL)",
        "ALTER TABLE t RENAME COLUMN c TO d",
        "INSERT INTO t VALUES (2, 'd', NULL, NULL)",
    )
    assert [list(each)[1] for each in shop.until("t", 2)] == ["c", "d"]


def unfollowed(*changes: str) -> list[str]:
    """Return statements about `t` that nobody can follow: the text of a client without a character set."""
    return ["SET NAMES binary", *(f"ALTER TABLE t {change} COMMENT 'é'" for change in changes), "SET NAMES utf8mb4"]


def test_rows_between_two_statements_that_are_not_followed_stop_the_job_by_name(shop: Shop) -> None:
    shop.knows("t")
    shop.run(
        *unfollowed("CHANGE a c VARCHAR(20)"),
        "INSERT INTO t VALUES (1, 'c', NULL, NULL)",
        *unfollowed("CHANGE c d VARCHAR(20)"),
    )
    message = shop.stops(r"\.\d{6}:\d+: rows of shop_\d+\.t were written with binlog_row_metadata=MINIMAL")
    assert "CHANGE a c" in message
    assert "CHANGE c d" in message
    assert "inconsistent.schema.handling.mode" in DefinitionUnknown.hint
    assert shop.sent("t") == []


def test_rows_of_a_table_that_is_gone_stop_the_job_where_nobody_knew_it(shop: Shop) -> None:
    [(executed,)] = shop.run("SELECT @@GLOBAL.gtid_executed")
    shop.job_with(incsnap__start__gtid__set=str(executed).replace("\n", ""))
    shop.run("INSERT INTO t VALUES (1, 'c', NULL, NULL)", "DROP TABLE t")
    assert shop.job.offset.batch == 0
    shop.stops("DROP TABLE `t`")


def test_a_table_altered_before_the_first_batch_is_in_the_first_offset(shop: Shop) -> None:
    """Seconds lie between the two, while Spark starts."""
    shop.run("CREATE TABLE u (id INT PRIMARY KEY)")
    assert shop.job.offset.batch == 0
    shop.run(
        "INSERT INTO t VALUES (1, 'a', 'b', 'x')",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
        "INSERT INTO t VALUES (2, 'b', 'a', 'y')",
        "ALTER TABLE t DROP COLUMN a",
        "INSERT INTO t VALUES (3, 'b', 'y')",
        "INSERT INTO u VALUES (1)",
        "DROP TABLE u",
    )
    assert shop.until("t", 3) == [
        row(1, "a", "b", "x"),
        row(2, "a", "b", "y"),
        {"id": 3, "b": "b", "e": "y"},
    ]
    assert shop.until("u", 1) == [{"id": 1}]


def test_a_table_altered_during_the_first_offset_is_not_certain(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is asked behind the offset, so the definition may be that of a statement in between."""

    def altered_before(*arguments: Any, **more: Any) -> Any:
        shop.run(
            "INSERT INTO t VALUES (1, 'a', 'b', 'x')",
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            "INSERT INTO t VALUES (2, 'b', 'a', 'y')",
        )
        return ask_server(*arguments, **more)

    monkeypatch.setattr("incsnap.planner.server_definitions.ask_server", altered_before)
    shop.run("CREATE TABLE u (id INT PRIMARY KEY)")
    assert shop.job.offset.batch == 0
    assert shop.known() == {"u"}
    shop.stops("RENAME COLUMN a TO b")
    assert shop.sent("t") == []


def test_rows_of_a_table_that_is_gone_are_sent_where_it_was_known(shop: Shop) -> None:
    shop.knows("t")
    shop.run("INSERT INTO t VALUES (1, 'c', NULL, NULL)", "DROP TABLE t")
    assert shop.until("t", 1) == [row(1, "c")]


def test_a_statement_about_another_database_is_none_about_the_table(shop: Shop) -> None:
    assert shop.job.offset.batch == 0
    other = f"{shop.database}_other"
    shop.run(f"CREATE DATABASE {other}", "INSERT INTO t VALUES (1, 'c', NULL, NULL)", f"DROP DATABASE {other}")
    assert shop.until("t", 1) == [row(1, "c")]


def test_a_signal_row_is_read_by_the_definition_of_the_signal_table(shop: Shop) -> None:
    shop.run(
        "CREATE TABLE signals (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32) NOT NULL, data VARCHAR(2048))",
        "INSERT INTO t VALUES (1, 'a', NULL, 'y')",
    )
    data = f'{{"data-collections": ["{shop.database}.t"]}}'
    shop.job_with(
        signal__enabled__channels="source",
        signal__data__collection=f"{shop.database}.signals",
    )
    shop.knows("t", "signals")
    shop.run(f"INSERT INTO signals VALUES ('s', 'execute-snapshot', '{data}')")
    assert shop.until("t", 1) == [row(1, "a", None, "y")]


def test_transactions_that_are_cut_in_two_are_counted(shop: Shop) -> None:
    shop.job_with(
        provide__transaction__metadata="true",
        max__batch__size="1",
    )
    shop.knows("t")
    shop.run("BEGIN", *(f"INSERT INTO t VALUES ({number}, 'a', NULL, 'y')" for number in range(4)), "COMMIT")
    assert [each["id"] for each in shop.until("t", 4)] == [0, 1, 2, 3]


def test_a_batch_has_at_most_so_many_rows_of_a_table_with_an_enum(shop: Shop) -> None:
    """Rows are counted by their table maps, which tell neither literals nor character set of an ENUM."""
    shop.job_with(max__batch__size="3")
    shop.knows("t")
    values = [", ".join(f"({number}, 'a', NULL, 'y')" for number in range(at, at + 3)) for at in (0, 3, 6)]
    shop.run("BEGIN", *(f"INSERT INTO t VALUES {each}" for each in values), "COMMIT")
    counts = [0]

    def all_sent() -> bool:
        counts.append(len(shop.sent("t")))
        return counts[-1] == 9

    shop.job.batches_until(all_sent, "9 rows")
    assert sorted({*counts}) == [0, 3, 6, 9]


def test_definitions_survive_a_restart(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    shop.run(
        "INSERT INTO t VALUES (1, 'a', 'b', 'y')",
        "ALTER TABLE t RENAME COLUMN a TO c, MODIFY e ENUM('y', 'z')",
        "INSERT INTO t VALUES (2, 'c', 'b', 'z')",
    )
    assert shop.until("t", 2) == [row(1, "a", "b", "y"), {"id": 2, "c": "c", "b": "b", "e": "z"}]


def test_statements_with_rows_between_them_while_the_job_is_down_are_followed(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    shop.run(
        "INSERT INTO t VALUES (1, 'a', 'b', 'y')",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "INSERT INTO t VALUES (2, 'c', 'b', 'x')",
        "ALTER TABLE t RENAME COLUMN c TO d",
    )
    assert shop.until("t", 2) == [row(1, "a", "b", "y"), {"id": 2, "c": "c", "b": "b", "e": "x"}]


def test_an_unfollowed_statement_stops_the_job_after_all_certain_rows(shop: Shop) -> None:
    shop.knows("t")
    shop.job.restart()
    shop.run(
        "INSERT INTO t VALUES (1, 'a', 'b', 'y')",
        *unfollowed("CHANGE a c VARCHAR(20)"),
        "INSERT INTO t VALUES (2, 'c', 'b', 'x')",
        *unfollowed("CHANGE c d VARCHAR(20)"),
    )
    shop.stops("CHANGE c d")
    assert shop.sent("t") == [row(1, "a", "b", "y")]
    shop.job.restart()
    shop.stops("CHANGE c d")


def test_a_batch_that_is_run_again_behind_a_statement_has_the_same_rows(shop: Shop) -> None:
    shop.knows("t")
    shop.run(
        "INSERT INTO t VALUES (1, 'a', NULL, 'y')",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "INSERT INTO t VALUES (2, 'c', NULL, 'x')",
    )
    shop.until("t", 2)
    sent, batches = list(shop.job.sent), list(shop.job.batches)
    shop.run("ALTER TABLE t RENAME COLUMN c TO d, MODIFY e ENUM('y', 'x', 'q')")
    again: list[Sent] = []
    for start, end in batches:
        with closing(planner_at_hand(shop.settings, str(shop.root))) as planner:
            again += run(planner.parts(start, end), shop.settings, str(shop.root))
    assert again == sent


def test_full_metadata_in_mid_stream_needs_nobodys_knowledge_from_there_on(shop: Shop) -> None:
    shop.knows("t")
    shop.run("INSERT INTO t VALUES (1, 'a', NULL, 'y')", "SET GLOBAL binlog_row_metadata = FULL")
    names = ["a", "n1", "n2", "n3"]
    for number, (before, name) in enumerate(itertools.pairwise(names), 2):
        shop.run(f"ALTER TABLE t RENAME COLUMN {before} TO {name}", f"INSERT INTO t VALUES ({number}, 'v', NULL, 'x')")
    assert [list(each)[1] for each in shop.until("t", 4)] == names


def test_xa_transactions_are_read_at_their_commit(shop: Shop) -> None:
    shop.knows("t")
    shop.run("XA START 'one'", "INSERT INTO t VALUES (1, 'a', NULL, 'y')", "XA END 'one'", "XA PREPARE 'one'")
    shop.run("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    shop.until("other", 1)
    shop.run("XA COMMIT 'one'")
    assert shop.until("t", 1) == [row(1, "a", None, "y")]


def test_prepared_rows_are_read_at_commit_after_a_restart_with_other_settings(
    shop: Shop,
) -> None:
    shop.knows("t")
    shop.run("XA START 'x'", "INSERT INTO t VALUES (1, 'a', NULL, 'y')", "XA END 'x'", "XA PREPARE 'x'")
    with closing(connect(shop.address, database=shop.database)) as other, other.cursor() as cursor:
        cursor.execute("CREATE TABLE u (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO u VALUES (1)")
        shop.until("u", 1)
        assert shop.job.offset.prepared
        shop.job.restart()
        cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
        cursor.execute("INSERT INTO u VALUES (2)")
    shop.run("XA COMMIT 'x'", "ALTER TABLE t RENAME COLUMN a TO c", "INSERT INTO t VALUES (2, 'c', NULL, 'x')")
    assert shop.until("t", 2) == [row(1, "a", None, "y"), {"id": 2, "c": "c", "b": None, "e": "x"}]


def test_a_literal_that_the_server_does_not_show_stops_the_job(shop: Shop) -> None:
    shop.run("CREATE TABLE w (id INT PRIMARY KEY, e ENUM('😀', 'b'))", "INSERT INTO w VALUES (1, 'b')")
    job = shop.job
    shop.run("INSERT INTO w VALUES (2, '😀')")
    assert job.offset.batch == 0
    shop.stops("a literal of its column e may have a character that the server shows as ?")


def test_a_statement_is_certain_though_the_binlog_behind_it_exceeds_memory(shop: Shop) -> None:
    shop.job_with(max__queue__size__in__bytes=str(4 << 20))
    shop.run("CREATE TABLE large (id INT PRIMARY KEY, v MEDIUMTEXT)")
    shop.knows("t", "large")
    shop.job.restart()
    shop.insert("t", (1, "a", "b", "y"))
    shop.run("ALTER TABLE t RENAME COLUMN a TO c")
    shop.insert("t", (2, "c", None, "x"))
    shop.insert("large", *((number, "x" * 300_000) for number in range(40)))
    assert shop.until("t", 2) == [row(1, "a", "b", "y"), {"id": 2, "c": "c", "b": None, "e": "x"}]
    assert len(shop.until("large", 40)) == 40


def test_a_second_statement_behind_a_binlog_larger_than_memory_stops_the_job(shop: Shop) -> None:
    shop.job_with(max__queue__size__in__bytes=str(4 << 20))
    shop.run("CREATE TABLE large (id INT PRIMARY KEY, v MEDIUMTEXT)")
    shop.knows("t", "large")
    shop.job.restart()
    shop.run(*unfollowed("CHANGE a c VARCHAR(20)"))
    shop.insert("t", (2, "c", None, "x"))
    shop.insert("large", *((number, "x" * 300_000) for number in range(40)))
    shop.run(*unfollowed("CHANGE c d VARCHAR(20)"))
    shop.stops("CHANGE c d")


def test_check_warns_and_says_what_mends_it(shop: Shop) -> None:
    [finding] = [each for each in findings(shop.settings) if each.name == "binlog_row_metadata"]
    assert (finding.severity, finding.repair) == ("warning", "SET PERSIST binlog_row_metadata = 'FULL';")
    require([finding])


def test_a_server_that_leaves_statements_out_of_its_binlog_is_refused(
    kafka_address: str, topic_prefix: str, tmp_path: Path
) -> None:
    """The binlog would not have the statements `USE elsewhere; ALTER TABLE shop.t`."""
    options = ["--binlog-row-metadata=MINIMAL", "--binlog-ignore-db=elsewhere"]
    with (
        servers(kafka=False, mysql_options=options) as started,
        closing(Shop(started.mysql, kafka_address, topic_prefix, tmp_path)) as shop,
    ):
        shop.run("CREATE TABLE t (id INT PRIMARY KEY)")
        refused = [each.name for each in findings(shop.settings) if each.severity == "error"]
        assert refused == ["binlog_row_metadata"]
        assert shop.job.offset.batch == 0
        shop.insert("t", (1,))
        shop.stops("leaves statements out of its binlog")
