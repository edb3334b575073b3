"""Tests of `OnlineDdl` without a server: what a batch reports of tables of tools, and which statements it hides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incsnap.binlog.buffer_position import Advance
from incsnap.checkpoint.files import Files
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.ddl.statements import schema_change
from incsnap.events import OnlineStep, SchemaChange, Session, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner import newly_watched, online_ddl
from incsnap.planner.new_tables import FilterFiles, brings_tables, first_filter
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.snapshot.commands import Command, Report
from incsnap.snapshot.notifications import ONLINE_DDL_SWAP, ONLINE_DDL_TABLE
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from tests.support.job_settings import loaded_with
from tests.support.online_runs import gh_ost, spirit

_AT = StreamPosition(GtidSet(), "", 0)
_T, _COPY = TableId("shop", "t"), TableId("shop", "_t_gho")
_REAL = TableId("shop", "_t_new")
_NO_CONNECTION: Any = None


class _Tail:
    """A tail that has read nothing behind the batch."""

    def changes_behind(self, *_: Any) -> tuple[SchemaChange, ...]:
        return ()


@pytest.fixture
def online(tmp_path: Path) -> OnlineDdl:
    return OnlineDdl(loaded_with().settings, Files(str(tmp_path)))


def _follow(
    online: OnlineDdl, start: Offset, statements: Sequence[str] = (), written: Sequence[TableId] = ()
) -> tuple[Advance, OnlineTables, tuple[Command, ...]]:
    """Follow a batch with these statements, and with rows of the tables `written`."""
    made = [schema_change(sql, "shop") for sql in statements]
    changes = [replace(each, session=Session("shop"), has_xid=True) for each in made if each is not None]
    advance = Advance(
        tables=frozenset(written), changes=tuple(changes), bytes=0, events=0, last_ts_us=0, end=_AT, signals=()
    )
    tail: Any = _Tail()
    connection: Any = None
    return online.follow(start, advance, tail, connection, same_server=False)


def _offset(batch: int, online: str) -> Offset:
    return Offset("job", batch, _AT, TopicLayout(1), online=online)


def test_the_first_batch_alone_reports_the_tables_of_runs_under_way(online: OnlineDdl) -> None:
    certain = OnlineTable(_COPY, "gh-ost", "copy", _T, "its name, beside shop._t_ghc")
    kept = online.keep(OnlineTables((certain, OnlineTable(_REAL, "spirit", "copy", _T))))
    details = (("tool", "gh-ost"), ("altered", "shop.t"), ("trace", certain.trace))
    expected = Report("online-ddl-1", ONLINE_DDL_TABLE, (("data_collections", "shop._t_gho"), *details))
    assert _follow(online, _offset(0, kept))[2] == (expected,)
    assert _follow(online, _offset(1, kept))[2] == ()


def test_a_swap_is_reported_with_the_former_table(online: OnlineDdl) -> None:
    _, _, commands = _follow(online, _offset(7, ""), gh_ost())
    swap = [each for each in commands if isinstance(each, Report) and each.type == ONLINE_DDL_SWAP]
    fields = (("data_collections", "shop.t"), ("tool", "gh-ost"), ("former", "shop._t_del"))
    assert swap == [Report("online-ddl-8", ONLINE_DDL_SWAP, fields)]


def test_a_run_on_a_table_that_is_not_captured_is_not_reported(tmp_path: Path) -> None:
    online = OnlineDdl(loaded_with(table__include__list=r"shop\.t").settings, Files(str(tmp_path)))
    secret = [*gh_ost(table="secret"), *spirit(table="secret")]
    under_way = OnlineTable(TableId("shop", "_secret_gho"), "gh-ost", "copy", TableId("shop", "secret"), "its name")

    advance, _, commands = _follow(online, _offset(0, online.keep(OnlineTables((under_way,)))), secret)

    assert commands == ()
    # The table's alteration is followed all the same.
    assert any(each.online.swaps for each in advance.changes)
    reported = [each.fields[0][1] for each in _follow(online, _offset(1, ""), gh_ost())[2] if isinstance(each, Report)]
    assert reported == ["shop._t_ghc", "shop._t_gho", "shop._t_del", "shop.t"]


def test_a_statement_about_a_table_with_rows_and_no_trace_is_shown(online: OnlineDdl) -> None:
    created, behind, _ = _follow(online, _offset(1, ""), ["CREATE TABLE _t_new LIKE t"])
    assert created.changes[0].online.hides(_REAL)
    start = _offset(2, online.keep(behind))
    alter = ["ALTER TABLE _t_new RENAME COLUMN a TO b"]
    assert _follow(online, start, alter)[0].changes[0].online.hides(_REAL)
    altered, end, _ = _follow(online, start, alter, [_REAL])
    assert not altered.changes[0].online.hides(_REAL)
    assert not end.tables


def _with_wider_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: Sequence[TableId]
) -> tuple[OnlineDdl, Offset]:
    """Return a start with `database.include.list=shop,crm` behind a job that watched `shop`, and the job's offset.

    The server has the tables `existing`. gh-ost alters the table `t` of each database.
    """
    files = Files(str(tmp_path))
    before = loaded_with(database__include__list="shop").settings
    kept = OnlineDdl(before, files).keep(OnlineTables((OnlineTable(_COPY, "gh-ost", "copy", _T, "seen"),)))
    start = replace(_offset(7, kept), signal_positions=first_filter(before.tables, FilterFiles(files)))

    def of_tools(_: object, tables: Sequence[TableId]) -> OnlineTables:
        copies = (table for table in tables if table.table == "_t_gho")
        return OnlineTables(
            tuple(OnlineTable(copy, "gh-ost", "copy", TableId(copy.database, "t"), "found") for copy in copies)
        )

    monkeypatch.setattr(newly_watched, "tables", lambda *_: existing)
    monkeypatch.setattr(newly_watched, "online_tables", of_tools)
    return OnlineDdl(loaded_with(database__include__list="shop,crm").settings, files), start


_FOUND = TableId("crm", "_t_gho")


def test_a_run_in_a_database_that_is_watched_from_now_on_is_found_on_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online, start = _with_wider_lists(tmp_path, monkeypatch, [_COPY, _FOUND, TableId("crm", "t")])
    online.begin(start, _NO_CONNECTION)
    at = online.at(start)
    assert at is not None
    # What the server has of a database that was followed proves nothing about an earlier place.
    assert [(each.table, each.trace) for each in at.tables] == [(_COPY, "seen"), (_FOUND, "found")]
    _, behind, commands = _follow(online, start)
    assert [dict(each.fields)["data_collections"] for each in commands if isinstance(each, Report)] == ["crm._t_gho"]
    # Behind the batch the offset names the lists of this start.
    wider = loaded_with(database__include__list="shop,crm").settings.tables
    positions = first_filter(wider, FilterFiles(Files(str(tmp_path))))
    end = replace(start, batch=8, online=online.keep(behind), signal_positions=positions)
    assert online.at(end) == behind
    assert _follow(online, end)[2] == ()


def test_a_batch_that_is_repeated_leaves_out_the_same_tables_although_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online, start = _with_wider_lists(tmp_path, monkeypatch, [_FOUND])
    online.begin(start, _NO_CONNECTION)
    for offset, reported in ((start, True), (replace(start, batch=8), False)):
        again, _ = _with_wider_lists(tmp_path, monkeypatch, [])
        again.begin(offset, _NO_CONNECTION)
        at = again.at(offset)
        assert at is not None
        assert at.has(_FOUND.folded) is reported


def test_the_server_is_not_asked_if_the_lists_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    online, start = _with_wider_lists(tmp_path, monkeypatch, [_FOUND])
    wider = loaded_with(database__include__list="shop,crm").settings.tables
    start = replace(start, signal_positions=first_filter(wider, FilterFiles(Files(str(tmp_path)))))
    online.begin(start, _NO_CONNECTION)
    at = online.at(start)
    assert at is not None
    assert not at.has(_FOUND.folded)


def test_a_start_that_captures_tables_of_tools_does_not_ask_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, start = _with_wider_lists(tmp_path, monkeypatch, [_FOUND])
    settings = loaded_with(database__include__list="shop,crm", incsnap__online__ddl__tables="capture").settings
    online = OnlineDdl(settings, Files(str(tmp_path)))
    monkeypatch.setattr(newly_watched, "tables", None)
    online.begin(start, _NO_CONNECTION)
    assert online.at(start) is None


@pytest.mark.parametrize(
    ("sql", "hides", "brings"),
    [
        ("CREATE TABLE u (id INT)", False, True),
        ("CREATE TABLE u (id INT)", True, False),  # the table is a tool's
        ("RENAME TABLE t TO x, u TO t", False, True),
        ("ALTER TABLE t ADD n INT", False, False),
        ("TRUNCATE TABLE t", False, False),
    ],
)
def test_a_statement_brings_a_table_unless_the_table_is_a_tools(sql: str, hides: bool, brings: bool) -> None:
    change = schema_change(sql, "shop", sql_mode=0)
    assert change is not None
    step = OnlineStep(hidden=frozenset({TableId("shop", "u")})) if hides else OnlineStep()
    assert brings_tables(replace(change, online=step), lambda table: table.database == "shop") == brings


def test_a_job_that_begins_again_knows_the_former_tables_and_the_runs_under_way(
    online: OnlineDdl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, gone = (
        OnlineTable(TableId("shop", name), "gh-ost", "former", _T, "a swap") for name in ("_t_del", "_u_del")
    )
    ended = OnlineTable(_REAL, "spirit", "copy", _T, "its name")
    running = OnlineTable(_COPY, "gh-ost", "copy", _T, "its name, beside shop._t_ghc")
    before = _offset(7, online.keep(OnlineTables((stays, gone, ended), away=(_T,))))
    existing = [_T, stays.table, _COPY]
    monkeypatch.setattr(online_ddl, "tables", lambda *_: existing)
    monkeypatch.setattr(online_ddl, "online_tables", lambda _, tables: OnlineTables((running,) * (tables == existing)))

    assert online.at(_offset(0, online.begun_again(before, _NO_CONNECTION))) == OnlineTables(
        (replace(stays, is_fed=False), running)
    )
