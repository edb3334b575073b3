"""Tests of the keys that are sent again behind a gap."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import GapAnswer, GapFiles, TableAnswer
from incsnap.errors import ServerUnreachable
from incsnap.planner.gap_lists import GapLists
from incsnap.planner.signal_commands import CapturedTables
from incsnap.snapshot.commands import Execute
from incsnap.tables import Column, TableId, TableShape
from incsnap.verify import gap
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap import GapCourse
from incsnap.verify.gap_sides import TableCounts
from incsnap.verify.record_reading import RecordForm
from incsnap.verify.table_side import VerifiedTable
from tests.support.job_settings import loaded_with

_ORDERS = TableShape(TableId("shop", "orders"), (Column("id", "int", nullable=False),), (0,))
_TABLE = VerifiedTable(_ORDERS, "shop.shop.orders", 1, RecordForm(True, False, False))
#: Keys of an earlier form of the table, and of another producer.
_ODD = [b'{"code":"a"}', b'{"id":"abc"}', b"no JSON"]


class Compared:
    """A comparison with these differences."""

    def __init__(self, rows: list[bytes], extra: list[bytes]) -> None:
        self._keys = {False: rows, True: extra}

    def keys(self, number: int, *, extra: bool) -> Iterator[list[bytes]]:
        assert number == 0
        yield self._keys[extra]


def answers(
    folder: Path, rows: list[bytes], extra: list[bytes], of: int = 1000, table: VerifiedTable = _TABLE
) -> list[TableAnswer]:
    """Return the answers about a table of `of` rows, with these keys that differ and keys that the table lacks."""
    unused: Any = None  # neither Spark nor MySQL is asked
    course = GapCourse(unused, loaded_with().settings, str(folder), "job", Allowance())
    compared: Any = Compared(rows, extra)
    return course._of_table(table, TableCounts(of, len(rows), len(extra)), compared, 0)


def test_a_key_that_no_row_can_have_keeps_no_other_deletion_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        deletions, rows = answers(tmp_path, [b'{"id":1}'], [b'{"id":7}', *_ODD, b'{"id":8}'])

    assert (deletions.count, rows.count) == (2, 1)
    assert not deletions.whole
    assert "shop.orders: 3 keys of the topic have a form that no row has" in caplog.text
    assert '{"code":"a"}' in caplog.text


def test_a_row_whose_key_cannot_be_read_again_lets_the_table_be_read_whole_with_its_deletions(tmp_path: Path) -> None:
    whole, deletions = answers(tmp_path, [b'{"id":"abc"}'], [b'{"id":7}'])

    assert whole.whole
    assert (deletions.whole, deletions.count) == (False, 1)


def test_a_table_with_many_differences_is_read_whole_and_its_deletions_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gap, "_LIST_KEYS", 2)

    whole, *deletions = answers(tmp_path, [b'{"id":%d}' % number for number in range(5)], [b'{"id":7}'] * 3, of=10)

    assert whole.whole
    assert [each.count for each in deletions] == [2, 1]


@pytest.mark.parametrize("name", ["my.orders", " orders", "`orders`", "a.b`.`c", "orders"])
def test_an_answer_means_its_table_whatever_its_name(tmp_path: Path, name: str) -> None:
    shape = replace(_ORDERS, id=TableId("shop", name))
    (row,) = answers(tmp_path, [b'{"id":1}'], [], table=replace(_TABLE, shape=shape))
    whole = gap._whole(shape.id, "no key")
    files = Files(str(tmp_path))
    GapFiles(files, "job").write_answer(1, GapAnswer((row, whole), (str(shape.id),), is_last=True))
    start: Any = Mock(batch=1, job_id="job", signal_positions={"gap": 0})

    executes, _ = GapLists(loaded_with().settings.snapshot, files).commands(start, lambda: CapturedTables((shape.id,)))

    commands = [each for each in executes if isinstance(each, Execute)]
    assert [each.table for command in commands for each in command.collections] == [shape.id, shape.id]


def test_a_server_that_is_away_gives_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer holds for good, and a table that is read whole gets no deletions."""

    def away(*_: object) -> None:
        raise ServerUnreachable("the registry is away")

    unused: Any = None
    course = GapCourse(unused, loaded_with().settings, str(tmp_path), "job", Allowance())
    monkeypatch.setattr(gap, "captured_by_job", lambda *_: [_ORDERS.id])
    monkeypatch.setattr(gap, "partition_counts", lambda *_: {"shop.shop.orders": 1})
    monkeypatch.setattr(gap, "shapes_to_compare", lambda *_: {_ORDERS.id: _ORDERS})
    monkeypatch.setattr(gap, "verified_table", away)

    with pytest.raises(ServerUnreachable):
        course._answer(unused, {_ORDERS.id: 10}, unused)
