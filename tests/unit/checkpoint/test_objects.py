"""Files in a bucket of a real S3 server: whole or absent, and what each of them costs in requests."""

from __future__ import annotations

import pickle
import secrets
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from incsnap.checkpoint.files import Files, packed, unpack
from incsnap.checkpoint.object_store import set_access
from incsnap.checkpoint.windows import CheckpointDamaged, WindowBuffers
from incsnap.config.object_store import store_access
from incsnap.envelope.records import RECORDS
from incsnap.errors import StoreFailed
from lab.object_store import ObjectStore


def records(rows: int, size: int = 400) -> pa.RecordBatch:
    values = [secrets.token_bytes(size) for _ in range(rows)]
    columns = {
        field.name: pa.array(values, field.type) if pa.types.is_binary(field.type) else pa.nulls(rows, field.type)
        for field in RECORDS
    }
    return pa.record_batch(columns, schema=RECORDS)


def content(files: Files, name: str) -> bytes | None:
    buffer = files.read(name)
    return None if buffer is None else bytes(buffer.to_pybytes())


def test_each_use_of_a_file_is_one_request(bucket_folder: str, object_store: ObjectStore) -> None:
    files = Files(bucket_folder)
    object_store.request_counts()
    asked: list[Counter[str]] = []
    for use in (
        lambda: files.write("a/b.json", b"1", durable=True),
        lambda: files.write("a/b.json", b"2"),
        lambda: files.read("a/b.json"),
        lambda: files.read("a/none.json"),
        lambda: files.exists("a/b.json"),
        lambda: files.exists("a/none.json"),
        lambda: files.names("a"),
        lambda: files.names("none"),
        lambda: files.delete("a/b.json"),
        lambda: files.delete("a/b.json"),
    ):
        use()
        asked.append(object_store.request_counts())

    assert [each.total() for each in asked] == [1] * 10
    assert sum(each["PUT"] for each in asked) == 2


def test_what_was_written_is_there_at_once_and_what_was_deleted_is_gone(bucket_folder: str) -> None:
    files = pickle.loads(pickle.dumps(Files(bucket_folder)))
    for version in range(3):
        files.write("one.json", str(version).encode())
        assert content(files, "one.json") == str(version).encode()
    files.write("folder/inner/two.json", b"two")
    files.write("folder/empty", b"")
    assert sorted(files.names("folder")) == ["empty", "inner"]
    assert content(files, "folder/empty") == b""
    assert not files.exists("folder")
    files.delete_folder("folder")
    assert files.names("folder") == []
    assert content(files, "folder/inner/two.json") is None
    assert content(files, "one.json") == b"2"


def test_a_writer_that_fails_in_the_middle_leaves_nothing(bucket_folder: str) -> None:
    files = Files(bucket_folder)

    def half(stream: Any) -> None:
        stream.write(b"half")
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        files.write("new.json", half)
    assert not files.exists("new.json")
    files.write("old.json", b"whole")
    with pytest.raises(ValueError, match="in the middle"):
        files.write("old.json", half)
    assert content(files, "old.json") == b"whole"


def test_an_upload_that_the_store_cuts_leaves_the_old_file(bucket_folder: str, object_store: ObjectStore) -> None:
    files = Files(bucket_folder)
    files.write("rows.arrow", b"old")
    object_store.fail({"method": "PUT", "key": "rows[.]arrow", "status": 403, "times": 1 << 30})
    with pytest.raises(StoreFailed, match=r"Writing s3a://lake/.*rows[.]arrow"):
        files.write("rows.arrow", b"x" * (70 << 20))  # in parts
    object_store.fail()

    assert content(files, "rows.arrow") == b"old"


def test_a_store_that_is_busy_for_a_moment_is_asked_again(bucket_folder: str, object_store: ObjectStore) -> None:
    files = Files(bucket_folder)
    object_store.fail({"method": "PUT", "key": "busy", "status": 503, "times": 2})
    files.write("busy.json", b"1")

    assert content(files, "busy.json") == b"1"


def test_a_task_brings_only_the_parts_of_a_window_that_it_sends(bucket_folder: str, object_store: ObjectStore) -> None:
    buffers = WindowBuffers(bucket_folder)
    window = {bucket: records(10_000) for bucket in range(2)}
    file = buffers.write_window("w/1", window, parts=16)
    object_store.request_counts()

    (rows,) = buffers.read_window(file, 1, [3])

    # Its end has the places of all; a part may reach from one request into the next.
    assert object_store.request_counts() <= Counter({"GET": 3})
    assert rows.equals(window[1].slice(10_000 * 3 // 16, 10_000 // 16))
    assert [len(part) for part in buffers.read_window(file, 0, range(16))] == [625] * 16
    assert buffers.read_window(file, 7) == []
    buffers.delete("w/1")
    with pytest.raises(CheckpointDamaged, match="gone"):
        buffers.read_window(file, 0)


def test_a_small_packed_file_is_one_request(bucket_folder: str, object_store: ObjectStore) -> None:
    files = Files(bucket_folder)
    files.write("control/1.arrow", packed({"topic": records(3)}))
    object_store.request_counts()

    table = unpack(files.opened("control/1.arrow"), "topic")

    assert table is not None
    assert len(table) == 3
    assert object_store.request_counts() == Counter({"GET": 1})
    assert files.opened("control/2.arrow") is None


def test_errors_say_what_the_store_answers_and_never_with_what_it_was_asked(
    bucket_folder: str, object_store: ObjectStore
) -> None:
    given = object_store.properties("")
    wrong = {**given, "spark.hadoop.fs.s3a.secret.key": "not-the-secret"}
    closed = {**given, "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1"}
    cases = (
        (wrong, bucket_folder, "refused [(]SignatureDoesNotMatch"),
        (given, "s3a://nowhere/job", "no such bucket"),
        (closed, "s3a://closed/job", "error sending request"),
    )
    try:
        for properties, location, expected in cases:
            set_access(location, store_access(location, properties, {}))
            with pytest.raises(StoreFailed, match=expected) as caught:
                Files(location).write("a.json", b"1")
            text = f"{caught.value!r} {caught.value} {caught.value.hint}"
            assert object_store.access_key not in text
            assert properties["spark.hadoop.fs.s3a.secret.key"] not in text
    finally:
        set_access(bucket_folder, store_access(bucket_folder, given, {}))
