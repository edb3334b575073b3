"""Samples of verify's table side on a real server: the rows are those whose keys are in the sample."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from incsnap.config.load import from_properties
from incsnap.mysql import catalog
from incsnap.planner.key_ranges import ranges_of
from incsnap.tables import TableId
from incsnap.tasks.formats import format_of
from incsnap.verify import table_side
from incsnap.verify.record_reading import RecordForm, for_table
from incsnap.verify.sampling import Sample
from incsnap.verify.table_side import VerifiedTable, read_range
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.properties import QUIET

pytestmark = pytest.mark.servers

#: Columns of the key, an expression of row number n for each, and whether the server can write the keys.
KEYS = {
    "whole numbers": ("a INT ZEROFILL, b BIGINT", "n, -n", True),
    "a large number": ("a BIGINT UNSIGNED", "18446744073709551615 - n", False),
    "texts": ("a VARCHAR(40) COLLATE utf8mb4_0900_ai_ci", "CONCAT('é\"', n)", False),
    "bytes": ("a VARBINARY(32)", "UNHEX(SHA2(n, 256))", False),
    "a date and a number": ("a DATE, b SMALLINT", "'2024-01-01' + INTERVAL n DAY, n", False),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("record_key", ["", "other"])
def test_a_sample_has_the_rows_whose_keys_are_in_it(
    key: str, record_key: str, mysql_address: MySqlAddress, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, values, is_whole = KEYS[key]
    names = [column.split()[0] for column in columns.split(",")]
    table = TableId(database, "sampled")
    monkeypatch.setattr(table_side, "_KEYS_TOGETHER", 50)
    given = {**QUIET, **mysql_address.properties(), "table.include.list": str(table).replace(".", "\\.")}
    if record_key:
        given["message.key.columns"] = f"{table}:{record_key}"
    settings = for_table(from_properties(given).settings)
    with connect(mysql_address) as connection, connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {table.sql} ({columns}, other VARCHAR(10), PRIMARY KEY ({', '.join(names)}))"
            f" SELECT {values.replace(', ', ' AS a, ', 1) if len(names) > 1 else values + ' AS a'}"
            f"{' AS b' if len(names) > 1 else ''}, CONCAT('x', n % 70) AS other FROM"
            " (SELECT a.n + 10 * b.n + 100 * c.n AS n FROM"
            + ", ".join(f" (SELECT 0 AS n {' '.join(f'UNION SELECT {digit}' for digit in range(1, 10))}) {each}"
                        for each in "abc") + ") numbers"
        )  # fmt: skip
        shape = catalog.shapes_of(connection, [table])[table]
        format_ = format_of(settings, shape)
        verified = VerifiedTable(shape, "topic", 1, RecordForm.of(format_, settings.formats))
        parts = ranges_of(connection, settings, table, 3)

    def rows(sample: Sample) -> list[tuple[Any, ...]]:
        batches = (batch for part in parts for batch in read_range(settings, verified, part, sample=sample))
        return [tuple(row.values()) for batch in batches for row in batch.select(["key", "row"]).to_pylist()]

    whole = rows(Sample())
    samples = [rows(Sample(4, number)) for number in range(4)]
    assert (len(whole), sorted(row for each in samples for row in each)) == (1_000, sorted(whole))
    for number, each in enumerate(samples):
        assert Sample(4, number).has(pa_keys(each)).all()
        assert 50 < len(each) < 500
    assert (Sample(4).condition(format_) is not None) is (is_whole and not record_key)


def pa_keys(rows: list[tuple[Any, ...]]) -> Any:
    """Return the keys of rows as a column."""
    return pa.array([row[0] for row in rows], pa.binary())
