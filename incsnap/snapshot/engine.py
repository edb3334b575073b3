"""The engine: from the state at the end of one batch, and what was learned since, to the state at the end of the next.

    refuse    rows that Kafka refused in the last batch                    -> quarantine
    complete  tables and signals of which all went with earlier batches    -> notifications
    leave out tables that the settings do not capture any more             -> windows dropped, notifications
    receive   the manifests of chunks that were read since the last batch  -> windows, or ranges to read again
    observe   DDL and TRUNCATE in this batch's events                      -> windows dropped, ranges read again
    obey      the signals in this batch                                    -> tables queued, stopped; paused, resumed
    release   windows whose high watermark a batch's end has passed        -> parts of their rows, within the budget
    plan      which chunks are read from now on                            -> asks the server for keys
    complete  signals of which the last tables turned out empty, or ended  -> notifications

It does nothing and reaches nothing: it is a generator that asks four questions (``questions``) and returns a Plan. Its
state is a SnapshotContext; Spark writes it ahead of the batch, inside the offset. The rules for sending a row that
was read by SELECT are in ``window``; here they are only applied.

    asking = next_context(start.snapshot, facts)
    try:
        question = next(asking)
        while True:
            question = asking.send(answer_of(question))
    except StopIteration as stop:
        plan = stop.value
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace

from incsnap.events import BinlogPosition, SchemaChange, StreamPosition
from incsnap.snapshot import notifications as notes
from incsnap.snapshot.commands import Command
from incsnap.snapshot.context import Scan, SnapshotContext
from incsnap.snapshot.fail import count_failure, fail
from incsnap.snapshot.failures import Verdict, verdict
from incsnap.snapshot.keys import show_key
from incsnap.snapshot.load import HeldBack, MeasuredLoad, held_back
from incsnap.snapshot.next_context import NextContext, Warned
from incsnap.snapshot.notifications import FEW_NAMED, comma_list
from incsnap.snapshot.obey import end_pause, obey
from incsnap.snapshot.planning import plan_chunks
from incsnap.snapshot.questions import Answer, Question
from incsnap.snapshot.refused import RefusedRow, quarantine_refused
from incsnap.snapshot.sizing import Limits, measured_times, next_chunk_rows
from incsnap.snapshot.throttle import Bound
from incsnap.snapshot.window import (
    Reading,
    Window,
    finished_by,
    low_watermark_of,
    read_elsewhere,
    released_by,
    spoiled_by,
)
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What the planner learned between two batches.

    ``batch``: the number of the batch being planned. ``end``: how far its events go, a position of the server
    ``server_uuid``, to which the tail is connected now. ``readings``: window id -> manifest, of chunks that were read
    since the last batch. ``commands``: the signals found up to ``end``, in order. ``changes``: every DDL and TRUNCATE
    between the last batch's end and ``end``. ``outdated``: records have another form now, or go to other partitions,
    than those of the windows in flight. ``release_bytes``: of windows' records, what the batch may send; one part is
    always allowed. ``behind``: the stream has a backlog, whose keys every new window would have to be freed of.
    ``configured``: the limits that the settings have, by name; ``loads``: what was measured for the limits in force.
    ``uncaptured``: tables that are read or wait, and that the settings do not capture (any more).
    """

    batch: int
    end: StreamPosition
    server_uuid: str
    now_ms: int
    readings: Mapping[str, Reading] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    limits: Limits = field(default_factory=Limits)
    outdated: bool = False
    release_bytes: int = 1 << 62
    behind: bool = False
    configured: Mapping[str, int] = field(default_factory=dict)
    loads: tuple[MeasuredLoad, ...] = ()
    uncaptured: frozenset[TableId] = frozenset()
    refused: tuple[RefusedRow, ...] = ()  #: rows that the last batch has left out


@dataclass(frozen=True, slots=True)
class Plan:
    """``context``: the state at the end of the batch. ``warned``: for the log. ``idle``: nothing changed and nothing is
    to be done: without events, the batch need not be run at all (one that only forgets what the last one has sent
    would take 50 ms of both processors from the readers). ``bounds``: the limits in force, by name;
    ``held_back``: the one among them that a load is above."""

    context: SnapshotContext
    warned: tuple[Warned, ...]
    idle: bool
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    held_back: HeldBack | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts."""
        return tuple(each.text for each in self.warned)


def next_context(context: SnapshotContext, facts: BatchFacts) -> Generator[Question, Answer, Plan]:
    """Plans batch ``facts.batch``; ``context`` is the state at the end of the batch before it."""
    state = NextContext(context, facts.batch, facts.now_ms, facts.configured)
    quarantine_refused(state, context, facts.refused)
    _complete(state, state.still_scanned(context.wholly_released()))
    _leave_out(state, facts.uncaptured)
    _receive(state, context, facts)
    _observe(state, facts)
    for command in facts.commands:
        obey(state, command)
    _release(state, facts)
    held = held_back(state.limits.bounds, facts.loads)
    if not (state.paused or facts.behind or held):
        yield from plan_chunks(state, facts.limits, low_watermark_of(facts.end))
    _complete(state, ())
    after = state.finished()
    moved = after.planned or after.released or after.dropped or after.notifications
    return Plan(after, tuple(state.warned), after == context.settled() and not moved, state.limits.bounds, held)


def drive(asking: Generator[Question, Answer, Plan], answer: Callable[[Question], Answer]) -> Plan:
    """Runs ``next_context`` to its end with ``answer`` for every question."""
    try:
        question = next(asking)
        while True:
            question = asking.send(answer(question))
    except StopIteration as stop:
        plan: Plan = stop.value
        return plan


def awaited(context: SnapshotContext, readings: Mapping[str, Reading], server_uuid: str) -> BinlogPosition | None:
    """The highest of the high watermarks that windows in flight wait for in this binlog: a batch that ends there
    releases them all.

    ``context``: at the end of the last batch; ``readings``: of its windows. None when nothing waits.
    """
    readings_in_flight = [
        window.reading or readings.get(window.id) for window in context.in_flight if not window.passed
    ]
    good = (
        reading
        for reading in readings_in_flight
        if reading and not reading.error and reading.server_uuid == server_uuid
    )
    return max((BinlogPosition(reading.high_file, reading.high_pos) for reading in good), default=None)


def _leave_out(state: NextContext, uncaptured: frozenset[TableId]) -> None:
    """End the snapshots of tables that the settings exclude; nothing more is sent of them.

    Events of such a table are not captured, so no event could overtake a row of its windows.
    """
    if not uncaptured:
        return
    reason = "the settings do not capture it any more"
    for signal, requests in state.abort(lambda request: request.table in uncaptured).items():
        names = comma_list([request.table for request in requests])
        state.notify(signal, notes.ABORTED, data_collections=names, reason=reason)
        state.warn(f"the snapshot of {names} ends, and nothing more is sent of it: {reason}", signal)
    end_pause(state)


def _receive(state: NextContext, context: SnapshotContext, facts: BatchFacts) -> None:
    """Manifests become readings, once: from here on the offset carries them.

    A chunk without a manifest is being read, or waits for a reader. Rows that were read on another server than the
    tail is connected to now, outdated ones, and those that wait behind too many batches are read again.
    """
    good: dict[int, list[Window]] = {}
    bad: dict[int, str] = {}
    for window in context.in_flight:
        reading = window.reading or facts.readings.get(window.id)
        if window.scan not in state.scans:  # the failure of the chunk beside it has just ended the table
            state.dropped.append(window.id)
        elif reading is None or window.reading is not None:
            state.held.append(window)
        elif reading.error:
            fail(state, window, reading.error, facts.limits)
            if verdict(reading.error) is not Verdict.READ_AGAIN:
                bad[window.scan] = reading.error
        else:
            state.read(window, reading.rows)
            window = replace(window, reading=reading, read_batch=facts.batch)
            state.held.append(window)
            good.setdefault(window.scan, []).append(window)
    for number, windows in good.items():
        if number in state.scans:
            scan = state.scans[number]
            times = measured_times(scan.times, windows)
            rows = next_chunk_rows(scan.chunk_rows, times, windows, facts.limits)
            state.scans[number] = replace(scan, chunk_rows=rows, times=times, failures=0)
    for number, error in bad.items():
        if number in state.scans and number not in good:
            count_failure(state, number, error)

    _read_again(
        state,
        lambda window: facts.outdated or read_elsewhere(window, facts.server_uuid) or _held_too_long(window, facts),
    )


def _held_too_long(window: Window, facts: BatchFacts) -> bool:
    """A backlog lies before its high watermark: to read its chunk again behind that costs less than to free it of the
    keys of so many batches."""
    waits = window.reading is not None and not window.passed
    return waits and facts.batch - window.read_batch > facts.limits.held_batches


def _observe(state: NextContext, facts: BatchFacts) -> None:
    """Drop what was read of a table before a DDL or TRUNCATE, and let the table be described again.

    Where rows were moved in, no event tells them: a table of which anything was planned is read from its beginning,
    and nothing more is sent of what was there before.
    """
    for change in facts.changes:
        if change.moves_rows_in:
            for scan in [scan for scan in state.scans.values() if change.touches(scan.table)]:
                if scan.maximum is not None:
                    state.begin_again(scan.number, "a statement has moved rows into it")
        _read_again(state, lambda window, change=change: spoiled_by(window, change))  # type: ignore[misc]
        if not change.truncates:
            for scan in [scan for scan in state.scans.values() if change.touches(scan.table)]:
                state.scans[scan.number] = replace(scan, described=False, asked=0)


def _read_again(state: NextContext, bad: Callable[[Window], bool]) -> None:
    before, state.held = state.held, []
    for window in before:
        if bad(window):
            state.read_again(window)
        else:
            state.held.append(window)


def _release(state: NextContext, facts: BatchFacts) -> None:
    """Sends parts of windows, in the order of planning, so that only one is cut short. Also while paused: what has been
    read is sent.

    A statement that changed the table comes behind what is left of a window of which a part was sent.
    """
    before, state.held = state.held, []
    budget = facts.release_bytes
    for window in before:
        if not released_by(window, facts.end, facts.server_uuid):
            state.held.append(window)
            continue
        parts = min(window.parts_left, budget // max(1, window.part_bytes))
        if any(finished_by(window, change) for change in facts.changes):
            parts = window.parts_left
        elif not state.released:
            parts = max(1, parts)
        window = replace(window, passed=True)
        left = state.release(window, parts) if parts else window
        if left is not None:
            state.held.append(left)
            budget = 0
        else:
            budget = max(0, budget - parts * window.part_bytes)
    # One IN_PROGRESS a table and batch, not one a chunk: chunks of a batch are sent together.
    for window in {each.window.scan: each.window for each in state.released if each.is_last}.values():
        scan = state.scans[window.scan]
        state.notify(
            window.signal,
            notes.IN_PROGRESS,
            data_collections=comma_list(state.unfinished()[window.signal], FEW_NAMED),
            current_collection_in_progress=str(window.table),
            maximum_key=show_key(scan.maximum),
            last_processed_key=show_key(window.upper),
            **({"lost_readings": str(scan.lost_readings)} if scan.lost_readings else {}),
        )


def _complete(state: NextContext, released: Iterable[Scan]) -> None:
    """``released``: tables of which the last rows (those not in quarantine) went with an earlier batch.

    Not with this one: each bucket commits by itself, and a notification is in one bucket's transaction. A consumer
    that sees COMPLETED, and only then looks for the rows, finds them all.
    """
    for scan in released:
        if scan.quarantine:
            state.end(scan, notes.INCOMPLETE, f"{len(scan.quarantine)} ranges of keys could not be read or sent")
        else:
            state.end(scan, notes.SUCCEEDED if scan.rows_read else notes.EMPTY)
    for signal in state.completed_signals():
        state.notify(signal, notes.COMPLETED)
    end_pause(state)
