"""Tests that each rule of the algorithm is needed: without it, or with a wrong rule in its place, an invariant breaks.

The wrong rule is patched into the product's code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from incsnap.envelope.listed_keys import ListedKeys
from incsnap.envelope.record_encoder import READ
from incsnap.envelope.records import overtaken_by
from incsnap.envelope.table_format import TableFormat
from incsnap.events import PreparedXa, SchemaChange, StreamPosition
from incsnap.gtid import GtidSet
from incsnap.kafka import producer_cache, transaction
from incsnap.planner import answers
from incsnap.planner.ended_unlogged import EndedUnlogged
from incsnap.snapshot import engine, offset
from incsnap.snapshot.context import SnapshotContext
from incsnap.snapshot.window import Window
from incsnap.tables import TableId
from incsnap.tasks import bucket
from incsnap.tasks import chunk as chunk_task
from incsnap.tasks.bucket import _without
from tests.property.event_records import DROPPED, KEYS_OF_VALUES, PLAIN, templates
from tests.property.job_model import Job
from tests.property.mysql_model import ServerConnection
from tests.property.topic_model import Violation

#: Most runs until a mutant must be caught, from the seed on that is known to catch it.
MUTANT_RUNS = 200


def waits_for_nothing(_end: StreamPosition) -> GtidSet:
    return GtidSet()


def forgets_the_open_transaction(end: StreamPosition) -> GtidSet:
    return end.delivered


def gtid_executed(connection: ServerConnection) -> tuple[str, int]:
    return connection.server.position(connection.server.executed)


def at_once(window: Window, _end: StreamPosition, _server_uuid: str) -> bool:
    return window.result is not None


def whatever_server(window: Window, end: StreamPosition, _server_uuid: str) -> bool:
    return window.result is not None and end.reached(window.result.high_file, window.result.high_pos)


def no_batches(_window: Window, _release_batch: int) -> range:
    return range(0)


def once_they_are_read(snapshot: SnapshotContext) -> frozenset[TableId]:
    return frozenset(window.table for window in snapshot.held if window.result is not None)


def only_the_new_key(records: pa.RecordBatch) -> pa.Array:
    """Return what the records overtake, without the old key's deletion, tombstone and identity."""
    stays = records.filter(records.column("new_key").is_null())
    return pa.compute.coalesce(stays.column("identity"), stays.column("key"))


def only_the_old_key(records: pa.RecordBatch) -> pa.Array:
    """Return what the records overtake, without the new key's creation and identity."""
    stays = records.filter(records.column("old_key").is_null())
    return pa.compute.coalesce(stays.column("old_identity"), stays.column("identity"), stays.column("key"))


def only_the_key(records: pa.RecordBatch) -> pa.Array:
    return records.column("key")


def keys_that_are_sent(self: TableFormat, columns: Any) -> Any:
    encoder = self.encoders[READ]
    assert encoder is not None
    assert encoder.key is not None
    return encoder.key.keys(columns)


def only_what_is_sent(records: pa.RecordBatch) -> pa.Array:
    """Return what the records overtake, without those that a transform drops."""
    return overtaken_by(records.filter(pa.compute.greater_equal(records.column("partition"), 0)))


def never(*_: object) -> bool:
    return False


def by_ddl_alone(window: Window, change: SchemaChange) -> bool:
    return not change.truncates and change.touches(window.table)


def all_rows(rows: pa.RecordBatch, _overtaking: Sequence[pa.Array]) -> pa.RecordBatch:
    return rows


def all_but_deletions_kept(rows: pa.RecordBatch, overtaking: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return the rows without overtaken ones, and with all deletions."""
    values = rows.column("value").cast(pa.string())
    is_deletion = pa.compute.fill_null(pa.compute.match_substring(values, '"op":"d"'), True)
    kept = _without(rows.filter(pa.compute.invert(is_deletion)), overtaking)
    return pa.concat_batches([kept, rows.filter(is_deletion)])


def nothing_is_there(self: ListedKeys, columns: list[Any]) -> tuple[list[Any], pa.Array]:
    return columns, pa.repeat(pa.scalar(True), len(self.records))


def none_at_all(*_: object) -> None:
    return None


def whatever_the_stream_has_passed(
    self: EndedUnlogged, prepared: Sequence[PreparedXa], _end: StreamPosition
) -> list[PreparedXa]:
    answer = self._answer
    return [] if answer is None else [each for each in prepared if (each.xid, each.gtid) in answer.lacking]


def no_transactions(*_: object) -> list[PreparedXa]:
    return []


def any_kept(self: producer_cache.ProducerCache, owner: object, before: int) -> producer_cache.CachedProducer | None:
    return self._kept.pop(owner, None)


class NumberBeforeFence(transaction.Transaction):
    """A transaction that reads the last committed batch before it fences older producers, not after."""

    def step(self, doing: str, call: Callable[[float], Any], patience: float = 1.0, goes_on: Any = None) -> Any:
        if doing == "fencing older writers":
            self.fence = call
            return None
        end = super().step(doing, call, patience)
        if doing == "reading the committed batch":
            super().step("fencing older writers", self.fence, patience)
        return end


@dataclass(frozen=True)
class Mutant:
    """A wrong rule, and how it is found."""

    wrong: tuple[tuple[Any, str, Any], ...]  #: (object, name of its attribute, wrong value) for each patch
    breaks: frozenset[str]  #: invariants of which one must break
    #: seed of a run that catches it; nothing needs to be simplified here, and the run is the same each time
    seed: int = 0
    chain: str = PLAIN  #: the transforms of one table
    lists_keys: bool = False  #: signals choose keys, as in `Job`


def mutant(
    breaks: str, *wrong: tuple[Any, str, Any], seed: int = 0, chain: str = PLAIN, lists_keys: bool = False
) -> Mutant:
    return Mutant(wrong, frozenset(breaks.split(", ")), seed, chain, lists_keys)


MUTANTS = {
    "no low wait": mutant(
        "back in time, shape",
        (offset, "low_watermark_of", waits_for_nothing),
        (engine, "low_watermark_of", waits_for_nothing),
    ),
    "low watermark without the open transaction": mutant(
        "back in time, shape",
        (offset, "low_watermark_of", forgets_the_open_transaction),
        (engine, "low_watermark_of", forgets_the_open_transaction),
        seed=366,
    ),
    "high watermark from gtid_executed": mutant(
        "back in time, shape", (chunk_task, "high_watermark", gtid_executed), seed=43
    ),
    "release before the high watermark": mutant("back in time, shape", (engine, "released_by", at_once), seed=20),
    "positions of another server": mutant(
        "back in time, shape", (engine, "released_by", whatever_server), (engine, "read_elsewhere", never), seed=90
    ),
    "keys of earlier batches forgotten": mutant("back in time, overtaken", (offset, "discard_batches", no_batches)),
    "keys written down only once a window is read": mutant(
        "back in time, overtaken, damaged", (SnapshotContext, "held_tables", once_they_are_read)
    ),
    "the rest of a window behind a statement": mutant(
        "back in time, shape, overtaken", (engine, "finished_by", never), seed=208
    ),
    "no discard": mutant("back in time, overtaken", (bucket, "_without", all_rows)),
    "old key of a re-keying not discarded": mutant(
        "back in time, overtaken", (bucket, "overtaken_by", only_the_new_key)
    ),
    "new key of a re-keying not discarded": mutant("overtaken", (bucket, "overtaken_by", only_the_old_key), seed=4),
    "record's key taken for the row's": mutant("diverged, missing", (bucket, "overtaken_by", only_the_key), seed=6),
    "DDL and TRUNCATE ignored": mutant(
        "back in time, shape, diverged, overtaken", (engine, "spoiled_by", never), seed=1
    ),
    "TRUNCATE ignored": mutant("back in time, diverged, overtaken", (engine, "spoiled_by", by_ddl_alone), seed=3),
    "maximum key without the low watermark": mutant("missing", (answers, "wait_until_executed", none_at_all), seed=139),
    "a row is where its transformed key says": mutant(
        "diverged, back in time, overtaken", (TableFormat, "keys", keys_that_are_sent), chain=KEYS_OF_VALUES
    ),
    "a dropped event overtakes nothing": mutant(
        "overtaken", (bucket, "overtaken_by", only_what_is_sent), chain=DROPPED
    ),
    "no deletion is discarded": mutant(
        "vanished, overtaken", (bucket, "_without", all_but_deletions_kept), lists_keys=True
    ),
    "a key outside of the chunk is absent": mutant(
        "vanished, diverged", (ListedKeys, "rows_among", nothing_is_there), lists_keys=True
    ),
    "replayed batches sent again": mutant("twice, back in time", (transaction, "committed_batch", none_at_all)),
    "a kept producer of the same batch": mutant(
        "twice, back in time", (producer_cache.ProducerCache, "take", any_kept)
    ),
    "number read before the fence": mutant(
        "twice, back in time", (transaction, "Transaction", NumberBeforeFence), seed=19
    ),
    "XA transactions let go before the stream has passed the end": mutant(
        "diverged, missing, overtaken", (EndedUnlogged, "among", whatever_the_stream_has_passed), seed=8
    ),
    "XA transactions that ended unlogged never let go": mutant("leaked", (EndedUnlogged, "among", no_transactions)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_an_invariant_breaks(name: str) -> None:
    tried = MUTANTS[name]
    runs = range(tried.seed, tried.seed + MUTANT_RUNS)
    broken_invariant = next((broken for seed in runs if (broken := broken_by(seed, tried))), None)

    assert broken_invariant in tried.breaks


def broken_by(seed: int, tried: Mutant) -> str | None:
    """Return the invariant that a run breaks, or None."""
    job = Job(random.Random(seed), chain=tried.chain, lists_keys=tried.lists_keys)
    with ExitStack() as wrong:
        if tried.chain != PLAIN:
            # The records of events are kept; those of the mutant are its own.
            templates.cache_clear()
            wrong.callback(templates.cache_clear)
        for where, name, what in tried.wrong:
            wrong.enter_context(patch.object(where, name, what))
            job.edges.pop((where, name), None)
        try:
            job.live()
        except Violation as violation:
            return violation.kind
    return None


@pytest.mark.parametrize(
    ("seed", "chain", "lists_keys"),
    sorted({(tried.seed, tried.chain, tried.lists_keys) for tried in MUTANTS.values()}),
)
def test_runs_that_caught_a_mutant_hold_with_the_rules(seed: int, chain: str, lists_keys: bool) -> None:
    Job(random.Random(seed), chain=chain, lists_keys=lists_keys).live()
