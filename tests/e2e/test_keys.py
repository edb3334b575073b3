"""Snapshots of tables with every kind of key, while writers change these keys.

The writers' transactions have several kinds of GTIDs.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from itertools import chain

import pytest

from incsnap.checkpoint.status import read_status
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.replay import TopicReplay, replay
from signals import send
from tests.support.key_kinds import KINDS, KeyKind
from tests.support.key_writer import KeyWriter, create

pytestmark = pytest.mark.servers

ROUNDS = 1


def test_snapshots_of_all_key_types_equal_the_tables_under_writes(
    play: CapturedDatabase,
) -> None:
    with play.connect() as connection:
        tables = [(kind, create(connection, play.database, kind)) for kind in KINDS]
    keys = [f"{table}:{kind.message_key}" for kind, table in tables if kind.message_key]
    settings = {
        "table.include.list": f"{play.database}\\..*",
        "message.key.columns": ";".join(keys),
        "incremental.snapshot.chunk.size": "12",
        "snapshot.max.threads": "4",
    }
    with play.job(settings) as job, play.notices() as notices:
        job.wait_until_streaming()
        with KeyWriter(play.connect, tables) as writer:
            for round_ in range(ROUNDS):
                asked = ask(play, tables, round_)
                for name in asked:
                    job.wait_until("a snapshot was complete", partial(notices.completed, name))
        play.drain(job)
        job.stop()

    ended = notices.of("TABLE_SCAN_COMPLETED")
    assert [each for each in ended if each["additional_data"]["status"] != "SUCCEEDED"] == []
    assert len(ended) == ROUNDS * len(KINDS)
    assert set(writer.origins) == set(writer.possible_origins)
    faults = list(chain.from_iterable(faults_of(play, tables)))
    assert faults == [], "\n".join(faults)
    status = read_status(str(play.checkpoint))
    assert status is not None
    assert status.sent.discarded > 0, "no event ever met a window: nothing was put to the test"


def ask(play: CapturedDatabase, tables: list[tuple[KeyKind, TableId]], round_: int) -> list[str]:
    """Request snapshots of all tables, and return the signals' ids."""
    by_key = [table for kind, table in tables if not kind.surrogate]
    play.execute_by_row(f"by-key-{round_}", by_key)
    names = [str(table) for kind, table in tables if kind.surrogate]
    play.signal_by_row(f"by-surrogate-{round_}", "execute-snapshot", send.snapshot_data(names, surrogate_key="s"))
    return [f"by-key-{round_}", f"by-surrogate-{round_}"]


def faults_of(play: CapturedDatabase, tables: list[tuple[KeyKind, TableId]]) -> list[list[str]]:
    topics = {play.topic(table): TopicReplay() for _, table in tables}
    replay(play.kafka, topics)
    faults = []
    with play.connect() as connection, connection.cursor() as cursor:
        for kind, table in tables:
            cursor.execute(f"SELECT which, version FROM {table.sql}")
            faults.append([f"{kind.name}: {fault}" for fault in _faults(kind, topics[play.topic(table)], dict(cursor))])
    # All tables are counted together: how many changes one table meets depends on the duration of the snapshots.
    met = Counter(op for seen in topics.values() for op in seen.counts.elements())
    return [*faults, [f"nobody met an op {op}" for op in "cud" if not met[op]]]


def _faults(kind: KeyKind, seen: TopicReplay, rows: dict[int, int]) -> list[str]:
    faults = seen.judgement.faults()
    at = {name: place for place, name in enumerate(seen.columns)}
    histories = {history.row[at["which"]]: history for history in seen.state.values() if history.row is not None}
    replayed = {which: history.row[at["version"]] for which, history in histories.items() if history.row is not None}
    if replayed != rows or len(histories) != len(seen.living):
        wrong = {which for which in {*replayed, *rows} if replayed.get(which) != rows.get(which)}
        faults.append(f"the topic differs from the table at {json.dumps(sorted(wrong))}")
    for which, history in histories.items():
        if not KeyWriter.touches(which) and history.reads != ROUNDS:
            faults.append(f"key {which} was read {history.reads} times in {ROUNDS} snapshots")
    # If the chunks' order is not the identity, a row that moves in this order may be read at both places.
    if not kind.surrogate and seen.most_reads() > ROUNDS:
        faults.append(f"a key was read {seen.most_reads()} times in {ROUNDS} snapshots")
    return faults + ([] if seen.counts["r"] else ["no row was read"])
