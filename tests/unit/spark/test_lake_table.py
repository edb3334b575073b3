"""A lake's table that follows MySQL's columns, in a session that only records statements."""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from incsnap.errors import ConfigError
from incsnap.spark.lake_columns import StreamColumns
from incsnap.spark.lake_table import LakeTable
from incsnap.tasks.described_rows import Alteration

#: The defaults of `spark.redaction.regex` and `spark.sql.redaction.options.regex`.
_REDACTED = re.compile("(?i)secret|password|token|access[.]?key|url")
#: Names of columns that Spark takes for secrets.
SECRET_NAMES = ("id", "image_url", "password_hash", "token", "access_key", "client_secret")


class Session:
    """A session with one table. `cut`: a statement that begins so raises an error, and has not worked."""

    def __init__(self, columns: str, state: str | None = None) -> None:
        self.columns = columns.split()
        self.properties = {} if state is None else {"incsnap.merge": state}
        self.statements: list[str] = []
        self.filled: list[str] = []  #: columns that a MERGE has given their DEFAULT
        self.cut = ""
        self.stale: list[str] = []  #: the columns as the catalog's cache has them; empty: no cache
        self.catalog = self.range = self.createDataFrame = MagicMock()

    def table(self, _name: str) -> SimpleNamespace:
        columns = self.stale or self.columns
        fields = [StructField(name, IntegerType()) for name in columns]
        no_row = SimpleNamespace(isEmpty=lambda: True)
        return SimpleNamespace(schema=StructType(fields), columns=list(columns), where=lambda _null: no_row)

    def sql(self, statement: str) -> MagicMock:
        shown = MagicMock()
        if statement.startswith("SHOW"):
            table = shown._jdf.queryExecution.return_value.analyzed.return_value.table.return_value.table.return_value
            table.properties.return_value = self.properties
            shown.collect.return_value = [
                {"key": key, "value": "*********(redacted)" if _REDACTED.search(value) else value}
                for key, value in self.properties.items()
            ]
            return shown
        if statement.startswith("REFRESH"):
            self.stale = []
            return shown
        if self.cut and self.cut in statement:
            raise RuntimeError("cut")
        if new := re.search(r"TBLPROPERTIES \('(.*)' = '(.*)'\)", statement):
            self.properties[new[1]] = new[2]
        else:
            self.statements.append(statement.removeprefix("ALTER TABLE lake.t ").partition(" USING")[0])
        if "ADD COLUMNS" in statement:
            self.columns += re.findall("`(.*?)`", statement)
        if "MERGE" in statement:
            self.filled += re.findall("t.`(.*?)` =", statement)
        return shown

    def lake(self) -> LakeTable:
        """Return the table as a new query sees it."""
        return LakeTable(cast("SparkSession", self), "lake.t", "iceberg")


@pytest.fixture(autouse=True)
def values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the values of DEFAULTs: Spark makes them only while it runs."""
    monkeypatch.setattr("incsnap.spark.lake_table._value", MagicMock())


def stream(names: str, **defaults: int) -> StreamColumns:
    """Return columns of a stream. `defaults`: their DEFAULTs."""
    fields = tuple(StructField(name, IntegerType()) for name in names.split())
    return StreamColumns(fields, ("id",), {name: pa.array([value], pa.int32()) for name, value in defaults.items()})


def plain(columns: tuple[str, ...], pending: dict[str, Any] | None = None) -> str:
    """Return a state as an earlier release wrote it."""
    return json.dumps({"columns": columns, "altered": "", "pending": pending}, ensure_ascii=False)


def test_no_name_of_a_column_makes_spark_redact_the_state() -> None:
    session = Session(" ".join(SECRET_NAMES))
    statement = Alteration("s:f:1", "ALTER TABLE t ADD COLUMN private_token INT", None)

    session.lake().create(stream(" ".join(SECRET_NAMES)))
    session.lake().alter(statement, None)
    again = session.lake()

    assert not _REDACTED.search(session.properties["incsnap.merge"])
    assert again.is_behind(statement)
    assert (again._state.columns, again._state.pending) == (SECRET_NAMES, statement)


@pytest.mark.parametrize("columns", [("id", "n"), SECRET_NAMES])
def test_the_state_of_an_earlier_release_is_read_though_spark_redacts_it(columns: tuple[str, ...]) -> None:
    pending = {"id": "s:f:1", "sql": "ALTER TABLE größe", "origins": {"x": None}, "defaults": {}, "is_one": True}
    lake = Session("id", plain(columns, pending)).lake()

    assert lake._state.columns == columns
    assert lake._state.pending == Alteration("s:f:1", "ALTER TABLE größe", {"x": None})


@pytest.mark.parametrize("state", ["*********(redacted)", "zz", '{"columns": ["token"]}', "7b"])
def test_a_state_that_cannot_be_read_is_no_empty_one(state: str) -> None:
    with pytest.raises(ConfigError, match=r"merge_into cannot read the property incsnap\.merge of lake\.t"):
        Session("id", state).lake().follow(stream("id"))


@pytest.mark.parametrize("columns", ["id", "id x"], ids=["before the column is added", "behind it"])
def test_a_column_that_an_earlier_release_was_adding_gets_its_default(columns: str) -> None:
    pending = {"id": "s:f:1", "sql": "ALTER", "origins": {"x": None}, "defaults": {"x": "5"}}
    session = Session(columns, plain(("id",), pending))

    session.lake().follow(stream("id x"))

    assert session.filled == ["x"]


@pytest.mark.parametrize("origins", [None, {}, {"x": "y"}])
def test_an_earlier_release_that_knew_of_no_new_column_leaves_no_default(origins: dict[str, str | None] | None) -> None:
    pending = {"id": "s:f:1", "sql": "ALTER", "origins": origins, "defaults": {"x": "5"}}

    assert Session("id x", plain(("id",), pending)).lake()._state.adding == ()
    assert Session("id x", plain(("id",))).lake()._state.adding == ()


ADDED = Alteration("s:f:1", "ALTER TABLE t ADD COLUMN x INT DEFAULT 5", {"x": None}, {"x": "5"})
RENAMED = Alteration("s:f:1", "RENAME TABLE t TO old, new TO t", None)
REVERTED = Alteration("s:f:2", "rename /* gh-ost */ table t to _t_rev_del, _t_del to t", None)
LAST = Alteration("s:f:3", "ALTER TABLE t ADD COLUMN y INT DEFAULT 6", {"y": None}, {"y": "6"})
ADD, FILL = "ADD COLUMNS (`x` int)", "MERGE INTO lake.t AS t"


def brought(names: str) -> Session:
    """Return a session whose table has the columns that a query has brought."""
    session = Session(names)
    session.lake().create(stream(names))
    return session


def test_a_column_that_a_statement_adds_gets_its_default_once() -> None:
    session = brought("id")

    for lake in (session.lake(), session.lake()):
        lake.alter(ADDED, stream("id x", x=5))

    assert session.statements == [ADD, FILL]


@pytest.mark.parametrize(("cut", "left"), [(ADD, [ADD, FILL]), (FILL, [FILL])])
def test_a_column_gets_its_default_behind_a_crash(cut: str, left: list[str]) -> None:
    session = brought("id")
    session.cut = cut
    with pytest.raises(RuntimeError, match="cut"):
        session.lake().alter(ADDED, stream("id x", x=5))
    session.cut, session.statements = "", []

    session.lake().alter(ADDED, stream("id x", x=5))

    assert session.statements == left


def test_columns_of_two_statements_get_their_defaults_behind_a_crash() -> None:
    session = brought("id")
    session.cut = FILL
    with pytest.raises(RuntimeError, match="cut"):
        session.lake().alter(ADDED, stream("id x", x=5))
    session.cut = ""

    # MySQL has the second column by now. So the first statement no longer comes with its columns.
    lake = session.lake()
    lake.alter(ADDED, None)
    lake.alter(LAST, stream("id x y"))

    assert session.filled == ["x", "y"]
    assert session.lake()._state.adding == ()


@pytest.mark.parametrize("statement", [ADDED, RENAMED])
def test_a_column_that_the_user_has_given_the_lake_keeps_its_values(statement: Alteration) -> None:
    session = brought("id qty")
    if statement is RENAMED:
        with pytest.raises(ConfigError, match="columns qty may be x under new names"):
            session.lake().alter(statement, stream("id x", x=5))
    session.columns = ["id", "x"]

    session.lake().alter(statement, stream("id x", x=5))

    assert (session.statements, session.lake()._state.pending) == ([], None)


def test_a_column_that_the_lake_refuses_may_be_added_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    session = brought("id")
    plain_sql = session.sql

    def refusing(statement: str) -> MagicMock:
        if ADD in statement:
            raise AnalysisException("no such type")
        return plain_sql(statement)

    monkeypatch.setattr(session, "sql", refusing)
    with pytest.raises(ConfigError, match="iceberg cannot add x: no such type"):
        session.lake().alter(ADDED, stream("id x", x=5))
    monkeypatch.undo()
    session.columns.append("x")

    session.lake().alter(ADDED, stream("id x", x=5))

    assert session.statements == []


@pytest.mark.parametrize(
    ("is_added", "is_away"),
    [(True, False), (True, True), (False, True)],
    ids=["the answer is lost", "the catalog is away behind it", "the catalog is away"],
)
def test_a_column_whose_addition_is_not_answered_gets_its_default(
    is_added: bool, is_away: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, gone = brought("id"), []
    plain_sql = session.sql

    def unanswered(statement: str) -> MagicMock:
        if ADD in statement:
            if is_added:
                session.stale = list(session.columns)
                plain_sql(statement)
            gone.append(is_away)
            raise AnalysisException("Connection reset")
        if any(gone):
            raise AnalysisException("Connection refused")
        return plain_sql(statement)

    with monkeypatch.context() as patched:
        patched.setattr(session, "sql", unanswered)
        with pytest.raises(ConfigError, match="iceberg cannot add x: Connection reset") as refused:
            session.lake().alter(ADDED, stream("id x", x=5))
    assert "start the query again" in refused.value.hint
    session.stale = []

    session.lake().alter(ADDED, stream("id x"))

    assert (session.statements, session.filled) == ([ADD, FILL], ["x"])


@pytest.mark.parametrize("behind", [None, Alteration("s:f:1", "ALTER TABLE t ADD COLUMN y INT", {"y": None})])
def test_a_column_that_settings_show_since_gets_no_default(
    behind: Alteration | None, caplog: pytest.LogCaptureFixture
) -> None:
    session = brought("id")

    with caplog.at_level(logging.WARNING, "incsnap.spark.lake_table"):
        if behind is None:
            session.lake().follow(stream("id x", x=5))
        else:
            session.lake().alter(behind, stream("id x y", x=5))

    assert FILL not in session.statements
    assert "lake.t: old rows have null in the new columns x: the query knows no statement that gives" in caplog.text


def test_a_column_that_comes_by_an_unknown_alteration_gets_no_default(caplog: pytest.LogCaptureFixture) -> None:
    session = brought("id")

    with caplog.at_level(logging.WARNING, "incsnap.spark.lake_table"):
        session.lake().alter(REVERTED, stream("id x", x=5))

    assert (session.statements, session.filled) == ([ADD], [])
    assert "lake.t: old rows have null in the new columns x: the query knows no statement that gives" in caplog.text


@pytest.mark.parametrize(
    ("statements", "filled"),
    [((ADDED, LAST), ["x", "y"]), ((REVERTED, LAST), ["y"]), ((ADDED, REVERTED, LAST), ["y"]), ((ADDED, REVERTED), [])],
)
def test_only_columns_of_known_statements_get_their_default(
    statements: tuple[Alteration, ...], filled: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    session = brought("id")
    lake = session.lake()
    for statement in statements[:-1]:
        lake.alter(statement, None)

    with caplog.at_level(logging.WARNING, "incsnap.spark.lake_table"):
        lake.alter(statements[-1], stream("id x y", x=7, y=7))

    assert session.filled == filled
    assert ("null in the new columns" in caplog.text) == (filled != ["x", "y"])


def test_an_unknown_alteration_behind_a_crash_takes_the_default_back(caplog: pytest.LogCaptureFixture) -> None:
    session = brought("id")
    session.cut = FILL
    with pytest.raises(RuntimeError, match="cut"):
        session.lake().alter(ADDED, stream("id x", x=5))
    session.cut = ""

    lake = session.lake()
    lake.alter(ADDED, None)
    with caplog.at_level(logging.WARNING, "incsnap.spark.lake_table"):
        lake.alter(REVERTED, stream("id x", x=7))

    assert session.filled == []
    assert "null in the new columns x:" in caplog.text


def test_a_swap_of_names_is_not_left_to_the_user() -> None:
    swap = Alteration("s:f:1", "ALTER", {"a": "b", "b": "a"})
    with pytest.raises(ConfigError, match="another column has in the lake") as refused:
        brought("id a b").lake().alter(swap, stream("id b a"))

    assert "snapshot.mode=initial" in refused.value.hint
    assert "by hand" not in refused.value.hint
