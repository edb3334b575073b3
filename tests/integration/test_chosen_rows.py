"""Tests of snapshots of rows that a signal chooses: listed keys, ranges, slices by another column, and samples."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pymysql.cursors import Cursor

from incsnap.checkpoint.files import Files
from incsnap.config.servers import MySqlSettings
from incsnap.config.settings import Settings
from incsnap.errors import ServerUnreachable
from incsnap.kafka import keys_topic
from incsnap.kafka.announcements import StartFacts
from incsnap.kafka.client_settings import ClientSettings
from incsnap.mysql.watermarks import high_watermark
from incsnap.planner import key_sources
from incsnap.tables import TableId
from incsnap.tasks import chunk as chunk_task
from incsnap.verify import signal_way
from incsnap.verify.allowance import Allowance
from incsnap.verify.live_job import LiveJob
from incsnap.verify.repair import TableRepair
from incsnap.verify.signal_way import SignalWay
from lab.addresses import MySqlAddress
from lab.object_store import ObjectStore
from signals import send
from tests.support.planned_job import MakeJob, PlannedJob, Sent, planned_jobs, settings_of

pytestmark = pytest.mark.servers

_ROWS = 300
_PLAIN_JSON = {
    f"{side}__converter{more}": value
    for side in ("key", "value")
    for more, value in (("", "JsonConverter"), ("__schemas__enable", "false"))
}


#: Columns of keys: of each its type and values.
_KEY_COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "i": ("BIGINT UNSIGNED", [18446744073709551615, 0, 7]),
    "d": ("DECIMAL(12,3)", ["-1.500", "0.000", "123456789.123"]),
    "wide": ("DECIMAL(65,30)", ["-12345678901234567890123456789012345.123456789012345678901234567891", "0.1", "0"]),
    "whole": ("DECIMAL(40,0)", ["1234567890123456789012345678901234567891"]),
    "e": ("ENUM('small','large')", ["small", "large", "small"]),
    "b": ("VARBINARY(8)", [b"\x00\xff", b"", b"abc"]),
    "day": ("DATE", ["1999-12-31", "2026-11-27", "1970-01-01"]),
    "t": ("TIME(3)", ["-12:00:00.125", "00:00:00.000", "838:59:59.000"]),
    "dt": ("DATETIME(6)", ["2026-11-27 01:02:03.000004", "1970-01-01 00:00:00", "2038-01-20 00:00:00"]),
    "ts": ("TIMESTAMP(3)", ["2026-11-27 01:02:03.004", "2000-01-01 00:00:00", "2037-01-20 00:00:00"]),
    "y": ("YEAR", [2026, 1999, 0]),
    "bits": ("BIT(9)", [257, 0, 1]),
    "flag": ("BIT(1)", [1, 0, 1]),
    "s": ("SET('x','y')", ["x,y", "", "y"]),
    "g": ("VARCHAR(9) CHARACTER SET gbk", ["中文", "a", ""]),
    "f": ("DOUBLE", [0.1, -2.5e300, 0]),
    "single": ("FLOAT", [1.1, 123456.789, -2.5e-7, 3.4e38, 0]),
    "places": ("FLOAT(7,3)", [1.1, 1234.567, 0.001]),
    "unknown": ("ENUM('small','large')", ["small", 0]),
    "blank": ("ENUM('small','')", ["", 0]),
    "zday": ("DATE", ["0000-00-00", "2026-00-05", "2026-11-00", "0000-11-05", "2026-02-31", "2026-11-27"]),
    "zdt": (
        "DATETIME(3)",
        ["0000-00-00 00:00:00", "2026-00-00 01:02:03", "2026-02-31 00:00:00", "2026-11-27 01:02:03"],
    ),
    "zts": ("TIMESTAMP", ["0000-00-00 00:00:00", "2026-11-27 01:02:03"]),
}


@pytest.fixture
def cursor(cursor: Cursor) -> Cursor:
    cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), at DATETIME, KEY by_at (at))")
    rows = [(row, f"v{row}", f"2026-01-{1 + row // 20:02d} 00:00:00") for row in range(_ROWS)]
    cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows)
    return cursor


@pytest.fixture
def make_settings(
    mysql_address: MySqlAddress, kafka_address: str, topic_prefix: str, database: str, tmp_path: Path
) -> Callable[..., Settings]:
    files = {
        "signal__enabled__channels": "file",
        "signal__file": str(tmp_path / "signals"),
        "notification__enabled__channels": "sink",
        "notification__sink__topic__name": "notes",
    }
    return partial(settings_of, mysql_address, kafka_address, topic_prefix, database, **files)


@pytest.fixture
def make_job(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[MakeJob]:
    with planned_jobs(make_settings, tmp_path) as make:
        yield make


def ask(job: PlannedJob, table: str, **chosen: Any) -> None:
    data = {
        **send.snapshot_data([table]),
        **{f"incsnap-{name.replace('_', '-')}": value for name, value in chosen.items()},
    }
    send.to_file(job.settings.signals.file, "chosen", "execute-snapshot", data)


def to_end(job: PlannedJob) -> Mapping[str, Any]:
    """Run batches to the end of one more snapshot. Return the additional data of TABLE_SCAN_COMPLETED."""

    def ends() -> list[Any]:
        return [each.value for each in job.of("notes") if each.value["type"] == "TABLE_SCAN_COMPLETED"]

    before = len(ends())
    job.batches_until(lambda: len(ends()) > before and not job.offset.snapshot.active, "end of the snapshot")
    return dict(ends()[-1]["additional_data"])


def read(job: PlannedJob, topic: str, column: str = "id") -> list[Any]:
    return [each.value["after"][column] for each in job.of(topic) if each.value and each.value["op"] == "r"]


def deleted(job: PlannedJob, topic: str) -> list[Sent]:
    return [each for each in job.of(topic) if each.value is None or each.value["op"] == "d"]


def test_listed_keys_are_read_and_absent_ones_are_counted(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job()
    ask(job, f"{database}.t", keys=[{"id": 7}, {"id": 5}, {"id": 4711}, {"id": 7}])
    end = to_end(job)
    assert sorted(read(job, f"{topic_prefix}.{database}.t")) == [5, 7]
    assert not deleted(job, f"{topic_prefix}.{database}.t")
    assert (end["status"], end["total_rows_scanned"], end["absent_keys"]) == ("SUCCEEDED", "2", "1")


def test_an_absent_key_becomes_a_deletion_and_a_tombstone(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job()
    ask(job, f"{database}.t", keys=[{"id": -3}, {"id": 4711}, {"id": 5}], absent="delete")
    to_end(job)
    topic = f"{topic_prefix}.{database}.t"
    gone = deleted(job, topic)
    assert [each.key["id"] for each in gone if each.value is None] == [
        each.key["id"] for each in gone if each.value is not None
    ]
    assert sorted(each.key["id"] for each in gone) == [-3, -3, 4711, 4711]
    for deletion, tombstone in zip(gone[::2], gone[1::2], strict=True):
        assert deletion.key == tombstone.key
        assert tombstone.value is None
        assert (deletion.value["before"], deletion.value["after"]) == (None, None)
        assert deletion.value["source"]["snapshot"] == "incremental"
        assert deletion.value["source"]["table"] == "t"


@pytest.mark.parametrize("name", ["a+b", "a$b", "a.b", "a`b"])
def test_keys_of_a_repair_are_read_from_the_table_of_that_name_alone(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    table = TableId(database, name)
    for each in (table, TableId(database, "aab")):
        cursor.execute(f"CREATE TABLE {each.sql} (id INT PRIMARY KEY)")
    cursor.execute(f"INSERT INTO {table.sql} VALUES (1)")
    job = make_job()
    facts = StartFacts("start", "job")
    monkeypatch.setattr(signal_way, "live_job", lambda *_, **__: LiveJob(facts, "file"))
    no_log: Any = None
    way = SignalWay(job.settings, "", 1.0, no_log, Allowance())

    way.ask(TableRepair(str(table), "", (b'{"id":1}', b'{"id":2}'), {}, deletes=True))
    to_end(job)

    topic = f"{topic_prefix}.{database}.{'a.b' if name == 'a.b' else 'a_b'}"
    assert read(job, topic) == [1]
    assert {each.key["id"] for each in deleted(job, topic)} == {2}
    assert not job.of(f"{topic_prefix}.{database}.aab")


def test_a_row_that_is_inserted_in_its_window_is_not_deleted(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window of an absent key is discarded by an event of the key, like any other row."""

    def behind_an_insert(connection: Any) -> tuple[str, int]:
        # Behind the SELECT and before the high watermark, so the event always lies in the window.
        cursor.execute("INSERT IGNORE INTO t VALUES (4711, 'late', NULL)")
        return high_watermark(connection)

    monkeypatch.setattr(chunk_task, "high_watermark", behind_an_insert)
    job = make_job()
    ask(job, f"{database}.t", keys=[{"id": 4711}, {"id": 4712}], absent="delete")
    to_end(job)
    job.batches_until(
        lambda: any(each.value and each.value["op"] == "c" for each in job.of(f"{topic_prefix}.{database}.t")), "insert"
    )
    assert {each.key["id"] for each in deleted(job, f"{topic_prefix}.{database}.t")} == {4712}


def test_many_keys_come_from_a_topic_and_from_files(
    cursor: Cursor,
    make_job: Any,
    database: str,
    topic_prefix: str,
    kafka_address: str,
    tmp_path: Path,
) -> None:
    from confluent_kafka import Producer

    keys = [{"id": each} for each in random.Random(1).sample(range(2 * _ROWS), _ROWS)]
    there = sorted(each["id"] for each in keys if each["id"] < _ROWS)
    topic, source = f"{topic_prefix}.{database}.t", f"keys-{topic_prefix}"
    producer = Producer({"bootstrap.servers": kafka_address})
    for number, key in enumerate(keys):  # records of three kinds: a value, a tombstone, and a key with its schema
        text = json.dumps(key if number % 3 else {"schema": {"type": "struct"}, "payload": key}).encode()
        producer.produce(source, key=text, value=text if number % 2 else None)
    producer.flush(30)
    lines, folder = tmp_path / "keys.jsonl", tmp_path / "keys"
    lines.write_text("\n".join(map(json.dumps, keys)))
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    parquet.write_table(pa.Table.from_pylist(keys), folder / "part-0.parquet")

    for chosen in ({"keys_topic": source}, {"keys_file": str(lines)}, {"keys_file": str(folder)}):
        job = make_job(incremental__snapshot__chunk__size="50")
        Path(job.settings.signals.file).unlink(missing_ok=True)
        ask(job, f"{database}.t", **chosen)
        end = to_end(job)
        assert sorted(read(job, topic)) == there
        assert int(end["absent_keys"]) == _ROWS - len(there)
        # A key is read in a window of at most the size of a chunk.
        assert max(len(each.snapshot.released) for _, each in job.batches) >= 1


def test_keys_of_a_topic_are_waited_for_while_kafka_is_away(
    cursor: Cursor,
    make_job: Any,
    database: str,
    topic_prefix: str,
    kafka_address: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from confluent_kafka import Producer

    source = f"keys-{topic_prefix}"
    producer = Producer({"bootstrap.servers": kafka_address})
    producer.produce(source, value=b'{"id":5}')
    producer.flush(30)
    monkeypatch.setattr(keys_topic, "_REQUEST_SECONDS", 0.3)
    nobody = ClientSettings("127.0.0.1:1")
    monkeypatch.setattr(key_sources, "keys_in", lambda _, topic: keys_topic.keys_in(nobody, topic))
    job = make_job()
    ask(job, f"{database}.t", keys_topic=source)
    away = f"asked 2 times: the keys cannot be read now: Kafka does not answer about the topic {source}"
    job.batches_until(lambda: away in caplog.text, "warning")
    assert job.offset.snapshot.active
    assert {each.value["type"] for each in job.of("notes")} == {"STARTED"}

    monkeypatch.undo()
    job.restart()
    end = to_end(job)
    assert (end["status"], read(job, f"{topic_prefix}.{database}.t")) == ("SUCCEEDED", [5])


def test_keys_in_a_bucket_are_waited_for_while_the_bucket_is_away(
    cursor: Cursor,
    make_job: Any,
    database: str,
    topic_prefix: str,
    bucket_folder: str,
    object_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Files(bucket_folder).write("keys.jsonl", b'{"id":5}')
    of_bucket = object_store.properties("")
    del of_bucket["checkpoint.location"]
    job = make_job(**{name.replace(".", "__"): value for name, value in of_bucket.items()})
    object_store.fail({"method": "*", "key": "keys", "times": 1000, "status": 503})
    ask(job, f"{database}.t", keys_file=f"{bucket_folder}/keys.jsonl")
    job.batches_until(lambda: f"Reading {bucket_folder}/keys.jsonl: SlowDown" in caplog.text, "warning")
    assert job.offset.snapshot.active

    object_store.fail()
    end = to_end(job)
    assert (end["status"], read(job, f"{topic_prefix}.{database}.t")) == ("SUCCEEDED", [5])


def test_a_key_whose_rows_fill_more_than_a_chunk_is_given_up_by_name_and_read_as_a_range(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may have any size. Many rows of one key are too much for a chunk of a list, and a range cuts them."""
    monkeypatch.setattr(chunk_task, "MAX_CHUNK_BYTES", 2_000)
    cursor.execute("CREATE TABLE wide (id INT PRIMARY KEY, grp INT NOT NULL, v TEXT, KEY (grp))")
    rows = [(1, 5, "x" * 9_000), (2, 6, "x"), (3, 7, "x" * 1_500), (4, 7, "x" * 1_500)]
    cursor.executemany("INSERT INTO wide VALUES (%s, %s, %s)", rows)
    job = make_job(message__key__columns=f"{database}.wide:grp")
    topic = f"{topic_prefix}.{database}.wide"

    ask(job, f"{database}.wide", keys=[{"grp": 5}, {"grp": 6}, {"grp": 7}])
    end = to_end(job)
    assert (end["status"], end["missing_keys"], sorted(read(job, topic))) == ("INCOMPLETE", '{"grp":7}', [1, 2])
    (given_up,) = [each.value["additional_data"] for each in job.of("notes") if each.value["type"] == "QUARANTINED"]
    assert given_up["first_key"] == given_up["last_key"] == '{"grp":7}'
    assert "send a signal with incsnap-from and incsnap-to, both this key" in given_up["error"]

    ask(job, f"{database}.wide", **{"from": {"grp": 7}, "to": {"grp": 7}})
    assert to_end(job)["status"] == "SUCCEEDED"
    assert sorted(read(job, topic)) == [1, 2, 3, 4]


def test_letter_case_and_trailing_blanks_make_another_key(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    cursor.execute("CREATE TABLE names (name VARCHAR(20) PRIMARY KEY, v INT) COLLATE utf8mb4_0900_ai_ci")
    cursor.execute("INSERT INTO names VALUES ('A', 1), ('b', 2), ('É', 3)")
    job = make_job()
    ask(job, f"{database}.names", keys=[{"name": each} for each in ("a", "b", "E", "É", "none")], absent="delete")
    end = to_end(job)
    topic = f"{topic_prefix}.{database}.names"
    assert sorted(read(job, topic, "name")) == ["b", "É"]
    assert {each.key["name"] for each in deleted(job, topic)} == {"a", "E", "none"}
    assert end["absent_keys"] == "3"


def test_a_row_comes_once_if_several_selects_of_a_list_find_it(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    """Four SELECTs share a long list, and an index that ignores letter case finds the row of 'A1' for 'a1' too."""
    cursor.execute("CREATE TABLE names (name VARCHAR(20) PRIMARY KEY) COLLATE utf8mb4_0900_ai_ci")
    present, absent = ([f"{letter}{row}" for row in range(400)] for letter in "Aa")
    cursor.executemany("INSERT INTO names VALUES (%s)", [(each,) for each in present])
    job = make_job()
    ask(job, f"{database}.names", keys=[{"name": each} for each in (*present, *absent)], absent="delete")
    end = to_end(job)
    topic = f"{topic_prefix}.{database}.names"
    assert sorted(read(job, topic, "name")) == sorted(present)
    assert sorted(each.key["name"] for each in deleted(job, topic)) == sorted([*absent, *absent])
    assert (end["absent_keys"], end["total_rows_scanned"]) == ("400", "400")


def test_a_long_list_is_read_by_one_connection_where_the_server_gives_no_others(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_this_thread = chunk_task._session

    def session(settings: MySqlSettings) -> Any:
        if threading.current_thread().name.startswith("incsnap-keys"):
            raise ServerUnreachable("Too many connections")
        return of_this_thread(settings)

    monkeypatch.setattr(chunk_task, "_session", session)
    job = make_job(incremental__snapshot__chunk__size="1000")
    ask(job, f"{database}.t", keys=[{"id": each} for each in range(2 * _ROWS)])
    end = to_end(job)
    assert sorted(read(job, f"{topic_prefix}.{database}.t")) == list(range(_ROWS))
    assert end["absent_keys"] == str(_ROWS)


def test_a_row_is_found_by_its_record_key_whatever_the_bytes_of_the_text(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    """Several codes of cp932 are one character, and cp1251 shows a byte without a character as a question mark."""
    cursor.execute("CREATE TABLE one (name VARCHAR(20) CHARACTER SET cp932 PRIMARY KEY)")
    cursor.execute("CREATE TABLE two (name VARCHAR(20) CHARACTER SET cp1251, id INT, PRIMARY KEY (name, id))")
    cursor.execute("INSERT INTO one VALUES (x'879c'), (x'879b'), (x'61'), (x'81e0')")
    cursor.execute("INSERT INTO two VALUES (x'6198', 1), (x'613f', 2), (x'62', 1)")
    asked = {
        "one": [{"name": each} for each in ("∪", "∩", "a", "b")],
        "two": [{"name": name, "id": id_} for name, id_ in (("a?", 1), ("a?", 2), ("a?", 3), ("b", 1))],
    }
    gone, sent = {}, {}
    for table, keys in asked.items():
        job = make_job()
        Path(job.settings.signals.file).unlink(missing_ok=True)
        ask(job, f"{database}.{table}", keys=keys, absent="delete")
        to_end(job)
        topic = f"{topic_prefix}.{database}.{table}"
        sent[table] = sorted(tuple(each.key.values()) for each in job.of(topic) if each not in deleted(job, topic))
        gone[table] = {tuple(each.key.values()) for each in deleted(job, topic)}
    assert gone == {"one": {("b",)}, "two": {("a?", 3)}}
    assert sent == {"one": [("a",), ("∩",), ("∪",)], "two": [("a?", 1), ("a?", 2), ("b", 1)]}


@pytest.mark.parametrize(("charset", "held"), [("ascii", "a"), ("latin1", "é"), ("utf8mb3", "\ufffd"), ("cp1251", "ж")])
def test_a_key_with_a_character_that_the_column_cannot_hold_is_absent(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, charset: str, held: str
) -> None:
    cursor.execute(f"CREATE TABLE names (name VARCHAR(20) CHARACTER SET {charset} PRIMARY KEY)")
    cursor.execute("INSERT INTO names VALUES (%s), ('?')", (held,))
    job = make_job()
    ask(job, f"{database}.names", keys=[{"name": each} for each in (held, "😀", "ab😀")], absent="delete")
    end = to_end(job)
    topic = f"{topic_prefix}.{database}.names"
    assert read(job, topic, "name") == [held]
    assert {each.key["name"] for each in deleted(job, topic)} == {"😀", "ab😀"}
    assert end["absent_keys"] == "2"


def test_two_spellings_of_a_key_are_one_key(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, tmp_path: Path
) -> None:
    cursor.execute("CREATE TABLE pair (a INT, b DOUBLE, PRIMARY KEY (a, b))")
    cursor.execute("INSERT INTO pair VALUES (5, 6)")
    file = tmp_path / "keys"
    file.write_text('{"a":1,"b":2}\n{"b":2.0,"a":1}\n{"b":2e0,"a":1}\n{"b":6,"a":5}\n{"a":5,"b":6.0}')
    job = make_job(incremental__snapshot__chunk__size="1")
    ask(job, f"{database}.pair", keys_file=str(file), absent="delete")
    end = to_end(job)
    topic = f"{topic_prefix}.{database}.pair"
    assert (end["absent_keys"], end["total_rows_scanned"]) == ("1", "1")
    assert [each.value and each.value["op"] for each in deleted(job, topic)] == ["d", None]
    assert read(job, topic, "a") == [5]


def test_a_key_with_the_text_of_another_table_is_refused(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    routed = {
        "transforms": "one",
        "transforms__one__type": "ByLogicalTableRouter",
        "transforms__one__topic__regex": ".*[.]t",
        "transforms__one__topic__replacement": "all",
    }
    job = make_job(**routed)
    own = {"id": 9999, "__dbz__physicalTableIdentifier": f"{topic_prefix}.{database}.t"}
    ask(job, f"{database}.t", keys=[own], absent="delete")
    assert to_end(job)["status"] == "SUCCEEDED"
    assert [each.key for each in job.of("all")] == [own, own]
    ask(job, f"{database}.t", keys=[own, {**own, "__dbz__physicalTableIdentifier": "another"}], absent="delete")
    end = to_end(job)
    assert end["status"] == "SKIPPED"
    assert "is that of another table: __dbz__physicalTableIdentifier of this one is" in end["reason"]


def test_keys_of_all_types_are_those_of_the_records(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, tmp_path: Path
) -> None:
    """A consumer's keys find their rows: the keys of a whole snapshot are asked for again."""
    cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")  # zero dates too, and the error value of an ENUM
    modes: list[dict[str, str]] = [
        {},
        {"decimal__handling__mode": "string", "time__precision__mode": "microseconds", "binary__handling__mode": "hex"},
        {"time__precision__mode": "isostring", "binary__handling__mode": "base64-url-safe"},
        {"time__precision__mode": "nanoseconds", "bigint__unsigned__handling__mode": "precise"},
    ]
    for name, (kind, values) in _KEY_COLUMNS.items():
        cursor.execute(f"CREATE TABLE of_{name} ({name} {kind} NOT NULL, v INT, PRIMARY KEY ({name}))")
        unique = list(dict.fromkeys(values))
        cursor.executemany(f"INSERT INTO of_{name} VALUES (%s, 1)", [(each,) for each in unique])
    for mode in modes:
        (tmp_path / "signals").unlink(missing_ok=True)
        job = make_job(key__converter__schemas__enable="false", key__converter="JsonConverter", **mode)
        for name, (kind, _) in _KEY_COLUMNS.items():
            if kind.startswith("TIME(") and mode.get("time__precision__mode") == "isostring":
                continue  # no time of day
            topic = f"{topic_prefix}.{database}.of_{name}"
            ask(job, f"{database}.of_{name}")
            to_end(job)
            keys = [each.key for each in job.of(topic)]
            assert keys
            ask(job, f"{database}.of_{name}", keys=keys, absent="count")
            end = to_end(job)
            assert end["absent_keys"] == "0", (name, mode, keys, end)
            assert sorted(map(str, keys)) == sorted(str(each.key) for each in job.of(topic)[len(keys) :]), (name, mode)


def test_keys_of_two_columns_are_found_whatever_the_type_of_one(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    """MySQL compares values in a row constructor by other rules: an ENUM with a number, for example."""
    cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
    for name, (kind, values) in _KEY_COLUMNS.items():
        cursor.execute(f"CREATE TABLE two_{name} ({name} {kind} NOT NULL, id INT, PRIMARY KEY ({name}, id))")
        rows = [(value, row) for value in dict.fromkeys(values) for row in (1, 2)]
        cursor.executemany(f"INSERT INTO two_{name} VALUES (%s, %s)", rows)
    job = make_job(key__converter__schemas__enable="false", key__converter="JsonConverter")
    for name in _KEY_COLUMNS:
        table = f"two_{name}"
        topic = f"{topic_prefix}.{database}.{table}"
        ask(job, f"{database}.{table}")
        to_end(job)
        keys = [each.key for each in job.of(topic)]
        assert keys
        absent = {**keys[0], "id": 3}
        ask(job, f"{database}.{table}", keys=[*keys, absent])
        end = to_end(job)
        assert end["absent_keys"] == "1", (name, keys, end)
        assert sorted(map(str, keys)) == sorted(str(each.key) for each in job.of(topic)[len(keys) :]), name


def test_a_key_of_another_form_is_refused_with_the_form_of_the_record(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job()
    for keys, reason in (
        ([{"id": 5}, {"id": "7"}], 'the key {"id":"7"} is not as the record\'s key has it'),
        ([{"id": 5, "name": "v5"}], "has not the columns id"),
        ([{"id": None}], "has no value for id"),
        ([{"id": 2.5}], "is not as the record's key has it"),
    ):
        ask(job, f"{database}.t", keys=keys)
        end = to_end(job)
        assert end["status"] == "SKIPPED"
        assert reason in end["reason"]
    assert not job.of(f"{topic_prefix}.{database}.t")


def test_a_range_of_the_key_is_read_and_nothing_beside_it(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job(incremental__snapshot__chunk__size="10")
    topic = f"{topic_prefix}.{database}.t"
    for limits, expected in (
        ({"from": {"id": 100}, "to": {"id": 149}}, range(100, 150)),
        ({"from": {"id": 290}}, range(290, _ROWS)),
        ({"to": {"id": 5}}, range(6)),
        ({"from": {"id": 5000}}, range(0)),
        ({"from": {"at": "2026-01-03 00:00:00"}, "to": {"at": "2026-01-04 00:00:00"}}, range(40, 80)),
        ({"from": {"at": 1768953600000}}, range(20 * 20, _ROWS)),
    ):
        before = len(job.of(topic))
        ask(job, f"{database}.t", **limits)
        to_end(job)
        ids = [each.value["after"]["id"] for each in job.of(topic)[before:]]
        assert sorted(ids) == list(expected), limits


@pytest.mark.parametrize("value", ["yesterday", ""])
def test_a_limit_that_is_no_time_is_refused(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, value: str
) -> None:
    job = make_job()
    ask(job, f"{database}.t", **{"from": {"at": value}})
    end = to_end(job)
    assert end["status"] == "SKIPPED"
    assert f"at: {value} is not a value of the column" in end["reason"]
    assert not job.of(f"{topic_prefix}.{database}.t")


def test_a_range_of_a_column_without_an_index_is_refused(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job()
    limits = {"from": {"name": "v29"}, "to": {"name": "v299"}}
    ask(job, f"{database}.t", **limits)
    assert "no index begins with name" in to_end(job)["reason"]
    assert not job.of(f"{topic_prefix}.{database}.t")


def test_a_range_of_a_column_without_an_index_is_read_by_a_walk(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    cursor.execute(f"SELECT id FROM {database}.t WHERE name BETWEEN 'v29' AND 'v299'")
    expected = sorted(row[0] for row in cursor.fetchall())
    job = make_job()
    ask(job, f"{database}.t", **{"from": {"name": "v29"}, "to": {"name": "v299"}}, whole_table=True)
    assert to_end(job)["status"] == "SUCCEEDED"
    assert sorted(read(job, f"{topic_prefix}.{database}.t")) == expected != []


def test_keys_of_columns_without_an_index_need_a_walk(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    """The record's key has other columns than the primary key."""
    job = make_job(message__key__columns=f"{database}.t:name")
    ask(job, f"{database}.t", keys=[{"name": "v29"}, {"name": "nobody"}])
    assert "no index begins with the key's columns name" in to_end(job)["reason"]
    ask(job, f"{database}.t", keys=[{"name": "v29"}, {"name": "nobody"}], whole_table=True)
    assert to_end(job)["absent_keys"] == "1"
    assert read(job, f"{topic_prefix}.{database}.t") == [29]


def test_a_sample_has_about_its_share_and_the_same_rows_each_time(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job(incremental__snapshot__chunk__size="40")
    topic = f"{topic_prefix}.{database}.t"
    samples = []
    for seed in (1, 1, 2):
        before = len(job.of(topic))
        ask(job, f"{database}.t", sample="1/10", seed=seed)
        to_end(job)
        samples.append(sorted(each.value["after"]["id"] for each in job.of(topic)[before:]))
    assert samples[0] == samples[1] != samples[2]
    assert all(10 <= len(each) <= 60 for each in samples)


def test_keys_go_on_after_a_restart_and_beside_a_condition_nothing_is_absent(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    job = make_job(incremental__snapshot__chunk__size="20", incsnap__snapshot__throttle__rows__per__second="100000")
    ask(job, f"{database}.t", keys=[{"id": each} for each in range(0, 2 * _ROWS, 2)], absent="delete")
    topic = f"{topic_prefix}.{database}.t"
    job.batches_until(lambda: len(read(job, topic)) > 30, "first rows")
    assert job.offset.snapshot.active
    job.restart()
    to_end(job)
    assert sorted(set(read(job, topic))) == list(range(0, _ROWS, 2))
    assert {each.key["id"] for each in deleted(job, topic)} == set(range(_ROWS, 2 * _ROWS, 2))

    gone = len(deleted(job, topic))
    data = send.snapshot_data([f"{database}.t"], [(f"{database}.t", "id < 10")])
    data |= {"incsnap-keys": [{"id": 4}, {"id": 20}, {"id": 4711}], "incsnap-absent": "delete"}
    send.to_file(job.settings.signals.file, "condition", "execute-snapshot", data)
    end = to_end(job)
    assert (end["absent_keys"], end["total_rows_scanned"]) == ("0", "1")
    assert len(deleted(job, topic)) == gone


def test_a_key_whose_row_an_override_leaves_out_is_not_absent(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str
) -> None:
    """The override limits the snapshot of the start. A list of keys is looked up in the table itself."""
    override = f"snapshot.select.statement.overrides.{database}.t"
    job = make_job(
        snapshot__mode="initial",
        snapshot__select__statement__overrides=f"{database}.t",
        **{override: f"SELECT * FROM {database}.t WHERE id < 10"},
    )
    topic = f"{topic_prefix}.{database}.t"
    to_end(job)
    assert sorted(read(job, topic)) == list(range(10))

    ask(job, f"{database}.t", keys=[{"id": 4}, {"id": 20}, {"id": 4711}], absent="delete")
    end = to_end(job)
    assert (end["absent_keys"], end["total_rows_scanned"]) == ("1", "2")
    assert sorted(read(job, topic)[10:]) == [4, 20]
    assert {each.key["id"] for each in deleted(job, topic)} == {4711}


@pytest.mark.parametrize(
    ("change", "reason"),
    [("RENAME COLUMN id TO number", "has not the columns number"), ("MODIFY id VARCHAR(20)", "id: 0 is no str")],
)
def test_a_table_ends_if_its_key_gets_another_form_beside_a_list(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, change: str, reason: str
) -> None:
    job = make_job(incremental__snapshot__chunk__size="20", incsnap__snapshot__throttle__rows__per__second="50")
    ask(job, f"{database}.t", keys=[{"id": each} for each in range(_ROWS)])
    job.batches_until(lambda: len(read(job, f"{topic_prefix}.{database}.t")) > 30, "first rows")
    assert job.offset.snapshot.active
    cursor.execute(f"ALTER TABLE t {change}")
    end = to_end(job)
    assert end["status"] == "SKIPPED"
    assert reason in end["reason"]


def test_deletions_are_refused_where_a_key_does_not_tell_the_row(
    cursor: Cursor, make_job: Any, database: str, tmp_path: Path
) -> None:
    cursor.execute("CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20))")
    cursor.execute("CREATE TABLE clock (at TIME PRIMARY KEY)")
    router = {
        "transforms": "one",
        "transforms__one__type": "RegexRouter",
        "transforms__one__regex": ".*[.][tu]",
        "transforms__one__replacement": "all",
    }
    logical = {
        "transforms": "one",
        "transforms__one__type": "ByLogicalTableRouter",
        "transforms__one__topic__regex": ".*[.][tu]",
        "transforms__one__topic__replacement": "all",
    }
    # Both tables have the text "same".
    same_text = {
        **logical,
        "transforms__one__key__field__regex": "(.*)[.](.*)",
        "transforms__one__key__field__replacement": "same",
    }
    rewrite = {
        "transforms": "un",
        "transforms__un__type": "ExtractNewRecordState",
        "transforms__un__delete__tombstone__handling__mode": "rewrite",
    }
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({"message__key__columns": f"{database}.t:at"}, "message.key.columns"),
        (router, f"{database}.u has the same topic all"),
        ({**logical, "transforms__one__key__enforce__uniqueness": "false"}, f"{database}.u has the same topic all"),
        (same_text, f"{database}.u has the same topic all"),
        ({"skipped__operations": "d"}, "skipped.operations leaves deletions out"),
        (rewrite, "delete.tombstone.handling.mode=rewrite"),
    )
    for more, reason in cases:
        (tmp_path / "signals").unlink(missing_ok=True)
        job = make_job(**more)
        key = {"at": 0} if "message__key__columns" in more else {"id": 9999}
        ask(job, f"{database}.t", keys=[key], absent="delete")
        end = to_end(job)
        assert end["status"] == "SKIPPED"
        assert reason in end["reason"]
    (tmp_path / "signals").unlink()
    job = make_job(time__precision__mode="isostring")  # 00:00:00 and 24:00:00 are both 00:00:00Z
    ask(job, f"{database}.clock", keys=[{"at": "00:00:00Z"}], absent="delete")
    assert "the settings round a column of the key" in to_end(job)["reason"]
    (tmp_path / "signals").unlink()
    job = make_job(**logical)
    ask(job, f"{database}.t", keys=[{"id": 9999}], absent="delete")
    assert (to_end(job)["status"], len(deleted(job, "all"))) == ("SUCCEEDED", 2)


@pytest.mark.parametrize(
    ("restarts", "reason"), [(False, "u has the same topic all"), (True, "delete.tombstone.handling.mode=rewrite")]
)
def test_deletions_end_when_a_new_table_or_new_settings_forbid_them(
    cursor: Cursor,
    make_job: MakeJob,
    make_settings: Callable[..., Settings],
    database: str,
    restarts: bool,
    reason: str,
) -> None:
    options = {
        "transforms": "one",
        "transforms__one__type": "RegexRouter",
        "transforms__one__regex": ".*[.][tu]",
        "transforms__one__replacement": "all",
        "incremental__snapshot__chunk__size": "20",
        "incsnap__snapshot__throttle__rows__per__second": "50",
    }
    rewrite = {
        "transforms": "un,one",
        "transforms__un__type": "ExtractNewRecordState",
        "transforms__un__delete__tombstone__handling__mode": "rewrite",
    }
    job = make_job(**options)
    ask(job, f"{database}.t", keys=[{"id": each} for each in range(2 * _ROWS)], absent="delete")
    job.batches_until(lambda: len(read(job, "all")) > 30, "first rows")
    assert job.offset.snapshot.active
    if restarts:
        job.restart(make_settings(**{**options, **rewrite}), run="second")
    else:
        cursor.execute("CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20))")
        cursor.execute("INSERT INTO u VALUES (%s, 'of u')", (2 * _ROWS - 1,))
    end = to_end(job)
    assert (end["status"], [each for each in job.of("all") if each.value is None]) == ("SKIPPED", [])
    assert reason in end["reason"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"tombstones__on__delete": "false"}, ["d"]),
        # The extended headers of a connector's file.
        ({"connector__class": "MySqlConnector", "extended__headers__enabled": "true", **_PLAIN_JSON}, ["d", None]),
        (
            {"transforms": "un", "transforms__un__type": "ExtractNewRecordState", "transforms__un__add__headers": "op"},
            [None],
        ),
    ],
)
def test_an_absent_key_has_the_records_of_a_deletion(
    cursor: Cursor, make_job: Any, database: str, topic_prefix: str, more: dict[str, str], expected: list[str | None]
) -> None:
    job = make_job(**more)
    ask(job, f"{database}.t", keys=[{"id": 9999}], absent="delete")
    to_end(job)
    sent = job.of(f"{topic_prefix}.{database}.t")
    ops = [each.value and each.value.get("payload", each.value)["op"] for each in sent]
    assert ops == expected
