"""Keys whose DECIMAL has more digits than a DOUBLE, on real servers: a signal and verify mean the row of each key."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from pymysql.cursors import Cursor

from incsnap.mysql import catalog
from incsnap.tables import TableId
from incsnap.tasks.formats import format_of
from incsnap.verify.record_reading import RecordForm, for_table
from incsnap.verify.table_side import VerifiedTable, owned_keys, read_by_keys
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from signals import send
from tests.support.planned_job import planned_jobs, settings_of

pytestmark = pytest.mark.servers

OWN, NEXT, ABSENT = (f"12345678901234567890.123456789{digit}" for digit in (1, 2, 3))
NUMERIC = {
    f"{side}__converter{more}": value
    for side in ("key", "value")
    for more, value in (("", "JsonConverter"), ("__schemas__enable", "false"), ("__decimal__format", "numeric"))
}


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute("CREATE TABLE t (n DECIMAL(30,10) PRIMARY KEY, name VARCHAR(20))")
    cursor.execute(f"INSERT INTO t VALUES ({OWN}, 'own'), ({NEXT}, 'next')")
    return cursor


def test_a_signal_reads_and_deletes_the_keys_that_it_names(
    cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> None:
    file = {"signal__enabled__channels": "file", "signal__file": str(tmp_path / "signals")}
    settings = partial(settings_of, mysql_address, kafka_address, topic_prefix, database, **file, **NUMERIC)
    with planned_jobs(settings, tmp_path) as make:
        job = make()
        keys = [{"n": Decimal(number)} for number in (OWN, ABSENT)]
        data = send.snapshot_data([f"{database}.t"], chosen={"incsnap-keys": keys, "incsnap-absent": "delete"})
        send.to_file(job.settings.signals.file, "chosen", "execute-snapshot", data)
        topic = f"{topic_prefix}.{database}.t"
        job.batches_until(lambda: bool(job.of(topic)) and not job.offset.snapshot.active, "end of the snapshot")
        values = [each.value for each in job.of(topic)]

    assert [value["after"]["name"] for value in values if value and value["op"] == "r"] == ["own"]
    assert [value["op"] if value else None for value in values if not value or value["op"] != "r"] == ["d", None]


def test_verify_finds_the_row_of_a_key(
    cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str
) -> None:
    settings = for_table(settings_of(mysql_address, kafka_address, topic_prefix, database, **NUMERIC))
    table = TableId(database, "t")
    keys = [("topic", f'{{"n":{number}}}'.encode()) for number in (OWN, ABSENT)]
    with connect(mysql_address) as connection:
        shape = catalog.shapes_of(connection, [table])[table]
        form = RecordForm.of(format_of(settings, shape), settings.formats)
        verified = VerifiedTable(shape, "topic", 1, form)
        rows = read_by_keys(connection, settings, verified, keys)

    assert [(key, row) for key, row, _ in rows] == [(keys[0], f'{{"n":{OWN},"name":"own"}}'.encode())]
    assert owned_keys(settings, verified, [key for _, key in keys]) == {key for _, key in keys}
