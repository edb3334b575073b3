"""XA transactions of a real server that look alike, hold little, or hold signals; and snapshots beside them."""

from __future__ import annotations

import secrets
from contextlib import closing, suppress
from random import Random

import pymysql
import pytest

from tests.integration.test_xa_transactions import CapturedDatabase
from tests.integration.test_xa_transactions import captured as captured  # the fixture

pytestmark = pytest.mark.servers


def in_a_session(captured: CapturedDatabase, *statements: str) -> None:
    """Executes them in a session of their own, which ends with them."""
    with closing(captured.connect()) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def prepared(captured: CapturedDatabase, xid: str, *statements: str) -> None:
    in_a_session(captured, f"XA START {xid}", *statements, f"XA END {xid}", f"XA PREPARE {xid}")
    captured.prepared.add(xid)
    captured.names.append(xid if xid.startswith("'") else "''")


def signal(captured: CapturedDatabase, name: str) -> str:
    data = f'{{"data-collections": ["{captured.database}.t"]}}'
    return f"INSERT INTO sig VALUES ('{name}', 'execute-snapshot', '{data}')"


def with_signals(captured: CapturedDatabase) -> dict[str, str]:
    captured.run("CREATE TABLE sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    return {"signal__data__collection": f"{captured.database}.sig"}


def test_branches_of_one_transaction_are_ended_each_for_itself(captured: CapturedDatabase) -> None:
    job = captured.job()
    gtrid = secrets.token_hex(8)
    branches = [f"'{gtrid}','{branch}',{form}" for form, branch in enumerate(("1", "2", "", "12", "1 "))]
    for number, xid in enumerate(branches):
        prepared(captured, xid, f"INSERT INTO t VALUES ({number}, 'held')")
    captured.caught_up(job)
    job.restart()
    captured.end("COMMIT", branches[0])
    captured.end("ROLLBACK", branches[1])
    captured.end("COMMIT", branches[3])
    captured.caught_up(job)
    assert captured.ids(job) == [0, 3]
    job.restart()
    captured.end("COMMIT", branches[2])
    captured.end("COMMIT", branches[4])
    captured.caught_up(job)
    assert captured.ids(job) == [0, 3, 2, 4]
    assert captured.waiting(job.offset) == []


def test_names_may_be_any_bytes(captured: CapturedDatabase) -> None:
    job = captured.job()
    alone = secrets.token_hex(3)
    names = (
        f"X'00{alone}',X'ff27',0",
        f"'{alone}{'a' * 58}','{'b' * 64}',2147483647",
        f"'it''s{alone}','\\\\',1",
        f"X'e4bda0{alone}'",
    )
    for number, xid in enumerate(names):
        prepared(captured, xid, f"INSERT INTO t VALUES ({number}, 'held')")
    captured.caught_up(job)
    job.restart()
    for xid in names:
        captured.end("COMMIT", xid)
    captured.caught_up(job)
    assert captured.ids(job) == [0, 1, 2, 3]


def test_xa_transactions_without_changes_are_read(captured: CapturedDatabase) -> None:
    job = captured.job()
    for statement in ("SELECT * FROM t", "UPDATE t SET v = 'b' WHERE id = 77", "CREATE TEMPORARY TABLE x (id INT)"):
        for end in ("PREPARE {0};XA COMMIT {0}", "PREPARE {0};XA ROLLBACK {0}", "COMMIT {0} ONE PHASE", "ROLLBACK {0}"):
            xid = f"'{secrets.token_hex(8)}'"
            ends = [f"XA {each.removeprefix('XA ')}" for each in end.format(xid).split(";")]
            with suppress(pymysql.MySQLError):  # an XA transaction may not create a table
                in_a_session(captured, f"XA START {xid}", statement, f"XA END {xid}", *ends)
    captured.caught_up(job)
    job.restart()
    captured.caught_up(job)
    assert captured.ids(job) == []


def test_rows_undone_by_a_savepoint_are_not_sent(captured: CapturedDatabase) -> None:
    job = captured.job()
    xid = f"'{secrets.token_hex(8)}'"
    prepared(
        captured, xid, "INSERT INTO t VALUES (1, 'a')", "SAVEPOINT s", "INSERT INTO t VALUES (2, 'b')",
        "ROLLBACK TO SAVEPOINT s", "INSERT INTO t VALUES (3, 'c')",
    )  # fmt: skip
    captured.caught_up(job)
    captured.end("COMMIT", xid)
    captured.caught_up(job)
    assert captured.ids(job) == [1, 3]


def test_tables_that_are_not_captured_are_left_out_of_it(captured: CapturedDatabase) -> None:
    captured.run("CREATE TABLE z (id INT PRIMARY KEY)")
    job = captured.job(table__include__list=f"{captured.database}.[tu]")
    wholly, partly = (f"'{secrets.token_hex(8)}'" for _ in range(2))
    prepared(captured, wholly, "INSERT INTO z VALUES (1)")
    prepared(captured, partly, "INSERT INTO z VALUES (2)", "INSERT INTO t VALUES (2, 'b')")
    captured.caught_up(job)
    job.restart()
    captured.end("COMMIT", wholly)
    captured.end("COMMIT", partly)
    captured.caught_up(job)
    assert captured.ids(job) == [2]


def test_a_signal_in_xa_is_obeyed_at_commit_only(captured: CapturedDatabase) -> None:
    job = captured.job(**with_signals(captured))
    captured.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    captured.caught_up(job)
    kept, dropped = (f"'{secrets.token_hex(8)}'" for _ in range(2))
    prepared(captured, kept, signal(captured, "kept"), "UPDATE t SET v = 'new' WHERE id = 1")
    prepared(captured, dropped, signal(captured, "dropped"))
    captured.caught_up(job)
    job.restart()
    captured.caught_up(job)
    assert not job.offset.snapshot.active
    captured.end("ROLLBACK", dropped)
    captured.end("COMMIT", kept)

    def complete() -> bool:
        return any(note.type == "COMPLETED" for _, end in job.batches for note in end.snapshot.notifications)

    job.batches_until(complete, "end of the snapshot")
    assert {note.id for _, end in job.batches for note in end.snapshot.notifications} == {"kept"}
    read = [each.value["after"] for each in job.of(captured.topic()) if each.value and each.value["op"] == "r"]
    assert {row["id"]: row["v"] for row in read} == {1: "new", 2: "y"}


@pytest.mark.parametrize("seed", [4, 5])
def test_snapshots_equal_the_table_while_many_xa_transactions_prepare_and_end(
    captured: CapturedDatabase, seed: int
) -> None:
    rng = Random(seed)
    rows = 300
    settings = {**with_signals(captured), "incremental__snapshot__chunk__size": "20"}
    captured.run("INSERT INTO t VALUES " + ", ".join(f"({number}, 'old')" for number in range(rows)))
    job = captured.job(**settings)
    job.batch()
    opened: list[str] = []

    def one_more() -> None:
        xid = f"'{secrets.token_hex(8)}','{rng.randrange(3)}',{rng.randrange(3)}"
        change = f"REPLACE INTO t VALUES ({rng.randrange(rows)}, '{secrets.token_hex(3)}')"
        removal = f"DELETE FROM t WHERE id = {rng.randrange(rows)}"
        both = [change, removal] if rng.random() < 0.3 else [change]
        with suppress(pymysql.MySQLError):  # its row is locked by another that is prepared
            in_a_session(captured, "SET innodb_lock_wait_timeout = 1", f"XA START {xid}", *both, f"XA END {xid}",
                         f"XA PREPARE {xid}")  # fmt: skip
            opened.append(xid)
            captured.prepared.add(xid)

    def one_less() -> None:
        captured.end("COMMIT" if rng.random() < 0.6 else "ROLLBACK", opened.pop(rng.randrange(len(opened))))

    for number in range(3):
        captured.run(signal(captured, str(number)))
        for _ in range(40):
            if rng.random() < 0.5:
                one_more()
            elif opened:
                one_less()
            if rng.random() < 0.5:
                job.batch()
            if rng.random() < 0.1:
                job.restart()
        job.batches_until(lambda: not job.offset.snapshot.active, "end of the snapshot")
    while opened:
        one_less()
    captured.caught_up(job)

    replayed: dict[int, str] = {}
    for each in job.of(captured.topic()):
        if each.value is None or each.value["op"] == "d":
            replayed.pop(each.key["id"], None)
        else:
            replayed[each.key["id"]] = each.value["after"]["v"]
    with captured.connection.cursor() as cursor:
        cursor.execute("SELECT id, v FROM t")
        assert replayed == dict(cursor.fetchall())
