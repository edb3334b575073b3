"""Tests of Spark's logs after a power cut: the job repeats the same batches, or names the damaged file."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import PlannedWith, recall, remember
from incsnap.checkpoint.spark_log import SparkLog
from incsnap.errors import OffsetError
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset, TopicLayout, digest

FIRST = Offset("job", 0, StreamPosition(GtidSet(), "binlog.000001", 4), TopicLayout(2))
#: What a file may be after a power cut.
STATES = ("whole", "gone", "empty", "torn")


def end(number: int) -> Offset:
    """Return the end of Spark's batch `number`, which is our batch `number + 1`."""
    return replace(FIRST, batch=number + 1, stream=StreamPosition(GtidSet(), "binlog.000001", 100 * number + 100))


def write(root: Path, log: str, number: int, state: str = "whole") -> None:
    folder = root / "spark" / log
    folder.mkdir(parents=True, exist_ok=True)
    offset = f'v1\n{{"batchTimestampMs":1,"conf":{{}}}}\n{json.dumps(end(number).dump())}'
    text = offset if log == "offsets" else 'v1\n{"nextBatchWatermarkMs":0}'
    path = folder / str(number)
    if state == "gone":
        path.unlink(missing_ok=True)
    else:
        path.write_text({"whole": text, "empty": "", "torn": text[: len(text) * 2 // 3]}[state])


def job(root: Path, done: int) -> None:
    """Write the logs of a job whose batches 0 to `done` are done, with no later batch planned. Numbers are Spark's."""
    for number in range(done + 1):
        write(root, "offsets", number)
        write(root, "commits", number)
    (root / "spark" / "metadata").write_text('{"id":"1"}')
    files = Files(str(root / "incsnap"))
    remember(files, KeptOffsets(files), end(done), PlannedWith("", {}))


def next_batch(root: Path) -> Offset | None:
    """Return the end of the batch that Spark and the planner would run first now; None if it was never planned.

    Spark reads the newest file of each log, and fails if the file is not whole. If the newest batch is not recorded as
    done, Spark repeats it with the offset in the log. Otherwise Spark plans a new batch.
    """
    logs: dict[str, list[int]] = {}
    for log, lines in (("offsets", 3), ("commits", 2)):
        folder = root / "spark" / log
        logs[log] = sorted(int(file.name) for file in folder.iterdir() if file.name.isdecimal())
        if logs[log]:
            content = (folder / str(logs[log][-1])).read_text().splitlines()
            assert len(content) == lines, f"Spark fails on {folder}/{logs[log][-1]}"
            json.loads(content[-1])
    offsets, commits = logs["offsets"], logs["commits"]
    assert offsets or not commits
    if offsets and (not commits or commits[-1] != offsets[-1]):
        return end(offsets[-1])
    start = end(offsets[-1]) if offsets else FIRST
    return recall(Files(str(root / "incsnap")), KeptOffsets(Files(str(root / "incsnap"))), start)


def refusal(root: Path) -> OffsetError | None:
    try:
        SparkLog(str(root)).mend()
    except OffsetError as error:
        return error
    return None


@pytest.mark.parametrize("done", [0, 1, 3])
@pytest.mark.parametrize(("offset", "commit"), list(itertools.product(STATES, STATES)))
def test_whatever_a_power_cut_takes_of_the_newest_batch_it_is_repeated_with_its_end(
    tmp_path: Path, done: int, offset: str, commit: str
) -> None:
    job(tmp_path, done)
    write(tmp_path, "offsets", done, offset)
    write(tmp_path, "commits", done, commit)

    SparkLog(str(tmp_path)).mend()

    planned = next_batch(tmp_path)
    if (offset, commit) == ("whole", "whole"):
        assert planned is None
    else:
        assert planned is not None
        assert digest(planned.dump()) == digest(end(done).dump())


@pytest.mark.parametrize("states", list(itertools.product(STATES, repeat=4)))
def test_no_planned_batch_is_replaced_whatever_files_of_two_batches_are_lost(
    tmp_path: Path, states: tuple[str, str, str, str]
) -> None:
    job(tmp_path, 3)
    for log, number, state in zip(("offsets", "offsets", "commits", "commits"), (2, 3, 2, 3), states, strict=True):
        write(tmp_path, log, number, state)
    error = refusal(tmp_path)
    if error is not None:
        assert states[0] != "whole" or states[2] != "whole", "one batch can always be mended"
        assert str(tmp_path / "spark") in error.message
        assert "checkpoint.location" in error.hint
        assert not error.resumable
        return
    planned = next_batch(tmp_path)
    assert planned == (None if (states[1], states[3]) == ("whole", "whole") else end(3))


def test_a_missing_offset_of_the_batch_before_the_newest_is_named(tmp_path: Path) -> None:
    job(tmp_path, 5)
    for number in (3, 4, 5):
        write(tmp_path, "offsets", number, "gone")

    with pytest.raises(OffsetError, match=r"offsets lacks the files of batches 4 to 5"):
        SparkLog(str(tmp_path)).mend()


def test_a_torn_offset_that_was_not_planned_next_is_kept_and_named(tmp_path: Path) -> None:
    job(tmp_path, 3)
    files = Files(str(tmp_path / "incsnap"))
    remember(files, KeptOffsets(files), end(1), PlannedWith("", {}))
    write(tmp_path, "offsets", 3, "empty")

    with pytest.raises(OffsetError, match=r"offsets/3 is empty or torn"):
        SparkLog(str(tmp_path)).mend()
    assert (tmp_path / "spark" / "offsets" / "3").exists()


def test_spark_metadata_is_forgotten_only_where_nothing_was_planned(tmp_path: Path) -> None:
    metadata = tmp_path / "spark" / "metadata"
    metadata.parent.mkdir()
    metadata.write_text("")
    SparkLog(str(tmp_path)).mend()
    assert not metadata.exists()

    job(tmp_path, 1)
    metadata.write_text("")
    with pytest.raises(OffsetError, match="metadata is empty or torn"):
        SparkLog(str(tmp_path)).mend()


def test_the_logs_of_the_batch_before_are_on_the_disk_before_the_next_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job(tmp_path, 3)
    forced: list[str] = []
    monkeypatch.setattr(
        "incsnap.checkpoint.spark_log._force", lambda path: forced.append(str(path.relative_to(tmp_path)))
    )
    log = SparkLog(str(tmp_path))
    log.force()
    assert {"spark/offsets/3", "spark/offsets", "spark/commits/3", "spark/commits", "spark/metadata"} <= set(forced)
    forced.clear()
    log.force()
    assert "spark/metadata" not in forced


def test_a_new_checkpoint_needs_no_mending(tmp_path: Path) -> None:
    SparkLog(str(tmp_path)).mend()
    SparkLog(str(tmp_path)).force()
    SparkLog("s3a://bucket/checkpoint").mend()
    assert list(tmp_path.iterdir()) == []
