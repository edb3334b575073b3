"""The engine of the snapshot algorithm: it computes the state at the end of the next batch.

Its input is the state at the end of the last batch and what the planner has learned since. Its steps, in this order:

    quarantine  rows that Kafka refused in the last batch               -> keys in quarantine
    complete    tables and signals whose last rows went earlier         -> notifications
    leave out   tables that the settings do not capture any more        -> windows dropped, notifications
    receive     manifests of chunks that were read since the last batch -> windows with rows, or ranges to read again
    observe     DDL and TRUNCATE in this batch's events                 -> windows dropped, ranges to read again
    obey        the signals in this batch                               -> tables queued or stopped; a pause; new limits
    release     windows whose high watermark a batch's end has reached  -> parts of their rows, within the budget
    plan        the chunks to read from now on                          -> questions about keys, new windows
    complete    signals whose last tables were empty or have ended      -> notifications

The engine has no side effects and no connections. It is a generator that asks questions (`questions`) and returns a
`Plan`. Its state is a `SnapshotContext`; Spark writes it ahead of the batch, inside the offset. The rules for sending a
row that a SELECT has read are in `window`; the engine applies them. `drive` shows how to run it:

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
from incsnap.snapshot.failures import MAX_QUARANTINED, Verdict, verdict
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
    ChunkResult,
    Window,
    disturbed_by,
    finished_by,
    finished_by_events,
    low_watermark_of,
    read_elsewhere,
    released_by,
    spoiled_by,
)
from incsnap.tables import TableId


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The facts that the planner has learned between two batches."""

    batch: int  #: number of the batch that is being planned
    end: StreamPosition  #: end of this batch's events
    server_uuid: str  #: name of the binlog that the tail reads now; "": not connected yet
    now_ms: int  #: time of the planning, in ms since 1970
    #: results of chunks that were read since the last batch, by window id
    results: Mapping[str, ChunkResult] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()  #: commands of the signals up to `end`, in order
    changes: tuple[SchemaChange, ...] = ()  #: every DDL and TRUNCATE between the last batch's end and `end`
    brings_tables: bool = False  #: whether one of `changes` may have brought a captured table, or given one a new name
    limits: Limits = field(default_factory=Limits)  #: sizes and numbers of chunks
    changed: frozenset[TableId] = frozenset()  #: tables with events between the last batch's end and `end`
    #: whether records have another form or other partitions now than those of the windows in flight
    outdated: bool = False
    release_bytes: int = 1 << 62  #: bytes of windows' records that the batch may send; it may always send one part
    #: Whether the stream has a backlog. Then no chunk is planned: each new window would have to be freed of the keys of
    #: the whole backlog.
    has_backlog: bool = False
    #: limits on reading in the settings, by name (see `throttle`)
    configured: Mapping[str, int] = field(default_factory=dict)
    loads: tuple[MeasuredLoad, ...] = ()  #: measured values for the limits in force
    #: tables that are read or wait, but that the settings do not capture any more
    uncaptured: frozenset[TableId] = frozenset()
    refused: tuple[RefusedRow, ...] = ()  #: rows that the last batch has left out
    #: keys of lists that could not be read alone, as JSON, by window id
    failed_keys: Mapping[str, str] = field(default_factory=dict)
    #: tables being read in whose key a statement has put another column, under the name of the former one
    replaced_keys: frozenset[TableId] = frozenset()
    #: tables that a tool has renamed or dropped, and whose copy takes their name with a later statement
    away: frozenset[TableId] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """The engine's result for one batch."""

    context: SnapshotContext  #: state at the end of the batch
    warned: tuple[Warned, ...]  #: warnings for the log
    #: Whether nothing changed and nothing is due. Without events such a batch need not run: it would take 50 ms of two
    #: processors from the chunk readers.
    idle: bool
    bounds: Mapping[str, Bound] = field(default_factory=dict)  #: limits on reading that are in force, by name
    held_back: HeldBack | None = None  #: limit because of which no chunk is planned; None if no load is above its limit

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the warnings."""
        return tuple(each.text for each in self.warned)


def next_context(context: SnapshotContext, facts: BatchFacts) -> Generator[Question, Answer, Plan]:
    """Plan batch `facts.batch`, and return the plan. `context` is the state at the end of the batch before it.

    Yield questions, and take their answers by `send`.
    """
    state = NextContext(context, facts.batch, facts.now_ms, facts.configured, facts.away)
    quarantine_refused(state, context, facts.refused)
    _complete(state, state.still_scanned(context.wholly_released()))
    _leave_out(state, facts.uncaptured)
    _receive(state, context, facts)
    _observe(state, facts)
    for command in facts.commands:
        obey(state, command)
    _release(state, facts)
    held = held_back(state.limits.bounds, facts.loads)
    if not (state.paused or facts.has_backlog or held):
        yield from plan_chunks(state, facts.limits, low_watermark_of(facts.end))
    _complete(state, ())
    after = state.finished()
    moved = after.planned or after.released or after.dropped or after.notifications
    return Plan(after, tuple(state.warned), after == context.settled() and not moved, state.limits.bounds, held)


def drive(asking: Generator[Question, Answer, Plan], answer: Callable[[Question], Answer]) -> Plan:
    """Run the generator of `next_context` to its end and return its plan. Call `answer` for every question."""
    try:
        question = next(asking)
        while True:
            question = asking.send(answer(question))
    except StopIteration as stop:
        plan: Plan = stop.value
        return plan


def awaited(context: SnapshotContext, results: Mapping[str, ChunkResult], server_uuid: str) -> BinlogPosition | None:
    """Return the end of the next batch that releases all windows in flight, or None if no window waits.

    That is the highest high watermark that these windows wait for in the binlog `server_uuid`. The planner stops
    reading events there. `context` is the state at the end of the last batch; `results` are those of its windows, by
    window id.
    """
    results_in_flight = [window.result or results.get(window.id) for window in context.in_flight if not window.passed]
    good = (result for result in results_in_flight if result and not result.error and result.server_uuid == server_uuid)
    return max((BinlogPosition(result.high_file, result.high_pos) for result in good), default=None)


def _leave_out(state: NextContext, uncaptured: frozenset[TableId]) -> None:
    """End the snapshots of tables that the settings do not capture. Nothing more is sent of them.

    Events of such a table are not captured, so no event could discard an outdated row of its windows.
    """
    if not uncaptured:
        return
    reason = "it is not captured any more"
    for signal, requests in state.abort(lambda request: request.table in uncaptured).items():
        names = comma_list([request.table for request in requests])
        state.notify(signal, notes.ABORTED, data_collections=names, reason=reason)
        state.warn(f"the snapshot of {names} ends, and nothing more is sent of it: {reason}", signal)
    end_pause(state)


def _receive(state: NextContext, context: SnapshotContext, facts: BatchFacts) -> None:
    """Put the results of chunks into their windows. From here on the offset has them.

    A chunk without a manifest is being read or waits for a reader. A chunk is read again if it could not be read, or if
    its high watermark is in another binlog than the tail's. It is also read again if its records are outdated, or if it
    has waited for too many batches.
    """
    good: dict[int, list[Window]] = {}
    bad: dict[int, str] = {}
    for window in context.in_flight:
        result = window.result or facts.results.get(window.id)
        # the table has ended: it is not captured any more, or another chunk has just failed
        if window.scan not in state.scans:
            state.dropped.append(window.id)
        elif result is None or window.result is not None:
            state.held.append(window)
        elif result.error:
            fail(state, window, result.error, facts.limits, facts.failed_keys.get(window.id, ""))
            if verdict(result.error) is not Verdict.READ_AGAIN:
                bad[window.scan] = result.error
        else:
            state.read(window, result.rows)
            window = replace(window, result=result, read_batch=facts.batch)
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
    """Whether the window has waited for its high watermark for too many batches because of a backlog.

    To read the chunk again after the backlog costs less than to free the window of the keys of so many batches.
    """
    waits = window.result is not None and not window.passed
    return waits and facts.batch - window.read_batch > facts.limits.held_batches


def _observe(state: NextContext, facts: BatchFacts) -> None:
    """Drop what was read of a table before a DDL or TRUNCATE, and let the engine ask for the table's columns again.

    Events drop what was read before them of a table whose rows nothing tells apart.

    A statement may move rows into a table without events (RENAME TABLE, EXCHANGE PARTITION). A table of which anything
    was planned is then read from its beginning, and no row that was read before is sent any more. The swap by a tool
    for online schema changes moves no rows in: the table has the same rows behind it. It goes on at its key, or from
    its beginning if its key has changed.

    A table also begins again if a column of its key is another column now. The key may have the same form as before.

    Deletions for keys without a row are allowed by the settings and by the tables that share the topic. So other
    settings and new tables ask again whether they are allowed, and the keys are read again.
    """
    if facts.outdated or facts.brings_tables:
        deleting = {scan.number for scan in state.scans.values() if scan.chosen.deletes}
        _read_again(state, lambda window: window.scan in deleting and not window.sent)
        for number in deleting:
            state.scans[number] = replace(state.scans[number], described=False, asked=0)
    for change in facts.changes:
        if change.moves_rows_in:
            for scan in [scan for scan in state.scans.values() if change.touches(scan.table)]:
                if scan.maximum is not None and not change.online.keeps(scan.table):
                    # A table that has moved away mostly ends when it is described: nothing has moved into it.
                    warns = not change.moves_away(scan.table)
                    state.begin_again(scan.number, "a statement has moved rows into it", warns=warns)
        _read_again(state, lambda window, change=change: spoiled_by(window, change))  # type: ignore[misc]
        if not change.truncates:
            for scan in [scan for scan in state.scans.values() if change.touches(scan.table)]:
                state.scans[scan.number] = replace(scan, described=False, asked=0)
    for scan in [scan for scan in state.scans.values() if scan.table in facts.replaced_keys]:
        if scan.maximum is not None:
            state.begin_again(scan.number, "a column of its key is another one now")

    _observe_events(state, facts)


def _observe_events(state: NextContext, facts: BatchFacts) -> None:
    """Drop windows that the batch's events have upset, because nothing tells their rows apart."""
    upset = {
        window.scan
        for window in state.held
        if not state.scans[window.scan].is_identified and disturbed_by(window, facts.changed)
    }
    _read_again(state, lambda window: window.scan in upset and disturbed_by(window, facts.changed))
    for number in sorted(upset):
        state.disturbed(number)


def _read_again(state: NextContext, bad: Callable[[Window], bool]) -> None:
    """Drop the held windows for which `bad` is true. Their ranges are read again."""
    before, state.held = state.held, []
    for window in before:
        if bad(window):
            state.read_again(window)
        else:
            state.held.append(window)


def _release(state: NextContext, facts: BatchFacts) -> None:
    """Send parts of windows in the order of planning, so that at most one window is cut.

    Rows are sent while paused, too. If a statement has changed the table and a part of its window was sent before, the
    rest of the window is sent at once. So is the rest before an event of a table whose rows nothing tells apart.
    """
    before, state.held = state.held, []
    budget = facts.release_bytes
    for window in before:
        if not released_by(window, facts.end, facts.server_uuid):
            state.held.append(window)
            continue
        parts = min(window.parts_left, budget // max(1, window.part_bytes))
        is_identified = state.scans[window.scan].is_identified
        if any(finished_by(window, change) for change in facts.changes) or (
            not is_identified and finished_by_events(window, facts.changed)
        ):
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
    # One IN_PROGRESS for each table and batch, not for each chunk: the chunks of a batch are sent together.
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
    """End the tables in `released`, and complete the signals of which no table is left.

    All rows of these tables, except those in quarantine, went with earlier batches. They must not go with this batch:
    each bucket commits by itself, and a notification is in one bucket's transaction. So a consumer that sees COMPLETED,
    and only then looks for the rows, finds them all.
    """
    for scan in released:
        if scan.quarantine:
            count = f"{'at least ' if len(scan.quarantine) >= MAX_QUARANTINED else ''}{len(scan.quarantine)}"
            state.end(scan, notes.INCOMPLETE, f"{count} ranges of keys could not be read or sent")
        else:
            state.end(scan, notes.SUCCEEDED if scan.rows_read or scan.absent else notes.EMPTY)
    for signal in state.completed_signals():
        state.notify(signal, notes.COMPLETED)
    end_pause(state)
