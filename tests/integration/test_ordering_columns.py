"""Tests of the columns that order the chunks of a table, with any keys. The server describes the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from incsnap.envelope.column_rules import ColumnRules
from incsnap.gtid import GtidSet
from incsnap.mysql.session import connect, query
from incsnap.planner.answers import Answers
from incsnap.snapshot.questions import Answer, Describe, KeyOrder, Refused
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers


@pytest.fixture
def connection(mysql_address: MySqlAddress, database: str) -> Iterator[Any]:
    with closing(connect(settings_of(mysql_address, "unused:1", "p", database).mysql)) as opened:
        query(opened, f"USE {database}")
        yield opened


def described(connection: Any, database: str, *, surrogate: str = "", key: str = "") -> Answer:
    rules = ColumnRules(keys=((f"{database}.t", tuple(key.split(","))),) if key else ())
    return Answers(connection, rules)(Describe(TableId(database, "t"), surrogate, "", GtidSet()))


@pytest.mark.parametrize(
    ("columns", "surrogate", "key", "ordered", "index"),
    [
        ("id INT PRIMARY KEY, k INT", "", "k", ("id",), "PRIMARY"),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE by_ba (b, a)", "", "", ("b", "a"), "by_ba"),
        ("a INT, b INT, KEY by_ab (a, b)", "", "a,b", ("a", "b"), "by_ab"),
        ("a INT, b INT, c INT, KEY (b), KEY longer (a, b, c)", "", "a,b", ("a", "b"), "longer"),
        ("a INT, b INT, KEY (b, a)", "", "a,b", ("a", "b"), ""),
        ("a INT, b VARCHAR(9), KEY (b(3))", "", "b", ("b",), ""),
        ("c VARCHAR(20), n INT, PRIMARY KEY (c(5))", "", "", ("c",), ""),
        ("id INT PRIMARY KEY, s INT NULL, KEY by_s (s)", "s", "", ("s", "id"), "by_s"),
        ("id INT PRIMARY KEY, s INT, KEY longer (s, id), UNIQUE exact (s)", "s", "", ("s", "id"), "exact"),
        ("id INT, s INT, PRIMARY KEY (id DESC), KEY by_s (s)", "s", "", ("s", "id"), "by_s"),
        ("id INT PRIMARY KEY, s INT, x INT, KEY by_sx (s, x)", "s", "", ("s", "x", "id"), "by_sx"),
        ("id INT NOT NULL UNIQUE, s INT, KEY by_s (s)", "s", "", ("s", "id"), "by_s"),
        ("a INT, s INT, KEY by_s (s)", "s", "a", ("s", "a"), ""),
        ("a INT, s INT, KEY by_s (s)", "s", "", ("s",), "by_s"),
        ("a INT, s INT", "s", "", ("s",), ""),
        ("id INT PRIMARY KEY, s INT", "s", "", ("s", "id"), ""),
        ("id INT PRIMARY KEY, s INT, KEY by_s (s)", "S", "", ("s", "id"), "by_s"),
        ("a INT, s INT, c VARCHAR(9), KEY by_s (s), KEY by_sac (s, a, c(2))", "s", "", ("s", "a"), "by_sac"),
    ],
)
def test_an_index_that_begins_with_the_ordering_columns_is_found(
    connection: Any, database: str, columns: str, surrogate: str, key: str, ordered: tuple[str, ...], index: str
) -> None:
    query(connection, f"CREATE TABLE t ({columns})")
    answer = described(connection, database, surrogate=surrogate, key=key)

    assert isinstance(answer, KeyOrder), answer
    assert (answer.columns, answer.index) == (ordered, index)


@pytest.mark.parametrize(
    ("columns", "surrogate", "key", "descending"),
    [
        ("a INT, b INT, PRIMARY KEY (a DESC, b)", "", "", ("a",)),
        ("a INT, b INT, PRIMARY KEY (a, b DESC)", "", "", ("b",)),
        ("id INT, PRIMARY KEY (id DESC)", "", "", ("id",)),
        ("a INT NOT NULL, b INT NOT NULL, UNIQUE (b DESC, a)", "", "", ("b",)),
        ("a INT, b INT, KEY (a, b DESC)", "", "a,b", ("b",)),
        ("id INT PRIMARY KEY, s INT, KEY (s DESC, id)", "s", "", ("s",)),
        ("id INT PRIMARY KEY, s INT, KEY (s, id DESC)", "s", "", ("id",)),
        ("id INT, s INT, PRIMARY KEY (id DESC), KEY (s)", "s", "", ("id",)),
        ("c VARCHAR(20), n INT, PRIMARY KEY (c(5) DESC)", "", "", ()),
        ("id INT PRIMARY KEY, s INT, KEY ((s + 1) DESC), KEY later (s)", "s", "", ()),
    ],
)
def test_chunks_run_as_the_index_does(
    connection: Any, database: str, columns: str, surrogate: str, key: str, descending: tuple[str, ...]
) -> None:
    query(connection, f"CREATE TABLE t ({columns})")
    answer = described(connection, database, surrogate=surrogate, key=key)

    assert isinstance(answer, KeyOrder), answer
    assert answer.descending == descending


@pytest.mark.parametrize(
    ("columns", "surrogate", "repair"),
    [
        ("a INT", "", "message.key.columns"),
        ("a INT UNIQUE", "", "INVISIBLE PRIMARY KEY"),
        ("a INT, KEY (a)", "", "surrogate-key"),
        ("id INT PRIMARY KEY", "s", "no column s"),
    ],
)
def test_a_table_without_a_key_or_an_order_is_refused_with_a_repair(
    connection: Any, database: str, columns: str, surrogate: str, repair: str
) -> None:
    query(connection, f"CREATE TABLE t ({columns})")
    answer = described(connection, database, surrogate=surrogate)

    assert isinstance(answer, Refused)
    assert answer.status == "NO_PRIMARY_KEY"
    assert repair in answer.reason


def test_a_generated_invisible_primary_key_orders_the_chunks(connection: Any, database: str) -> None:
    query(connection, "SET sql_generate_invisible_primary_key = ON")
    query(connection, "CREATE TABLE t (a INT)")
    answer = described(connection, database)

    assert isinstance(answer, KeyOrder)
    assert (answer.columns, answer.index) == (("my_row_id",), "PRIMARY")
