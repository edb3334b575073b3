"""Tests of the lists of keys that a signal names: by which access they are read from a bucket, and what follows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.object_store import set_access
from incsnap.config.object_store import StoreAccess
from incsnap.errors import ConfigError
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.table_ordering import CatalogEntry
from incsnap.snapshot.commands import ChosenRows
from incsnap.tables import Column, Index, TableId, TableShape
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
