"""The planner's last step: a batch is written down before Spark has it, so that it can be run again as it is.

The offset is the state; what is too long for it lies in files that it names. All of them are on the disk before it is.
"""

from __future__ import annotations

from dataclasses import replace

from incsnap.binlog.tail import Tail
from incsnap.checkpoint.control_records import ControlFiles
from incsnap.checkpoint.files import Files
from incsnap.checkpoint.offsets import KeptOffsets
from incsnap.checkpoint.planned import recall, remember
from incsnap.checkpoint.spark_log import SparkLog
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.checkpoint.windows import WindowBuffers
from incsnap.config.record_form import record_form
from incsnap.config.settings import Settings
from incsnap.planner.choices import planned_with
from incsnap.planner.known_definitions import DefinitionFiles
from incsnap.planner.observe import Observed
from incsnap.planner.prepared_xa import PreparedXas
from incsnap.planner.topic_layout import Layouts
from incsnap.planner.window_readings import delete_spent
from incsnap.snapshot.engine import Plan
from incsnap.snapshot.offset import Offset
from incsnap.tables import TableDefaults


class PlannedBatches:
    """What is beside the checkpoint of the batches that are planned: written, found again and deleted by one planner.

    ``control``, ``defaults`` and ``definitions`` are the files that the parts of a batch are made of, besides the
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

    def recall(self, start: Offset) -> Offset | None:
        """The end of the batch behind ``start`` where an earlier life has planned it. Asked once in a life, before
        anything is written; what earlier lives have left and nobody needs is deleted."""
        planned = recall(self._files, self._offsets, start)
        self._xa.adopt(start, planned)
        if planned is None:
            self._spark_log.force()  # what is deleted now must not be asked for after a power cut
            # Cut short lives left some. Only now: the batch that Spark repeats first has read what it releases.
            self._buffers.delete_orphans([window.id for window in start.snapshot.in_flight])
        return planned

    def write(self, start: Offset, observed: Observed, plan: Plan, tail: Tail) -> Offset:
        """The end of the batch behind ``start``, which is on the disk then with all that it names; the topics that the
        batch writes to are there."""
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
        )
        end = self._xa.after(start, end, advance, tail)
        self._spark_log.force()
        remember(self._files, self._offsets, end, self._planned_with)
        return end

    def forget(self, end: Offset) -> None:
        """The batch that ends there is done: what it was the last to need goes."""
        self.control.forget(end.batch)
        self.defaults.forget(end.defaults, end.batch)
        self.definitions.forget(end.definitions, end.batch)
        self._xa.forget(end.batch)
        delete_spent(self._buffers, end)
        self._offsets.forget(end)
