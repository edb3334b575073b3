"""Tests of the alterations that `merge_into` gets: the names of columns, and DEFAULTs by the text of statements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incsnap.config.frames import DESCRIBES, frame_settings
from incsnap.ddl.statements import schema_change
from incsnap.events import Session, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.definitions import NotCertain
from incsnap.planner.frame_alterations import alteration_records
from incsnap.tasks.described_rows import Alteration

_OPTIONS = {
    "database.hostname": "db",
    "database.user": "cdc",
    "database.password": "pw",
    "topic.prefix": "inv",
    "table": "shop.t",
    DESCRIBES: "true",
    "checkpoint.location": "/data/frames",
}


class _Late:
    """Definitions that are not certain."""

    connection: Any = None
    end = StreamPosition(GtidSet(), "binlog.000001", 4)

    def answer(self, _: Any) -> Any:
        raise NotCertain("later statements")


def _alteration(sql: str, folder: Path, setting: str) -> Alteration:
    file = folder / "job.properties"
    file.write_text(setting)
    settings = frame_settings({**_OPTIONS, "config": str(file)}).settings
    made = schema_change(sql, "shop")
    assert made is not None
    change = replace(made, session=Session("shop", 0, connection="utf8mb4"), has_xid=True)
    definitions: Any = _Late()
    (record,) = alteration_records(settings, definitions, [change])
    assert isinstance(record.key, bytes)
    return Alteration.from_json(record.key)


@pytest.mark.parametrize(
    ("mode", "old", "new"), [("none", "unit-price", "net-price"), ("avro", "unit_price", "net_price")]
)
def test_columns_have_the_names_of_the_data_frame(mode: str, old: str, new: str, tmp_path: Path) -> None:
    sql = "ALTER TABLE t RENAME COLUMN `Unit-Price` TO Price, ADD `net-price` INT NOT NULL DEFAULT 5"

    altered = _alteration(sql, tmp_path, f"field.name.adjustment.mode={mode}")

    assert altered.origins == {"price": old, new: None}
    assert altered.defaults == {new: "5"}


def test_the_default_of_a_masked_column_is_not_told(tmp_path: Path) -> None:
    sql = "ALTER TABLE t ADD ssn VARCHAR(20) DEFAULT 'unknown', ADD city VARCHAR(20) DEFAULT 'Rome'"

    altered = _alteration(sql, tmp_path, r"column.mask.with.4.chars=shop\\.t\\.ssn")

    assert altered.defaults == {"city": "Rome"}
    assert altered.origins == {"ssn": None, "city": None}
