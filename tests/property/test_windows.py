"""The algorithm against a modelled server: I3 (topic = table), I4 (never back in time), I5 (both keys of a re-keying),
I6 (stop leaves nothing), I7 (offset through JSON, each batch), I8 (crashes), and each rule shown to be needed.

A run is a seed: ``Job(seed).live()`` repeats it. What is checked stands in ``topic_model``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.snapshot.offset import Offset
from incsnap.snapshot.window import Rules, Window
from incsnap.tables import TableId
from tests.property.job_model import Job, Strategy
from tests.property.server_model import Event, Row, Server
from tests.property.topic_model import Violation

#: Runs in which every mutant must have been caught; the hardest needs 38.
MUTANT_RUNS = 200


@given(seed=st.integers(0, 2**32 - 1))
def test_the_topic_becomes_the_table_and_no_key_goes_back_in_time(seed: int) -> None:
    Job(seed).live()


@pytest.mark.parametrize("seed", [19, 23, 46, 84])
def test_runs_that_caught_a_mutant_hold_with_the_rules(seed: int) -> None:
    Job(seed).live()


def test_modelled_runs_take_back_windows_of_which_a_part_was_sent() -> None:
    """So that what the runs hold to be true is true of those, too: what is sent again is never older than before."""
    runs = [Job(seed) for seed in range(20)]
    for run in runs:
        run.live()

    assert any(run.taken_back > run.taken_back_half_sent for run in runs)
    assert sum(run.taken_back_half_sent > 0 for run in runs) > 2


# -- wrong rules


def waits_for_nothing(_end: StreamPosition) -> GtidSet:
    return GtidSet()


def forgets_the_open_transaction(end: StreamPosition) -> GtidSet:
    return end.delivered


def gtid_executed(server: Server) -> tuple[str, int]:
    return server.position(server.executed)


def at_once(window: Window, _end: StreamPosition, _server_uuid: str) -> bool:
    return window.reading is not None


def whatever_server(window: Window, end: StreamPosition, _server_uuid: str) -> bool:
    return window.reading is not None and end.reached(window.reading.high_file, window.reading.high_pos)


def no_batches(_window: Window, _release_batch: int) -> range:
    return range(0)


def once_they_are_read(end: Offset) -> frozenset[TableId]:
    return frozenset(window.table for window in end.snapshot.held if window.reading is not None)


def only_the_new_key(event: Event) -> set[Row]:
    return {event.new_key or event.key}


def only_the_old_key(event: Event) -> set[Row]:
    return {event.key}


@dataclass(frozen=True)
class Mutant:
    strategy: Strategy
    #: The invariants by which it is known.
    breaks: frozenset[str]


MUTANTS = {
    "no low wait": Mutant(Strategy(Rules(fence_set=waits_for_nothing)), frozenset({"back in time", "shape"})),
    "fence without the open transaction": Mutant(
        Strategy(Rules(fence_set=forgets_the_open_transaction)), frozenset({"back in time", "shape"})
    ),
    "high watermark from gtid_executed": Mutant(Strategy(high=gtid_executed), frozenset({"back in time", "shape"})),
    "release before the high watermark": Mutant(
        Strategy(Rules(released_by=at_once)), frozenset({"back in time", "shape"})
    ),
    "positions of another server": Mutant(
        Strategy(Rules(released_by=whatever_server, read_elsewhere=lambda _window, _uuid: False)),
        frozenset({"back in time", "shape"}),
    ),
    "keys of earlier batches forgotten": Mutant(
        Strategy(Rules(discard_batches=no_batches)), frozenset({"back in time", "overtaken"})
    ),
    "keys written down only once a window is read": Mutant(
        Strategy(held_tables=once_they_are_read), frozenset({"back in time", "overtaken"})
    ),
    "the rest of a window behind a statement": Mutant(
        Strategy(Rules(finished_by=lambda _window, _change: False)), frozenset({"back in time", "shape", "overtaken"})
    ),
    "no discard": Mutant(Strategy(discards=False), frozenset({"back in time", "overtaken"})),
    "old key of a re-keying not discarded": Mutant(
        Strategy(keys=only_the_new_key), frozenset({"back in time", "overtaken"})
    ),
    "new key of a re-keying not discarded": Mutant(Strategy(keys=only_the_old_key), frozenset({"overtaken"})),
    "DDL and TRUNCATE ignored": Mutant(
        Strategy(Rules(spoiled_by=lambda _window, _change: False)),
        frozenset({"back in time", "shape", "diverged", "overtaken"}),
    ),
    "TRUNCATE ignored": Mutant(
        Strategy(Rules(spoiled_by=lambda window, change: not change.truncates and change.touches(window.table))),
        frozenset({"back in time", "diverged", "overtaken"}),
    ),
    "maximum key without the fence": Mutant(Strategy(fenced_maximum=False), frozenset({"missing"})),
    "XA rows sent at XA PREPARE": Mutant(
        Strategy(xa_at_prepare=True), frozenset({"back in time", "diverged", "overtaken", "missing"})
    ),
    "prepared transactions forgotten": Mutant(Strategy(remembers_prepared=False), frozenset({"diverged", "missing"})),
    "settings of another form ignored": Mutant(
        Strategy(heeds_forms=False), frozenset({"back in time", "overtaken", "form"})
    ),
    "replayed batches sent again": Mutant(Strategy(skips_done=False), frozenset({"twice", "back in time"})),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_an_invariant_breaks(name: str) -> None:
    mutant = MUTANTS[name]
    found = next((broken for seed in range(MUTANT_RUNS) if (broken := broken_by(seed, mutant.strategy))), None)

    assert found in mutant.breaks


def broken_by(seed: int, strategy: Strategy) -> str | None:
    """The invariant that a run breaks, if any."""
    try:
        Job(seed, strategy).live()
    except Violation as violation:
        return violation.kind
    return None


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_run_is_repeated_exactly_by_its_seed(seed: int) -> None:
    first, second = Job(seed), Job(seed)
    first.live()
    second.live()

    assert first.topic.buckets == second.topic.buckets
