"""The planner: it decides where each batch ends and what the batch does.

One `Planner` lives in Spark's source process for the whole query. Spark calls three methods:

    plan(start)          returns the offset at the end of the next batch, or `start` if there is nothing to do
    parts(start, end)    returns what the tasks of that batch do
    committed(end)       frees the memory and deletes the files of a batch that is done

A batch is planned in three steps. `observe` collects everything that the batch depends on (`Observed`). The pure engine
in `snapshot` decides what the batch does (`Plan`). `persist` writes the decision to the disk (`Offset`).

The parts follow from the two offsets, the binlog between them and the files that they name. So a repeated batch gives
the same bytes. The server's list of collations is read as well; it depends only on the server's version.

There is one exception. A batch was planned under settings whose schemas show no DEFAULTs, and is repeated under
settings whose schemas show them. Then the server is asked for the present DEFAULTs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from pymysql.connections import Connection

from incsnap.binlog.tail import Tail
from incsnap.binlog.time_search import gtids_before
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.taken_over import TakenOver, taken_over
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.settings import Settings
from incsnap.errors import ConfigError, shorten
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.monitoring.log_format import about
from incsnap.monitoring.planner_report import Planned, Reporter
from incsnap.monitoring.snapshot_view import limits_of, waits_for
from incsnap.mysql import watermarks
from incsnap.mysql.catalog import tables
from incsnap.mysql.column_defaults import KnownDefaults
from incsnap.mysql.online_tables import refuse_half_swap, tables_of_tools
from incsnap.mysql.preflight import NO_RECOVERY
from incsnap.mysql.session import connect, dial
from incsnap.mysql.start_place import READ_TABLES, require_sendable, start_gtids
from incsnap.planner.answers import Answers
from incsnap.planner.batch import batch_parts
from incsnap.planner.boundary_search import BoundarySearch
from incsnap.planner.chosen_rows import ChosenRowsOf
from incsnap.planner.chunk_readers import ReaderPort
from incsnap.planner.definition_files import definition_files
from incsnap.planner.definitions import DefinitionsAt
from incsnap.planner.known_definitions import KnownDefinitions
from incsnap.planner.new_tables import FilterFiles, first_filter
from incsnap.planner.observe import Observed, Observer
from incsnap.planner.old_rows import defined_files
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.planner.persist import PlannedBatches, behind_taken
from incsnap.planner.prepared_xa import PreparedXas, first_place
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.schema_changes import capture_options
from incsnap.planner.server_definitions import first_definitions
from incsnap.planner.start_snapshot import first_positions
from incsnap.planner.topic_layout import layouts_of
from incsnap.snapshot.commands import SetThrottle
from incsnap.snapshot.engine import Plan, drive, next_context
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableDefaults, TableShape
from incsnap.tasks.partitions import BatchPart

log = logging.getLogger(__name__)

#: Seconds after which an offset takes in transactions without captured changes. Otherwise a restart would ask for
#: binlog files that were purged long ago.
_MOVE_SECONDS = 10.0


class Planner:
    """The planner of one query, with its connections and threads.

    `slices` is the most tasks that decode the binlog of one batch. `readers` is the most chunks that are read at the
    same time. `open_readers` returns the chunk readers, and they call its argument whenever a chunk has been read.
    `report_path` is the file of the reports for the driver; "" means no reports. `StartSnapshot` explains `run`.
    """

    def __init__(
        self,
        settings: Settings,
        buffers: WindowBuffers,
        slices: int,
        readers: int,
        open_readers: Callable[[Callable[[], None]], ReaderPort],
        report_path: str = "",
        run: str = "",
    ) -> None:
        self._settings = settings
        self._slices = slices
        self._report_path = report_path
        self._reporter: Reporter | None = None
        self._tail: Tail | None = None
        self._queries = QueryConnection(settings.mysql)
        self._boundaries: BoundarySearch | None = None
        self._layouts = layouts_of(settings)
        files = Files(buffers.root)
        self.offsets = KeptOffsets(files)
        self._xa = PreparedXas(settings, files)
        kept, filters, defined = definition_files(files), FilterFiles(files), defined_files(files)
        self._chosen = ChosenRowsOf(settings, files)
        self._online = OnlineDdl(settings, files)
        self._definitions = KnownDefinitions(settings, self._queries, kept)
        self._observer = Observer(
            settings,
            buffers,
            self._queries,
            self._layouts,
            readers,
            open_readers,
            self._definitions,
            filters,
            self._online,
            defined,
            run,
        )
        self._batches = PlannedBatches(
            settings,
            buffers,
            self.offsets,
            self._layouts,
            self._xa,
            kept,
            filters,
            defined,
            self._chosen.lists,
            self._online,
        )
        self._has_recalled = False
        self._repeats = True
        self._moved_at = time.monotonic()

    # -- called by Spark

    def plan(self, start: Offset) -> Offset:
        """Return the end of the batch after `start`, which is on the disk by then; `start` itself if there is nothing
        to do.

        The first call returns the end that an earlier process has planned, if there is one.
        """
        if not self._has_recalled:
            self._has_recalled = True
            planned = self._batches.recall(start)
            if planned is not None:
                return planned
        tail = self._tail_from(start)
        # Each batch writes some files. On a store that charges for files, one batch takes all changes of an interval.
        time.sleep(max(0.0, self._moved_at + self._settings.batch_interval_ms / 1000 - time.monotonic()))
        if self._reporter is not None:
            self._reporter.batch_asked()
        connection = self._queries.open()
        self._xa.ask_server(start, connection, same_server=self._queries.leads_to(start.stream))
        observed = self._observer.observe(start, tail, connection, self._batches.seam(start))
        plan = self._decide(start, observed, tail, connection)
        self._observer.decided(observed, plan)
        if self._queries.follow(observed.advance.end.server_uuid) and self._boundaries is not None:
            self._boundaries.begin_again()
        if plan.idle and not self._is_worth_a_batch(start, observed, tail):
            self._report(start, observed, plan, is_batch=False)
            return start
        end = self._batches.write(start, observed, plan, tail)
        self._moved_at = time.monotonic()
        self._observer.begin(end, observed.advance)
        self._report(end, observed, plan, is_batch=True)
        return end

    def parts(self, start: Offset, end: Offset) -> list[BatchPart]:
        """Return what the tasks of the batch between two offsets do; an empty list if both offsets are of the same
        batch."""
        if self._repeats:  # an earlier process may have planned the first batch
            self._repeats = False
            self._layouts.ready(end.layout)
        if end.batch == start.batch:
            return []
        tail = self._tail_from(start)
        return batch_parts(
            self._settings,
            self._slices,
            self._queries.charsets,
            tail,
            self._batches.control,
            self._defaults(start, end, tail),
            start,
            end,
            self._definitions_of_rows(start, end, tail),
            self._batches.seam(start),
        )

    def committed(self, end: Offset) -> None:
        """Free the memory and delete the files of the batch that ends at `end` and is done."""
        if self._tail is not None:
            self._tail.forget(end.stream)
        self._batches.forget(end)

    def close(self) -> None:
        """Close the connections and end the threads."""
        for each in (self._reporter, self._observer, self._boundaries, self._xa, self._tail, self._queries):
            if each is not None:
                each.close()

    # -- steps

    def _tail_from(self, start: Offset) -> Tail:
        """Return the tail. The first call starts the tail at `start`, and creates the searches and the reporter."""
        if self._tail is None:
            settings = self._settings
            follows = self._definitions.follows_statements(start.definitions, self._queries.open())
            self._online.begin(start, self._queries.open())
            self._tail = Tail(
                partial(dial, settings.mysql),
                settings.mysql.server_id,
                start.stream,
                settings.tables.included,
                settings.signals.data_collection if "source" in settings.signals.channels else None,
                settings.max_queue_bytes,
                damaged=settings.failures.processing,
                options=capture_options(
                    settings, self._queries.charsets, follows=follows, online=self._online.at(start)
                ),
                prepared=self._xa.transactions_from(start),
            )
            online = self._online.at(start)
            self._xa.search(start, self._tail, frozenset() if online is None else online.names())
            self._boundaries = BoundarySearch(settings.mysql, settings.columns, self._tail.wake, self._chosen)
            if self._report_path:
                open_connection = partial(connect, settings.mysql, read_timeout=10.0)
                self._reporter = Reporter(
                    self._report_path, start, open_connection, self._tail.condition, settings.max_queue_bytes
                )
        return self._tail

    def _decide(self, start: Offset, observed: Observed, tail: Tail, connection: Connection[Any]) -> Plan:
        """Return the engine's plan for what was observed, and log its warnings and notifications.

        The engine asks the server for keys while it plans chunks. Nothing is written to the disk.
        """
        end = observed.advance.end
        definitions = DefinitionsAt(connection, tail, end, self._queries.leads_to(end))
        answers = Answers(
            connection,
            self._settings.columns,
            self._boundaries,
            is_missing=definitions.is_missing,
            chosen=self._chosen,
            is_quiet=self._observer.is_quiet,
        )
        plan = drive(next_context(start.snapshot, observed.facts), answers)
        for warned in plan.warned:
            log.warning("%s", warned.text, extra=about(warned.signal))
        is_whole = "log" in self._settings.notifications.channels
        for notification in plan.context.notifications:
            if text := notification.line(self._settings.topic_prefix) if is_whole else notification.summary():
                log.info("%s", text, extra=about(notification.id))
        for command in observed.facts.commands:
            if isinstance(command, SetThrottle):
                limits = ", ".join(f"{bound.name} {bound.most:,}" for bound in plan.bounds.values())
                log.info("Limits of snapshots from now on, by signal %s: %s", command.id, limits or "none")
        return plan

    def _report(self, offset: Offset, observed: Observed, plan: Plan, *, is_batch: bool) -> None:
        """Hand the result of this planning to the reporter. `offset` is the end of the newest batch."""
        if self._reporter is None:
            return
        advance, facts = observed.advance, observed.facts
        limits = limits_of(plan, facts)
        why = waits_for(plan.context, facts.now_ms, observed.behind_seconds if facts.has_backlog else None, limits)
        failed = sum(bool(result.error) for result in facts.results.values())
        report = Planned(offset, advance.end, advance.last_ts_us, advance.full, why, failed, limits)
        self._reporter.planned(report, is_batch=is_batch, notifications=plan.context.notifications)

    def _is_worth_a_batch(self, start: Offset, observed: Observed, tail: Tail) -> bool:
        """Whether a batch is needed although the snapshot has nothing to do."""
        if observed.advance.events or observed.control or observed.signal_positions != start.signal_positions:
            return True
        if self._definitions.is_news(start.definitions, observed.advance, observed.knowledge):
            return True
        if self._xa.is_worth_a_batch(start, observed.advance, tail):
            return True
        moved = observed.advance.end.delivered != start.stream.delivered
        return moved and time.monotonic() - self._moved_at > _MOVE_SECONDS

    def _defaults(self, start: Offset, end: Offset, tail: Tail) -> TableDefaults:
        """Return the DEFAULTs of columns, and how columns were defined, for the tables of the batch.

        The server is asked only if the batch was planned without them. Return () if the settings do not need them.
        """
        if not self._settings.asks_for_columns:
            return ()
        touched = tail.contents(start.stream, end.stream).tables
        if not end.defaults:
            return KnownDefaults(definitions=self._settings.columns.needs_definitions).learned(
                self._queries.open(), touched, ()
            )
        return tuple(each for each in self._batches.defaults.read(end.defaults) if each[0] in touched)

    def _definitions_of_rows(self, start: Offset, end: Offset, tail: Tail) -> tuple[TableShape, ...]:
        """Return the definitions of the tables whose rows in the batch do not name their columns."""
        if not end.definitions:
            return ()
        unnamed = tail.contents(start.stream, end.stream).unnamed
        return self._definitions.of_batch(end.definitions, {each.table for each in unnamed})


def _start_place(settings: Settings, connection: Connection[Any]) -> GtidSet | None:
    """Return the transactions before the place that the settings name; None if they name none."""
    if not settings.start.is_given:
        return None
    if settings.start.time_us:
        return gtids_before(partial(dial, settings.mysql), settings.mysql.server_id, settings.start.time_us)
    return start_gtids(connection, settings.start)


def first_position(settings: Settings, buckets: int, files: Files | None = None) -> Offset:
    """Return the first offset of a new job: behind all that the server has executed now, or at the place in the
    settings, or where another engine has stopped (`checkpoint.taken_over`).

    Rows from before that place come by snapshot. `buckets` is how many buckets the job has. `files` is incsnap's part
    of the checkpoint. The lists that choose the captured tables are written there. If rows do not name their columns,
    the definitions of tables are written there too. Without `files` the first batch does both. Raise ConfigError if the
    place is refused, or if `snapshot.mode` is `recovery`. Raise PreflightFailed as `refuse_half_swap` does.
    """
    taken = taken_over(files) if files is not None else None
    if settings.snapshot.mode == "recovery" and taken is None:
        raise ConfigError(NO_RECOVERY.problem, NO_RECOVERY.repair)
    with closing(connect(settings.mysql)) as connection:
        place = _start_place(settings, connection) if taken is None else _place_of(taken, settings, connection)
        executed, sought = first_place(connection, place)
        logged = None if taken is None else watermarks.high_watermark(connection)
        existing = tables(connection, settings.tables)
        of_tools = tables_of_tools(connection, settings)
        layout = layouts_of(settings).first(buckets, of_tools.without_tables_of_tools(existing))
        # No file and position: the binlog's end may lie behind transactions that are not executed yet and that the
        # server will still send. A position must never claim what was not delivered. The tail knows its position after
        # the first event.
        stream, definitions, online = StreamPosition(executed, "", 0), "", ""
        if place is None:
            refuse_half_swap(connection, settings, of_tools)
        if files is not None and place is None:
            definitions = first_definitions(settings, definition_files(files), connection, stream)
            online = OnlineDdl(settings, files).keep(of_tools)
    positions = first_positions(settings.snapshot) if taken is None or taken.reads_tables else {}
    if files is not None:
        positions |= first_filter(settings.tables, FilterFiles(files))
    job = uuid4().hex
    log.info("The new job %s begins after the transactions %s", job, shorten(executed) or "none")
    first = Offset(job, 0, stream, layout, signal_positions=positions, sought=sought, definitions=definitions)
    first = replace(first, online=online)
    if taken is None or files is None or logged is None:
        return first
    return behind_taken(first, taken, files, logged)


def _place_of(taken: TakenOver, settings: Settings, connection: Connection[Any]) -> GtidSet:
    """Return the transactions before the place of another engine.

    Raise ConfigError if the place is of another `topic.prefix`, or if the server cannot send what follows.
    """
    if taken.prefix != settings.topic_prefix:
        raise ConfigError(
            f"{settings.checkpoint_location} is for a take-over of the connector with topic.prefix {taken.prefix}",
            "Set topic.prefix to that value, or give this job a checkpoint.location of its own.",
        )
    delivered = GtidSet.parse(taken.delivered)
    require_sendable(connection, delivered, "the place of the take-over", READ_TABLES)
    return delivered
