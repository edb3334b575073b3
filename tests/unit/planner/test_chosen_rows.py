"""Tests of the rows that a signal names: lists of keys in a bucket, refused deletions, and ranges without an index."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import StoreAccess
from incsnap.errors import ConfigError
from incsnap.planner import chosen_rows
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.table_ordering import CatalogEntry, Ordering, TableRefused
from incsnap.snapshot.commands import ChosenRows
from incsnap.snapshot.keys import Key
from incsnap.tables import Column, Index, TableId, TableShape
from incsnap.tasks.formats import format_of
from lab.object_store import ObjectStore
from tests.support.job_settings import loaded_with

_SHAPE = TableShape(TableId("shop", "orders"), (Column("id", "int", nullable=False),), (0,))
_ENTRY = CatalogEntry(_SHAPE, {}, (Index("PRIMARY", ("id",)),))


def listed(checkpoint: str, root: Path, place: str, **spark: str) -> list[str]:
    """Return the keys at `place` that a job with the properties `spark` has written down."""
    settings = loaded_with(checkpoint__location=checkpoint, **spark).settings
    chosen = ChosenRowsOf(settings, Files(str(root)))
    connection: Any = None  # this table's records need no question to MySQL
    _, name, count = chosen.listed(connection, _ENTRY, ChosenRows(files=place), "")
    return chosen.lists.read(name, 0, count)


@pytest.mark.parametrize("checkpoint", ["", "s3a://elsewhere/job"])
def test_keys_are_read_with_the_access_to_their_own_bucket(
    bucket_folder: str, object_store: ObjectStore, tmp_path: Path, checkpoint: str
) -> None:
    Files(bucket_folder).write("keys.jsonl", b'{"id":7}')
    set_access(bucket_folder, StoreAccess())  # a new process knows no access
    bucket = urlparse(bucket_folder).netloc
    of_keys = {
        name.replace("s3a.", f"s3a.bucket.{bucket}.").replace(".", "__"): value
        for name, value in object_store.properties("").items()
        if name.startswith("spark.hadoop.fs.s3a.")
    }
    for_all = {"spark__hadoop__fs__s3a__access__key": "AKIA-OTHER", "spark__hadoop__fs__s3a__secret__key": "other"}

    keys = listed(checkpoint or str(tmp_path), tmp_path, f"{bucket_folder}/keys.jsonl", **for_all, **of_keys)

    assert keys == ['{"id":7}']


def test_without_the_library_the_error_names_the_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigError, match="Access to the bucket nobodys-keys needs the Python package obstore"):
        listed(str(tmp_path), tmp_path, "s3a://nobodys-keys/keys.jsonl")


#: A router that sends the tables of the database shop to one topic. It adds the table's name to keys.
_TELLING = {
    "transforms": "one",
    "transforms__one__type": "ByLogicalTableRouter",
    "transforms__one__topic__regex": "(.*)[.]shop[.].*",
    "transforms__one__topic__replacement": "$1.all",
}
#: Such a router that leaves keys as they are.
_HIDING = {**_TELLING, "transforms__one__key__enforce__uniqueness": "false"}


def deletions_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deletes: bool, **router: str) -> str:
    """Return why the keys of shop.orders, one of three captured tables, are refused; "" if they are taken."""
    others = [TableId("shop", "archive"), TableId("stock", "items")]
    monkeypatch.setattr(chosen_rows, "captured_tables", lambda connection, tables: [*others, _SHAPE.id])
    (tmp_path / "keys.jsonl").write_text('{"id":7}')
    chosen = ChosenRows(files=str(tmp_path / "keys.jsonl"), deletes=deletes)
    connection: Any = None  # the tables are given above
    of_job = ChosenRowsOf(loaded_with(**router).settings, Files(str(tmp_path)))
    try:
        assert of_job.listed(connection, _ENTRY, chosen, "")[2] == 1
    except TableRefused as refused:
        return str(refused)
    return ""


def test_deletions_are_refused_with_the_table_whose_keys_look_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "incsnap-absent=delete cannot be obeyed: shop.archive has the same topic shop.all, and a key does not tell"
        " the table"
    ) in deletions_of(tmp_path, monkeypatch, deletes=True, **_HIDING)


@pytest.mark.parametrize(
    ("router", "deletes"), [({}, True), (_TELLING, True), (_HIDING, False)], ids=["alone", "told apart", "counted"]
)
def test_keys_are_taken_where_they_tell_the_table_or_nothing_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, router: dict[str, str], deletes: bool
) -> None:
    assert deletions_of(tmp_path, monkeypatch, deletes, **router) == ""


def range_of(root: Path, walks: bool) -> tuple[Ordering, Key | None, Key | None]:
    """Return the order and the limits of a range of a column without an index."""
    shape = replace(_SHAPE, columns=(*_SHAPE.columns, Column("state", "int")))
    entry = replace(_ENTRY, shape=shape)
    settings = loaded_with().settings
    chosen = ChosenRows(first='{"state":3}', last='{"state":5}', walks=walks)
    return ChosenRowsOf(settings, Files(str(root))).range(entry, format_of(settings, shape).view, chosen, "")


def test_a_range_without_an_index_is_read_by_a_walk_that_the_user_allows(tmp_path: Path) -> None:
    order, first, last = range_of(tmp_path, walks=True)

    assert ([column.name for column in order.columns], order.index) == (["state", "id"], "")
    assert (first, last) == (("3",), ("5",))


def test_a_range_without_an_index_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    ways = "create an index, allow the walk with incsnap-whole-table=true, or give an additional condition on state"
    with pytest.raises(TableRefused, match=f"no index begins with state, .* whole table: {ways}"):
        range_of(tmp_path, walks=False)


@pytest.mark.parametrize(
    ("kind", "of_record", "of_mysql"),
    [
        ("date", "2026-11-01Z", "2026-11-01"),
        ("time", "13:05:00Z", "13:05:00"),
        ("datetime", "2026-11-01T13:05:00Z", "2026-11-01 13:05:00"),
        ("timestamp", "2026-11-01T13:05:00Z", "2026-11-01 13:05:00"),
        ("timestamp", "2026-11-01T15:05:00+02:00", "2026-11-01 13:05:00"),
    ],
)
def test_a_limit_has_the_form_of_records_or_that_of_mysql(
    kind: str, of_record: str, of_mysql: str, tmp_path: Path
) -> None:
    shape = replace(_SHAPE, columns=(*_SHAPE.columns, Column("at", kind)))
    entry = replace(_ENTRY, shape=shape, indexes=(*_ENTRY.indexes, Index("by_at", ("at",))))
    settings = loaded_with(time__precision__mode="isostring").settings
    view = format_of(settings, shape).view
    of_job = ChosenRowsOf(settings, Files(str(tmp_path)))
    chosen = ChosenRows(first=json.dumps({"at": of_record}), last=json.dumps({"at": of_mysql}))
    assert of_job.range(entry, view, chosen, "")[1:] == ((of_mysql,), (of_mysql,))
