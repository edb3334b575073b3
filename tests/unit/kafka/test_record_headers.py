"""The headers of records as Kafka gets them, also where all records have equal ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from incsnap.kafka.record_headers import RecordHeaders

_MAP = pa.map_(pa.string(), pa.binary())
_RUN = [("run", b"7"), ("task", b"0")]


def headers_of(added: list[Any], old_keys: list[bytes | None]) -> list[list[tuple[bytes, bytes | None]]]:
    none = pa.nulls(len(added), pa.binary())
    columns = [pa.array(old_keys, pa.binary()), none, pa.array(added, _MAP)]
    # A slice, because the records of a bucket may be a part of a larger batch.
    whole = pa.record_batch(columns, names=["old_key", "new_key", "headers"])
    made = RecordHeaders(whole.slice(1))
    return [made.of(row) for row in range(len(added) - 1)]


@pytest.mark.parametrize(
    "added",
    [
        [[("x", b"y")], _RUN, _RUN, _RUN],
        [_RUN, _RUN, [("run", b"8"), ("task", b"0")], _RUN],
        [_RUN, _RUN, [("run", b"7"), ("other", b"0")], _RUN],
        [_RUN, _RUN, None, _RUN],
        [_RUN, [("run", None)], [("run", None)], [("run", None)]],
        [_RUN, [("run", None)], [("run", b"")], [("run", None)]],
        [_RUN, _RUN, [], [*_RUN, *_RUN]],
        [_RUN, [], [], []],
    ],
    ids=["equal", "value", "name", "null", "null values", "null or empty", "as many in all", "none"],
)
def test_each_record_has_its_own_headers_and_then_the_added_ones(added: list[Any]) -> None:
    old_keys = [None, b"old", None, None]

    expected = [
        [*([(b"__debezium.oldkey", key)] if key else []), *[(name.encode(), value) for name, value in each or ()]]
        for each, key in list(zip(added, old_keys, strict=True))[1:]
    ]
    assert headers_of(added, old_keys) == expected
