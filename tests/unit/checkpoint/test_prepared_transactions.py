"""Files of prepared XA transactions beside the checkpoint: read as written, gone when no offset can name them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from incsnap.binlog.prepared import PreparedTransactions
from incsnap.binlog.xa_parts import XaEvents, XaMark, XaTransaction
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.prepared_transactions import PreparedFiles, parts_let_go, prepared_after
from incsnap.checkpoint.windows import CheckpointDamaged
from incsnap.events import PreparedXa


def events(*contents: bytes) -> XaEvents:
    offsets = np.cumsum([0, *map(len, contents)])
    return XaEvents(b"".join(contents), offsets, np.arange(len(contents)) + (1 << 33))


def listed(root: Path) -> set[str]:
    return {file.stem for file in (root / "prepared").glob("*")}


def token(name: str) -> str:
    return name.partition("/")[0]


def prepared(xid: str, *contents: bytes, into: PreparedTransactions) -> XaTransaction:
    into.begin(xid, f"gtid of {xid}", "binlog.000001")
    if contents:
        into.add(events(*contents), passed_over=False)
    return into.prepare()


def test_parts_of_one_file_are_read_as_they_were_put(tmp_path: Path) -> None:
    parts = [events(b"one", b"", b"two" * 1000), events(b"three")]
    names = PreparedFiles(Files(str(tmp_path))).put(parts)

    again = PreparedFiles(Files(str(tmp_path)))

    for name, part in zip(names, parts, strict=True):
        read = again.get(name)
        assert read.payload == part.payload
        assert read.offsets.tolist() == part.offsets.tolist()
        assert read.positions.tolist() == part.positions.tolist()
    assert len(listed(tmp_path)) == 1


def test_a_torn_or_missing_file_is_named(tmp_path: Path) -> None:
    files = PreparedFiles(Files(str(tmp_path)))
    [name] = files.put([events(b"one")])
    path = tmp_path / "prepared" / f"{token(name)}.arrow"
    path.write_bytes(path.read_bytes()[:100])

    for asked in name, "f00d/0", f"{token(name)}/7":
        with pytest.raises(CheckpointDamaged, match=token(asked)):
            files.get(asked)


def test_a_file_goes_some_batches_after_the_last_of_its_parts_was_let_go(tmp_path: Path) -> None:
    files = PreparedFiles(Files(str(tmp_path)))
    first, second = files.put([events(b"one"), events(b"two")])

    files.release([first], 5)
    files.forget(100)
    assert listed(tmp_path) == {token(first)}

    files.release([second, second], 101)
    files.release([second], 102)
    files.forget(116)
    assert listed(tmp_path) == {token(first)}

    files.forget(117)
    assert listed(tmp_path) == set()


def test_what_other_lives_have_left_goes_and_what_an_offset_names_stays(tmp_path: Path) -> None:
    before = PreparedFiles(Files(str(tmp_path)))
    (named,), _ = before.put([events(b"named")]), before.put([events(b"orphan")])

    files = PreparedFiles(Files(str(tmp_path)))
    [own] = files.put([events(b"of this life")])
    files.adopt([PreparedXa("a", "g", parts=(named,))], 7)
    files.forget(7 + 16)

    assert listed(tmp_path) == {token(named), token(own)}
    files.release([named], 30)
    files.forget(46)
    assert listed(tmp_path) == {token(own)}


def test_what_no_offset_ever_named_goes_at_once(tmp_path: Path) -> None:
    files = PreparedFiles(Files(str(tmp_path)))
    names = files.put([events(b"one")])

    files.drop(names)

    assert listed(tmp_path) == set()


def test_what_is_prepared_at_a_batchs_end_is_put_into_one_file(tmp_path: Path) -> None:
    transactions = PreparedTransactions(PreparedFiles(Files(str(tmp_path))))
    old = PreparedXa("old", "g", parts=("x/0",))
    ended = PreparedXa("ended", "g", parts=("x/1",))
    quick, first, second, empty = (
        prepared(xid, *contents, into=transactions)
        for xid, contents in (("quick", [b"q"]), ("first", [b"1"]), ("second", [b"2"]), ("empty", []))
    )
    marks = [
        *(XaMark(each, True) for each in (quick, first, second, empty)),
        XaMark(XaTransaction("ended", "g"), False),
        XaMark(quick, False),
    ]

    after = prepared_after((old, ended), marks, transactions.keep)

    assert [each.xid for each in after] == ["old", "first", "second", "empty"]
    assert [len(each.parts) for each in after] == [1, 1, 1, 0]
    assert len(listed(tmp_path)) == 1
    assert parts_let_go((old, ended), marks, after) == ["x/1"]


def test_a_batch_without_any_left_writes_nothing(tmp_path: Path) -> None:
    transactions = PreparedTransactions(PreparedFiles(Files(str(tmp_path))))
    quick = prepared("quick", b"q", into=transactions)

    assert prepared_after((), [XaMark(quick, True), XaMark(quick, False)], transactions.keep) == ()
    assert listed(tmp_path) == set()
