"""Tests of the comparison behind a gap for tables that share a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from incsnap.columns.arrow import RecordBatch
from incsnap.config.settings import Settings
from incsnap.config.topics import tables_by_topic
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.tables import Column, TableId, TableShape
from incsnap.verify import gap_sides
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap import GapCourse
from incsnap.verify.gap_sides import GapComparison
from incsnap.verify.kept_sides import RECORDS, BlockPlaces
from incsnap.verify.record_reading import ROW, RecordForm
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import TOPIC_RECORDS, PartitionPart
from incsnap.verify.verified_tables import TableRefused
from tests.support.job_settings import loaded_with

_COLUMNS = (Column("id", "int", nullable=False),)
_SHARDS = [TableShape(TableId("shop", name), _COLUMNS, (0,)) for name in ("orders_1", "orders_2")]
#: A router that sends both tables to one topic. It adds the table's name to keys.
_TELLING = {
    "transforms": "one",
    "transforms__one__type": "ByLogicalTableRouter",
    "transforms__one__topic__regex": "(.*)[.]shop[.].*",
    "transforms__one__topic__replacement": "$1.all",
}
#: Such a router that leaves keys as they are.
_HIDING = {**_TELLING, "transforms__one__key__enforce__uniqueness": "false"}
#: Keys of both tables, of a table that is gone, and one without a table's name.
_KEYS = [
    b'{"id":1,"__dbz__physicalTableIdentifier":"shop.shop.orders_1"}',
    b'{"id":1,"__dbz__physicalTableIdentifier":"shop.shop.orders_2"}',
    b'{"id":2,"__dbz__physicalTableIdentifier":"shop.shop.orders_2"}',
    b'{"id":3,"__dbz__physicalTableIdentifier":"shop.shop.orders_3"}',
    b'{"id":4}',
    None,
]


class InThisProcess:
    """The jobs of a comparison, on the calling thread."""

    def __init__(self, *_: object) -> None:
        pass

    def keep(
        self,
        places: BlockPlaces,
        side: str,
        parts: Sequence[tuple[int, Any]],
        weight: Callable[[Any], int],
        most: int,
        read: Callable[[Any], bytes],
    ) -> Iterator[int]:
        for number, part in parts:
            places.write(side, number, read(part))
            yield number


def comparable(tmp_path: Path, **router: str) -> list[VerifiedTable]:
    """Return how both tables are compared behind a gap. Raise TableRefused."""
    settings = loaded_with(**router).settings
    unused: Any = None  # this choice asks neither Spark nor MySQL
    course = GapCourse(unused, settings, str(tmp_path), "job", Allowance())
    owners = tables_by_topic(settings, [shape.id for shape in _SHARDS])
    (topic,) = owners
    made = [course._comparable(unused, shape, owners, {topic: 1}) for shape in _SHARDS]
    return [each for each in made if each is not None]


def test_tables_of_one_topic_are_compared_if_keys_tell_the_table(tmp_path: Path) -> None:
    assert [table.shape for table in comparable(tmp_path, **_TELLING)] == _SHARDS


def test_tables_whose_keys_look_alike_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(TableRefused, match=r"shop.orders_2 has the same topic, and a key does not tell the table"):
        comparable(tmp_path, **_HIDING)


def test_the_topic_is_read_once_and_each_record_counts_for_its_own_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[PartitionPart, RecordForm]] = []

    def records(
        client: ClientSettings, parts: Sequence[PartitionPart], forms: dict[str, RecordForm], places: bool
    ) -> Iterator[RecordBatch]:
        read.extend((part, forms[part.topic]) for part in parts)
        line = {"topic": "shop.all", "partition": 0, "time": 0, "state": ROW, "row": b"{}", "is_snapshot": False}
        yield pa.RecordBatch.from_pylist(
            [{**line, "key": key, "offset": offset} for offset, key in enumerate(_KEYS)], TOPIC_RECORDS
        )

    monkeypatch.setattr(gap_sides, "read_parts", records)
    monkeypatch.setattr(gap_sides, "PartJobs", InThisProcess)
    tables = comparable(tmp_path, **_TELLING)
    settings: Settings = loaded_with(**_TELLING).settings
    session: Any = SimpleNamespace(sparkContext=None)
    parts = [PartitionPart(tables[0].topic, 0, 0, len(_KEYS))]
    with closing(GapComparison(session, settings, tables, GtidSet(), Allowance(tasks=1), "job")) as compared:
        compared._read_records(ClientSettings("unused:1"), parts, {(tables[0].topic, 0): 2})
        with compared._sides.block(RECORDS, 0) as (batch, _):
            lines = [(each["number"], each["key"], each["is_new"]) for each in batch.to_pylist()]

    assert sorted(lines) == [(0, _KEYS[0], False), (1, _KEYS[1], False), (1, _KEYS[2], True)]
    assert read == [(parts[0], tables[0].form)]
