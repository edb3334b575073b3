"""Tables of every type with a few rows each: written together they give what each gives by itself."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incsnap.config.settings import Settings
from incsnap.envelope.envelope_settings import FormatChoice
from incsnap.tasks import blocks, formats, small_tables
from incsnap.tasks.partitions import BatchPart, SlicePart
from incsnap.tasks.slice_rows import slice_rows
from incsnap.transforms.chain import Step
from incsnap.transforms.record_spec import EnvelopeField
from incsnap.transforms.unwrap import ExtractNewRecordState
from incsnap.types.modes import Modes
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.all_modes import ALL_MODES
from tests.support.mysql_versions import has_vector
from tests.support.numbered_schemas import NumberedSchemas
from tests.support.planned_job import PlannedJob, read_to_the_end, settings_of
from tests.support.random_values import CASES
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.servers

_TABLES, _COLUMNS = 40, 8
_ADDED = (EnvelopeField("", "op", "__op"), EnvelopeField("source", "table", "__table"))
_CHOICES = {
    "json": FormatChoice(),
    "schemas": FormatChoice(schemas=True),
    "avro": FormatChoice("avro"),
    "protobuf": FormatChoice("protobuf", optional=True),
}


def _write(address: MySqlAddress, database: str, source: random.Random) -> int:
    """Write the tables and their rows. Return the number of rows events."""
    events = 0
    connection = connect(address, init_command="SET time_zone='+00:00', sql_mode='STRICT_TRANS_TABLES'")
    with connection, connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        known = sorted(name for name in CASES if name != "vector" or has_vector(connection))
        for table in range(_TABLES):
            names = source.sample(known, _COLUMNS)
            key = "PRIMARY KEY" if table % 5 else "NOT NULL"
            cursor.execute(f"CREATE TABLE t{table} (id int {key}, {', '.join(f'`{n}` {CASES[n].sql}' for n in names)})")
            insert = f"INSERT INTO t{table} VALUES ({', '.join(['%s'] * (_COLUMNS + 1))})"
            cursor.execute("BEGIN")
            for row in range(source.randint(1, 4)):
                values = [None if source.random() < 0.2 else CASES[name].value(source) for name in names]
                events += cursor.execute(insert, (row, *values))
            events += cursor.execute(f"UPDATE t{table} SET `{names[0]}` = NULL WHERE id < 2") > 0
            if table % 7 == 1:
                events += cursor.execute(f"UPDATE t{table} SET id = 10 WHERE id = 0")
            events += cursor.execute(f"DELETE FROM t{table} WHERE id = 1")
            cursor.execute("COMMIT")
    return events


def _slices(job: PlannedJob, rows_of: Callable[[SlicePart], int], rows: int) -> list[SlicePart]:
    slice_parts: list[SlicePart] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(map(rows_of, slice_parts)) < rows:
        assert time.monotonic() < deadline
        end = job.planner.plan(job.offset)
        parts: list[BatchPart] = job.planner.parts(job.offset, end) if end != job.offset else []
        slice_parts += [part for part in parts if isinstance(part, SlicePart)]
        job.planner.committed(end)
        job.offset = end
    return slice_parts


def _records(parts: list[SlicePart], settings: Settings) -> tuple[dict[tuple[int, str, str], list[Any]], Counter[str]]:
    by_table: dict[tuple[int, str, str], list[Any]] = {}
    kinds: Counter[str] = Counter()
    for part in parts:
        for _, bucket, _, kind, topic, table, block in slice_rows(part, settings, 5):
            for records in blocks.decode(block):
                runs = blocks.runs_of(kind, topic, table, records)
                kinds[kind] += len(runs)
                for run, of_table in blocks.by_run(records, runs):
                    by_table.setdefault((bucket, run.topic, run.table), []).extend(of_table.to_pylist())
    return by_table, kinds


def test_small_tables_of_every_type_are_encoded_as_large_ones(
    mysql_address: MySqlAddress,
    kafka_address: str,
    database: str,
    topic_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = settings_of(
        mysql_address,
        kafka_address,
        topic_prefix,
        database,
        include__schema__changes="false",
        schema__name__adjustment__mode="avro",
    )
    registry = NumberedSchemas()
    monkeypatch.setattr(formats, "_registry", lambda url, client, kind: registry)
    # Tables are written together only within a batch.
    read_to_the_end(monkeypatch, mysql_address)
    job = PlannedJob(settings, str(tmp_path))
    try:
        events = _write(mysql_address, database, random.Random(4))
        parts = _slices(job, lambda part: int(part.slice.is_rows.sum()), events)
    finally:
        job.close()

    def variant(choice: FormatChoice, modes: Modes, **more: object) -> Settings:
        chosen = settings.formats.model_copy(update={"key": choice, "value": choice})
        return settings.model_copy(update={"formats": chosen, "modes": modes, **more})

    plain: dict[str, object] = {}
    unwrapped: dict[str, object] = {
        "transforms": (Step(ExtractNewRecordState("rewrite-with-tombstone", _ADDED, _ADDED)),)
    }
    counted: dict[str, object] = {"transaction_metadata": True, **unwrapped}
    skipping: dict[str, object] = {"skip_unchanged": True}
    variants: list[tuple[str, Modes, dict[str, object]]] = [
        *((name, modes, more) for name in _CHOICES for modes in ALL_MODES for more in (plain, unwrapped)),
        *((name, Modes(), more) for name in _CHOICES for more in (counted, skipping)),
    ]
    for name, modes, more in variants:
        chosen = variant(_CHOICES[name], modes, **more)
        together, kinds = _records(parts, chosen)
        with monkeypatch.context() as patch:
            patch.setattr(small_tables, "_MOST_IMAGES", 0)
            alone, others = _records(parts, chosen)
        assert blocks.TABLES not in others
        assert together == alone, (name, modes, more)
        assert modes != Modes() or kinds[blocks.TABLES] >= _TABLES // 2
