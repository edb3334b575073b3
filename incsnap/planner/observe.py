"""The planner's first step: it collects all that the next batch depends on and that cannot be computed.

Nothing of the batch is decided or written down here. The planner may find something else when it observes again. The
steps use four ports, in this order:

    chunk_port     the results of chunks that were read since the last batch
    stream_port    how far the stream has come, with the batch's events
    server_port    definitions of tables at the batch's end, and measured loads
    signal_port    the commands of signals up to the batch's end
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pymysql.connections import Connection

from incsnap.binlog.buffer_position import Advance
from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlRecord
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.config.topics import topics_of
from incsnap.ddl.online_tables import OnlineTables
from incsnap.envelope.seam import Seam
from incsnap.planner.asked_place import AskedPlaces
from incsnap.planner.batch_budget import BatchBudget
from incsnap.planner.chunk_port import ChunkPort
from incsnap.planner.chunk_readers import ReaderPort
from incsnap.planner.chunk_results import ChunkResults, failed_keys, refused_rows
from incsnap.planner.gap_lists import GapLists
from incsnap.planner.heartbeat import Heartbeat
from incsnap.planner.known_definitions import BatchKnowledge, KnownDefinitions
from incsnap.planner.new_tables import FilterFiles, NewTables, brings_tables
from incsnap.planner.old_rows import DefinedFiles, OldRows
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.planner.query_connection import QueryConnection
from incsnap.planner.replaced_keys import tables_with_replaced_keys
from incsnap.planner.server_port import ServerPort
from incsnap.planner.signal_inbox import SignalInbox
from incsnap.planner.signal_port import SignalPort
from incsnap.planner.start_snapshot import StartSnapshot
from incsnap.planner.stream_port import StreamPort
from incsnap.planner.topic_layout import Layouts
from incsnap.snapshot.engine import BatchFacts, Plan
from incsnap.snapshot.offset import Offset, OpenCounts
from incsnap.tables import TableDefaults

#: Seconds that the stream may be behind the server's commits, with more buffered than a batch takes. Beyond these no
#: chunk is planned: the keys of the whole backlog would have to be discarded from a new window.
_BEHIND_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Observed:
    """The facts that the next batch depends on, as they were observed."""

    advance: Advance  #: the batch's events, and where they end
    facts: BatchFacts  #: all that the engine decides by
    signal_positions: dict[str, Any]  #: position of each signal channel
    control: tuple[ControlRecord, ...]  #: records of schema changes and truncations, and a heartbeat that is due
    defaults: TableDefaults | None  #: DEFAULTs of columns, for schemas; None if the settings do not need them
    knowledge: BatchKnowledge | None  #: definitions of tables whose rows do not name their columns; None if all rows do
    #: Counts of the transaction that is open at the batch's end; None if no transaction is open or none is counted.
    counted: OpenCounts | None
    online: OnlineTables  #: tables of tools for online schema changes at the batch's end
    behind_seconds: float  #: seconds since the commit of the batch's last transaction; since 1970 if it has none


class Observer:
    """The observer of one planner, with its four ports.

    `readers` is the most chunks that are read at the same time. `Planner` explains `open_readers` and `run`.
    """

    def __init__(
        self,
        settings: Settings,
        buffers: WindowBuffers,
        queries: QueryConnection,
        layouts: Layouts,
        readers: int,
        open_readers: Callable[[Callable[[], None]], ReaderPort],
        definitions: KnownDefinitions,
        filters: FilterFiles,
        online: OnlineDdl,
        defined: DefinedFiles,
        run: str,
    ) -> None:
        query_seconds, topics = settings.mysql.query_timeout_seconds, partial(topics_of, settings)
        self._throttle = settings.snapshot.throttle
        self._columns = settings.columns
        self._included = settings.tables.included
        self._buffers = buffers
        self._queries = queries
        self._heartbeat = Heartbeat(settings)
        self._budget = BatchBudget(settings.snapshot, buffers.root, readers, query_seconds)
        self._chunks = ChunkPort(
            lambda wake: ChunkResults(open_readers(wake), buffers, readers, topics, query_seconds),
            layouts,
            record_form(settings),
        )
        self._stream = StreamPort(settings, self._budget, self._heartbeat)
        self._server = ServerPort(settings, queries, definitions)
        self._online = online
        inbox = SignalInbox(settings.signals, settings.topic_prefix)
        start_snapshot = StartSnapshot(settings.snapshot, settings.tables, run)
        new_tables = NewTables(settings.snapshot, settings.tables, filters)
        gap = GapLists(settings.snapshot, Files(buffers.root))
        places = AskedPlaces(settings, Files(buffers.root))
        old_rows = OldRows(settings.snapshot, settings.tables, settings.columns, defined)
        signal_table = settings.signals.data_collection
        self._signals = SignalPort(
            inbox,
            start_snapshot,
            new_tables,
            gap,
            places,
            old_rows,
            settings.tables,
            signal_table,
            leaves_out_tools=online.leaves_out,
        )
        #: Whether a measured load held chunks back in the last planning.
        self._held_back = False

    @property
    def is_quiet(self) -> bool:
        """Whether nobody has written for a while (`BatchBudget.is_quiet`)."""
        return self._budget.is_quiet

    def observe(self, start: Offset, tail: Tail, connection: Connection[Any], seam: Seam | None) -> Observed:
        """Return all that the batch after `start` depends on. Wait a moment for changes if there is nothing to do.

        `seam`: the records behind `start` that another engine has sent.
        """
        self._budget.measure()
        full_speed = self._budget.reads_at_full_speed
        outdated, results = self._chunks.arrived(start, tail.wake, full_speed=full_speed)
        advance = self._stream.advance(start, tail, results, held_back=self._held_back)
        if not outdated and (late := self._chunks.arrived_late(start)):
            # These results have ended the wait. In the next batch they would come 75 to 100 ms later, after a batch
            # that releases nothing.
            results.update(late)
            advance = self._stream.advance(start, tail, results, held_back=self._held_back)
        advance, online, reports = self._online.follow(
            start, advance, tail, connection, same_server=self._queries.leads_to(advance.end)
        )
        behind_seconds = time.time() - advance.last_ts_us / 1e6
        has_backlog = advance.full and behind_seconds > _BEHIND_SECONDS
        knowledge = self._server.knowledge(start, advance, tail, connection, has_backlog=has_backlog)
        unnamed = {each.table for each in advance.unnamed}
        of_rows = knowledge.definitions.of_rows(unnamed) if knowledge is not None else ()
        asking = None if has_backlog else self._server.asking(advance, tail, connection)
        commands, positions = self._signals.commands(
            start, advance, connection, of_rows, self._server.charsets, online, asking, seam.least if seam else None
        )
        facts = BatchFacts(
            batch=start.batch + 1,
            end=advance.end,
            server_uuid=advance.end.server_uuid,
            loads=self._server.loads(start.snapshot, advance, behind_seconds),
            now_ms=time.time_ns() // 1_000_000,
            results=results,
            commands=(*reports, *(knowledge.commands if knowledge is not None else ()), *commands),
            changed=frozenset(advance.tables),
            changes=advance.changes,
            brings_tables=any(brings_tables(change, self._included) for change in advance.changes),
            limits=self._budget.limits,
            outdated=outdated,
            release_bytes=self._budget.release_bytes,
            has_backlog=has_backlog,
            configured=self._throttle,
            uncaptured=self._signals.uncaptured(start.snapshot, online),
            refused=refused_rows(self._buffers, start),
            failed_keys=failed_keys(self._buffers, start, results),
            replaced_keys=tables_with_replaced_keys(start.snapshot.scans, advance.changes, self._columns),
            away=frozenset(online.away),
        )
        statements = self._server.statement_records(start, advance, tail, connection, seam, online)
        return Observed(
            advance,
            facts,
            positions,
            (*statements, *self._heartbeat.records()),
            self._server.defaults(advance, connection),
            knowledge,
            self._stream.open_counts(start, advance.end, tail, of_rows, self._server.charsets),
            online,
            behind_seconds,
        )

    def decided(self, observed: Observed, plan: Plan) -> None:
        """Note whether a load has held chunks back in this plan.

        If so, the next planning waits for changes as long as one without work. Otherwise the planner would ask for the
        load again and again, and keep a core busy.
        """
        self._held_back = bool(observed.facts.loads) and plan.held_back is not None

    def begin(self, end: Offset, advance: Advance) -> None:
        """Order the chunks of the batch that was observed. Its end, `end`, is on the disk."""
        self._signals.begin()
        self._chunks.order(end)
        self._budget.begin(end, advance.bytes)

    def close(self) -> None:
        """Close the connections and end the threads."""
        for port in (self._chunks, self._server, self._signals, self._heartbeat):
            port.close()
