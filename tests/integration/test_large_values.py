"""Values beyond the 16 MB that a packet holds: rows of a SELECT and events of the binlog that span several packets."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from incsnap.binlog.protocol.row_images import WRITE, decode_rows
from incsnap.binlog.protocol.table_map import parse_table_map
from lab.addresses import MySqlAddress
from tests.integration.test_binlog_tail import Source
from tests.integration.test_same_bytes import Both, row_bytes
from tests.support.binlog_dump import charsets_of
from tests.support.stream_in_memory import rows_of
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

_MB = 1 << 20
_SIZE = 20 * _MB
_VALUES = {
    "longtext": f"CONCAT('é', REPEAT('x', {_SIZE}), 'z')",
    "longtext character set sjis": f"CONCAT('表', REPEAT('ソ', {_SIZE // 2}))",
    "longblob": f"CONCAT(x'00FF', REPEAT(x'01', {_SIZE}), x'FE')",
    "json": f"JSON_OBJECT('a', REPEAT('j', {_SIZE}), 'b', 1.5)",
}


@pytest.mark.parametrize("sql", list(_VALUES))
def test_a_value_of_20_mb_is_the_same_by_either_way(mysql_address: MySqlAddress, database: str, sql: str) -> None:
    both = Both(mysql_address, database)
    with closing(both.connection), closing(Source(mysql_address, database)) as source:
        both.run(f"CREATE TABLE t (id INT PRIMARY KEY, v {sql})")
        start = source.here()
        both.run(f"INSERT INTO t VALUES (1, {_VALUES[sql]}), (2, NULL)")
        end = source.here()
        shape, selected = both.by_select("id")
        with source.tail(start) as tail:
            tail.advance(start, 1 << 40, 1 << 40, (end.file, end.pos), PATIENCE_SECONDS)
            events = rows_of(tail.slices(start, end, 1))
        charsets = charsets_of(both.connection)
    column = by_tail(events, charsets)
    assert pc.binary_length(column).to_pylist()[0] > _SIZE
    assert column.equals(selected[1])
    assert row_bytes(shape, selected) == row_bytes(shape, [selected[0], column])


def by_tail(events: list[tuple[str, int, bytes, bytes]], charsets: dict[int, str]) -> Any:
    """The column v of all events."""
    parts = []
    for _, _, map_body, body in events:
        kinds = np.array([WRITE[1]], np.uint8)
        images = decode_rows(body, np.array([0]), np.array([len(body)]), kinds, parse_table_map(map_body, charsets))
        parts.append(images.columns[1])
    return pa.concat_arrays(parts)
