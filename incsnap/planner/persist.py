"""The planner's last step: it writes a batch down before Spark has it, so that the batch can be repeated as it is.

The offset is the whole state. What is too long for the offset lies in files that the offset names. All these files are
on the disk before the offset is.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.key_lists import KeyLists, lists_of
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned_batch import recall, remember
from incsnap.checkpoint.spark_log import SparkLog
from incsnap.checkpoint.taken_over import TakenOver
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.envelope.seam import RecordPlace, Seam
from incsnap.errors import OffsetError
from incsnap.events import file_number, server_of
from incsnap.planner.choices import planned_with
from incsnap.planner.chunk_results import delete_spent
from incsnap.planner.definition_files import DefinitionFiles
from incsnap.planner.new_tables import FilterFiles
from incsnap.planner.observe import Observed
from incsnap.planner.old_rows import DefinedFiles, defined_file_of
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.planner.prepared_xa import PreparedXas
from incsnap.planner.rolled_back_xa import warn_of_sent_rows
from incsnap.planner.topic_layout import Layouts
from incsnap.snapshot.engine import Plan
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableDefaults

_log = logging.getLogger(__name__)


class PlannedBatches:
    """The planned batches of one planner: their ends and the files beside the checkpoint that these ends name.

    `control`, `defaults`, `definitions` and `seams` are files from which the parts of a batch are made, besides the
    binlog.
    """

    def __init__(
        self,
        settings: Settings,
        buffers: WindowBuffers,
        offsets: KeptOffsets,
        layouts: Layouts,
        xa: PreparedXas,
        definitions: DefinitionFiles,
        filters: FilterFiles,
        defined: DefinedFiles,
        key_lists: KeyLists,
        online: OnlineDdl,
    ) -> None:
        files = Files(buffers.root)
        self._files = files
        self._buffers = buffers
        self._offsets = offsets
        self._layouts = layouts
        self._xa = xa
        self._spark_log = SparkLog(settings.checkpoint_location)
        self._planned_with = planned_with(settings)
        self._form = record_form(settings)
        self.control = ControlFiles(files)
        self.defaults = ValueFiles(files, "defaults", "the DEFAULTs of columns", TableDefaults)
        self.definitions = definitions
        self.seams = _seams(files)
        self._filters = filters
        self._defined = defined
        self._key_lists = key_lists
        self._online = online

    def recall(self, start: Offset) -> Offset | None:
        """Return the end of the batch after `start` if an earlier process has planned it, else None.

        Call this once in a process, before anything is written. Delete files of earlier processes that nobody needs.
        Keep their windows if Spark repeats a batch: that batch may send them.
        """
        planned = recall(self._files, self._offsets, start)
        self._xa.adopt(start, planned)
        if planned is None:
            self._spark_log.force()  # after a power cut nobody may ask for what is deleted now
            # Processes that were cut short have left windows. Delete them only now: the batch that Spark repeats first
            # has read the windows that it releases.
            self._buffers.delete_orphans([window.id for window in start.snapshot.in_flight])
        return planned

    def write(self, start: Offset, observed: Observed, plan: Plan, tail: Tail) -> Offset:
        """Write down the batch after `start`, and return its end.

        By then the end and the files that it names are on the disk, and the topics that the batch writes to exist.
        """
        advance, batch = observed.advance, start.batch + 1
        control = self.control.write(batch, observed.control)
        touched = {*advance.tables, *plan.context.tables_written_to()}
        end = replace(
            start,
            batch=batch,
            stream=advance.end,
            layout=self._layouts.of(start.layout, touched, control),
            snapshot=plan.context,
            signal_positions=observed.signal_positions,
            counted=observed.counted,
            control=control,
            form=self._form,
            defaults="" if observed.defaults is None else self.defaults.keep(observed.defaults),
            definitions="" if observed.knowledge is None else self.definitions.keep(observed.knowledge.definitions),
            online=self._online.keep(observed.online),
        )
        end = self._xa.after(start, end, advance, tail)
        warn_of_sent_rows(advance.marks, self.seam(start))
        seam = seam_behind(end, self.seam(end))
        end = replace(end, seam=self.seams.keep(seam) if seam is not None else "")
        self._spark_log.force()
        remember(self._files, self._offsets, end, self._planned_with)
        return end

    def seam(self, offset: Offset) -> Seam | None:
        """Return which records behind `offset` another engine has sent; None for none."""
        return self.seams.read(offset.seam) if offset.seam else None

    def forget(self, end: Offset) -> None:
        """Delete what the batch that ends at `end` was the last to need. The batch is done."""
        self.control.forget(end.batch)
        self.defaults.forget(end.defaults, end.batch)
        self.definitions.forget(end.definitions, end.batch)
        self.seams.forget(end.seam, end.batch)
        self._online.forget(end)
        self._filters.forget(end)
        self._defined.forget(defined_file_of(end), end.batch)
        self._key_lists.forget(lists_of(end.snapshot), end.batch)
        self._xa.forget(end.batch)
        delete_spent(self._buffers, end)
        self._offsets.forget(end)


def seam_behind(end: Offset, seam: Seam | None) -> Seam | None:
    """Return the seam for the batches behind `end`; None once the stream is past the seam.

    The rows of an XA transaction that is prepared before the seam come at its XA COMMIT, with their old places. So the
    seam counts until each such transaction has ended. One that is prepared in a later binlog file does not count: its
    user may have forgotten it.
    Raise OffsetError if the stream comes from another server, whose places cannot be compared.
    """
    if seam is None:
        return None
    server = server_of(end.stream.server_uuid)
    if server not in ("", seam.server_uuid):
        raise OffsetError(
            f"the binlog is that of server {server} now, but the place where another engine had stopped is in that"
            f" of {seam.server_uuid}, and the stream has not passed it",
            "Set database.hostname to the server of the take-over until the stream has passed that place.",
        )
    # Both places are exclusive. On an idle server the stream stands exactly at the binlog's end.
    is_past = RecordPlace(file_number(end.stream.file), end.stream.pos) >= max(seam.last, seam.asked or seam.last)
    waits = end.sought or any(seam.may_have_rows_of(each.file) for each in end.prepared)
    if is_past and not end.stream.open_gtid and not waits:
        _log.info("The stream has passed what a connector had sent, at %s:%d", end.stream.file, end.stream.pos)
        return None
    return seam


def behind_taken(first: Offset, taken: TakenOver, files: Files, logged: tuple[str, int]) -> Offset:
    """Return the first offset of a job that takes over from another engine.

    `first` is the offset without the other engine's seam, snapshots and signals. `files` is incsnap's part of the
    checkpoint. `logged`: the binlog's end, asked for behind the prepared XA transactions of `first`.
    """
    file, pos = logged
    seam, stream = replace(taken.seam, asked=RecordPlace(file_number(file), pos)), first.stream
    if (begun := seam.begins_in) is not None:
        stream = replace(stream, open_gtid=begun.gtid, events_done=begun.events)
    positions = dict(first.signal_positions)
    if taken.signals_at is not None:
        positions["kafka"] = taken.signals_at
    return replace(
        first,
        stream=stream,
        seam=_seams(files).keep(seam),
        snapshot=replace(first.snapshot, queue=taken.requests),
        signal_positions=positions,
    )


def _seams(files: Files) -> ValueFiles[Seam]:
    return ValueFiles(files, "seams", "what another engine has sent", Seam)
