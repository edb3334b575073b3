"""Unwrapped rows that do not tell whether they are of a snapshot."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from incsnap.envelope.seam import RecordPlace
from incsnap.errors import ConfigError
from incsnap.takeover import offset_place
from incsnap.takeover.offset_place import require_here
from incsnap.takeover.written_records import LastRecord, WrittenRecords
from tests.unit.takeover.test_record_places import form_of, settings_of


@pytest.mark.parametrize(
    ("headers", "tells"),
    [
        ("op,source.file,source.pos", True),
        ("source.file,source.pos,source.snapshot", True),
        ("source.file,source.pos", False),
    ],
)
def test_a_place_that_is_no_events_may_be_that_of_a_snapshot_if_the_record_would_not_tell(
    headers: str, tells: bool
) -> None:
    form = form_of(settings_of(add__headers=headers))
    connection: Any = None
    written = WrittenRecords(
        RecordPlace(7, 4), last=LastRecord(RecordPlace(7, 345), "binlog.000007", "shop.orders", 0, 9)
    )

    with (
        patch.object(offset_place, "_events", return_value=[]),
        pytest.raises(
            ConfigError, match=r"binlog\.000007:345, the place of offset 9 .* read another server"
        ) as refused,
    ):
        require_here(connection, written, {"shop.orders": form})

    assert ("add.headers=op,source.file" in refused.value.message) != tells
