"""A test of `max.batch.size`: the most changed rows in a batch, unless one binlog event alone has more."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymysql.cursors import Cursor

from incsnap.config.settings import Settings
from lab.addresses import MySqlAddress
from tests.support.planned_job import PlannedJob, Sent, read_to_the_end, settings_of

pytestmark = pytest.mark.servers
_LIMIT = 7
#: The server writes a difference only where it is shorter than the document.
_DOCUMENT = json.dumps(["x" * 100, 1])
#: Each with the rows of each of its events, in the order of the log.
_TRANSACTIONS: list[list[tuple[str, int]]] = [
    [("INSERT INTO t (v) VALUES ('a')", 1)],
    [("INSERT INTO t (v) VALUES ('b'), (NULL)", 2)],
    [("INSERT INTO t (v) VALUES " + ", ".join([f"('c', '{_DOCUMENT}', 'small')"] * 3), 3)] * 5
    + [("UPDATE t SET v = CONCAT(COALESCE(v, ''), '!') WHERE id <= 4", 4), ("DELETE FROM t WHERE id IN (1, 2)", 2)],
    [("INSERT INTO t (v) VALUES " + ", ".join(["('d')"] * 50), 50)],
    [("UPDATE t SET id = id + 1000 WHERE id = 3", 1), ("DELETE FROM t WHERE id = 1003", 1)],
    [("UPDATE t SET d = JSON_SET(d, '$[1]', 9) WHERE d IS NOT NULL", 15)],
    *[[(f"INSERT INTO t (v) VALUES ('{nth}')", 1)] for nth in range(10)],
]


@pytest.fixture
def settings(mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str) -> Settings:
    more = {"max.batch.size": str(_LIMIT), "tombstones.on.delete": "false", "skipped.operations": "none"}
    return settings_of(mysql_address, kafka_address, topic_prefix, database, **more)


def _write(cursor: Cursor, database: str) -> None:
    cursor.execute(f"USE {database}")
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT, d JSON, e ENUM('small', 'large') NULL)")
    cursor.execute("SET SESSION binlog_row_value_options = PARTIAL_JSON")
    for transaction in _TRANSACTIONS:
        cursor.execute("BEGIN")
        for statement, rows in transaction:
            named = "(v, d, e)" if "small" in statement else "(v)"
            assert cursor.execute(statement.replace("(v)", named, 1)) == rows
        cursor.execute("COMMIT")


def _changes(sent: list[Sent]) -> list[Any]:
    """An update of a key is a deletion and an insertion for consumers, and one row of the binlog."""
    values = [each.value for each in sent if each.value is not None and "op" in each.value]
    return [value for value in values if value["op"] in "crud"]


def _key(value: Any) -> tuple[str, int, int, int]:
    source = value["source"]
    return source["gtid"], source["pos"], source["row"], "cdu".index(value["op"])


def test_a_batch_has_at_most_so_many_rows_and_none_is_lost(
    cursor: Cursor, settings: Settings, mysql_address: MySqlAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_to_the_end(monkeypatch, mysql_address)
    job = PlannedJob(settings, str(tmp_path / "checkpoint"))
    with closing(job):
        job.batch()
        _write(cursor, settings.tables.database_include[0])
        total = sum(rows for transaction in _TRANSACTIONS for _, rows in transaction)
        filled: list[int] = []
        seen = [len(job.sent)]

        def all_sent() -> bool:
            changes = _changes(job.sent[seen[-1] :])
            if rows := len(changes) - sum(1 for each in changes if _moved(each)):
                filled.append(rows)
                if len(filled) % 3 == 0:
                    job.restart()  # all that was counted before is counted anew
            seen.append(len(job.sent))
            return sum(filled) >= total

        job.batches_until(all_sent, f"{total} rows")
    changes = _changes(job.sent)
    assert len({_key(each) for each in changes}) == len(changes)
    # One event has more: those of 50 and of 15 rows go whole, and alone.
    assert [rows for rows in filled if rows > _LIMIT] == [50, 15]
    assert sum(filled) == total
    # Nor are they needlessly small: the transaction of 21 rows takes four, single rows of many transactions share one.
    assert len(filled) <= 10


def _moved(value: Any) -> bool:
    return bool(value["op"] == "d" and value["before"]["id"] == 3)
