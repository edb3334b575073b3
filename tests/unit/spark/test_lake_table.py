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
        self.cut = ""
        self.catalog = self.range = self.createDataFrame = MagicMock()

    def table(self, _name: str) -> SimpleNamespace:
        fields = [StructField(name, IntegerType()) for name in self.columns]
        return SimpleNamespace(schema=StructType(fields), columns=list(self.columns))

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
        if self.cut and self.cut in statement:
            raise RuntimeError("cut")
        if new := re.search(r"TBLPROPERTIES \('(.*)' = '(.*)'\)", statement):
            self.properties[new[1]] = new[2]
        else:
            self.statements.append(statement.removeprefix("ALTER TABLE lake.t ").partition(" USING")[0])
        if "ADD COLUMNS" in statement:
            self.columns += re.findall("`(.*?)`", statement)
        return shown

    def lake(self) -> LakeTable:
        """Return the table as a new query sees it."""
        return LakeTable(cast("SparkSession", self), "lake.t", "iceberg")


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


ADDED = Alteration("s:f:1", "ALTER TABLE t ADD COLUMN x INT DEFAULT 5", {"x": None}, {"x": "5"})
RENAMED = Alteration("s:f:1", "RENAME TABLE t TO old, new TO t", None)
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
    assert "lake.t: old rows have null in the new columns x: the query has seen no statement" in caplog.text


def test_a_swap_of_names_is_not_left_to_the_user() -> None:
    swap = Alteration("s:f:1", "ALTER", {"a": "b", "b": "a"})
    with pytest.raises(ConfigError, match="another column has in the lake") as refused:
        brought("id a b").lake().alter(swap, stream("id b a"))

    assert "snapshot.mode=initial" in refused.value.hint
    assert "by hand" not in refused.value.hint
