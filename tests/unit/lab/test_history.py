"""The judge of a replay must see every kind of fault, or the end-to-end tests prove nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lab.history import KeyHistory
from lab.replay import TopicReplay
from tests.support.ledger import silent_between

Record = tuple[str, int | None, int | None]


def replayed(*records: Record, same_place: bool = False) -> TopicReplay:
    """Records of key 1: op, version before, version after; each its own binlog event."""
    replay = TopicReplay(keep_times=True)
    for number, (op, before, after) in enumerate(records):
        if op == "tombstone":
            replay.observe(b'{"id":1}', None, 0)
            continue
        source = {
            "gtid": "u:1",
            "file": "binlog.000001",
            "pos": 4 if same_place else number,
            "row": 0,
            "snapshot": "incremental" if op == "r" else "false",
        }
        value = {"before": row(before), "after": row(after), "source": source, "op": op}
        replay.observe(b'{"id":1}', json.dumps(value).encode(), 0, 1_000 + number)
    return replay


def row(version: int | None) -> dict[str, Any] | None:
    return None if version is None else {"id": 1, "version": version}


def faults_of(replay: TopicReplay) -> dict[str, int]:
    judged = replay.judgement
    kinds = {
        "back": judged.back_in_time,
        "lost": judged.lost,
        "duplicate": judged.duplicates,
        "stray": judged.strays,
    }
    return {name: kind.count for name, kind in kinds.items() if kind.count}


WELL: Sequence[Sequence[Record]] = (
    [
        ("r", None, 0),
        ("u", 0, 1),
        ("u", 1, 1),
        ("d", 1, None),
        ("tombstone", None, None),
        ("c", None, 2),
        ("r", None, 2),
    ],
    [("u", 4, 5), ("r", None, 5), ("r", None, 5)],
    [("d", 4, None), ("tombstone", None, None)],
)


@pytest.mark.parametrize("records", WELL)
def test_a_life_in_order_has_no_faults(records: Sequence[Record]) -> None:
    assert faults_of(replayed(*records)) == {}


@pytest.mark.parametrize(
    ("records", "fault"),
    [
        ([("u", 0, 5), ("r", None, 4)], "back"),
        ([("u", 0, 5), ("u", 3, 4)], "back"),
        ([("u", 4, 5), ("d", 5, None), ("r", None, 5)], "back"),
        ([("u", 4, 5), ("d", 5, None), ("c", None, 4)], "back"),
        ([("u", 0, 5), ("u", 6, 7)], "lost"),
        ([("u", 0, 5), ("d", 6, None)], "lost"),
        ([("c", None, 5), ("c", None, 6)], "lost"),
        ([("d", 4, None), ("u", 5, 6)], "lost"),
        ([("u", 4, 5), ("r", None, 6)], "lost"),
        ([("c", None, 5), ("tombstone", None, None)], "stray"),
    ],
)
def test_each_fault_is_seen(records: Sequence[Record], fault: str) -> None:
    assert faults_of(replayed(*records)) == {fault: 1}


def test_the_same_event_twice_is_a_duplicate_and_counts_once() -> None:
    replay = replayed(("u", 0, 1), ("u", 0, 1), same_place=True)

    assert faults_of(replay) == {"duplicate": 1}
    assert replay.living == {(1,): (1, 1)}


def test_reads_are_counted_for_each_key() -> None:
    assert replayed(("r", None, 0), ("r", None, 0)).most_reads() == 2


def test_a_deleted_row_does_not_live() -> None:
    assert replayed(("r", None, 0), ("d", 0, None)).living == {}


def test_a_key_in_two_partitions_is_a_stray() -> None:
    replay = replayed(("r", None, 0))
    replay.observe(b'{"id":1}', None, 1)

    assert replay.judgement.strays.count == 2  # and a tombstone of a living row


def test_rows_of_which_nothing_was_sent_in_time_are_found() -> None:
    read = replayed(("r", None, 0)).state[1,]

    assert silent_between([read], 1_000, 1_000) == 0
    assert silent_between([read, KeyHistory(0)], 1_001, 2_000) == 2
