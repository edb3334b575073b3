"""An attempt to compare tables with their topics: whole tables first, then the keys that differ or changed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pymysql.connections import Connection
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.errors import ConfigError
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets
from incsnap.kafka.topic_ends import topic_ends
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.chunk_reader import TableLocked
from incsnap.planner.key_ranges import ranges_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.changed_keys import TableChanged
from incsnap.verify.compared_sides import MOST_KEYS, TooManyDiffer, too_many_keys
from incsnap.verify.evidence import Evidence
from incsnap.verify.kept_sides import KeptRange, KeptSides, compared_text
from incsnap.verify.kinds import OF_HISTORY
from incsnap.verify.naming import Naming
from incsnap.verify.progress import Progress
from incsnap.verify.proof import Low, RowPlace, TopicKey, observe
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.rounds import Limits, settle
from incsnap.verify.sampling import Sample
from incsnap.verify.table_side import VerifiedTable, when_unlocked
from incsnap.verify.topic_side import parts_between
from incsnap.verify.whole_tables import TopicCounts, WholeTables

log = logging.getLogger(__name__)

#: Rows of one SELECT.
_RANGE_ROWS = 200_000
#: What a report says about a table that a statement changed.
CHANGED = "A statement changed the table while it was compared."
#: What a report says about a table that cannot be read.
LOCKED = "Another session has locked the table, or a table of the same topic. Run the command again later."


@dataclass(frozen=True, slots=True)
class Resources:
    """The connections of a comparison, and its limits."""

    spark: SparkSession  #: session whose tasks read
    settings: Settings  #: settings of the table side
    client: ClientSettings  #: access to Kafka
    connection: Connection[Any]  #: connection to MySQL
    folder: Path  #: where both sides are kept
    sample: Sample  #: keys that are compared
    limits: Limits  #: how long keys are read again
    offsets: ConnectorOffsets | None  #: where a connector's offsets are; None: unknown
    lists_history: bool  #: whether keys are listed whose records were sent twice or back in time
    allowance: Allowance  #: what the comparison may use
    progress: Progress  #: what was read


def open_sides(resources: Resources, tables: Sequence[VerifiedTable], *, resume: bool) -> KeptSides:
    """Return where an attempt keeps what it reads. Raise ConfigError if there is nothing to resume."""
    server = watermarks.server_uuid(resources.connection)
    compared = compared_text([resources.settings.to_json(), server, repr(resources.sample), *map(repr, tables)])
    if not resume:
        return KeptSides.new(resources.folder, compared)
    sides = KeptSides.resumed(resources.folder, compared)
    gone = watermarks.purged(resources.connection) - (sides.low.executed if sides.low else GtidSet())
    if sides.low and gone:
        raise ConfigError(
            f"the server has purged binlog that the interrupted comparison needs: {gone}",
            "Run the command without --resume to begin again.",
        )
    return sides


class Course:
    """An attempt to compare tables."""

    def __init__(self, resources: Resources, tables: Mapping[str, Sequence[VerifiedTable]], kept: KeptSides) -> None:
        self._settings, self._client, self._connection = resources.settings, resources.client, resources.connection
        self._tables, self._kept, self._resources = tables, kept, resources
        self._members = [table for of_topic in tables.values() for table in of_topic]
        allowance, progress = self._resources.allowance, self._resources.progress
        self._locked_seconds = resources.limits.wait_seconds
        self._whole = WholeTables(
            resources.spark,
            self._settings,
            self._members,
            kept,
            self._resources.sample,
            allowance,
            progress,
            self._locked_seconds,
        )
        evidence = Evidence(self._client, self._settings.topic_prefix, self._resources.offsets)
        self._sides = LiveSides(
            self._connection, self._settings, self._client, tables, evidence, allowance, self._locked_seconds
        )
        self._naming = Naming(self._sides, self._settings, tables, evidence)
        self._counts: dict[str, TopicCounts] = {}
        self._rows: dict[str, int] = {}
        #: Topics whose oldest records are gone.
        self._cut: set[str] = set()

    def run(self, reports: Mapping[str, Sequence[TableReport]]) -> None:
        """Compare, and fill in the reports. Raise TableChanged if a statement changed a table.

        Raise TableLocked if a table is locked for longer than the topics are waited for. Raise ConfigError or
        TooManyChanges if too many keys differ or changed meanwhile.
        """
        try:
            seen = observe(self, None)
        except TooManyDiffer:
            changed = self._changed(self.low(), self.high())
            raise too_many_keys(max(MOST_KEYS + 1, len(changed)), len(changed)) from None
        changed = self._changed(seen.low, seen.high)
        keys = {*self._whole.differing(), *changed}
        self._resources.progress.begin("looking again at keys that differ or changed")
        log.info("%d keys differ or changed meanwhile; they are read again", len(keys))
        if len(keys) > MOST_KEYS:
            raise too_many_keys(len(keys), len(changed))
        self._sides.histories = self._whole.histories(self._client, keys)
        self._sides.facts = self._whole.facts()
        self._naming.note_snapshots()
        outcomes = settle(self._sides, keys, self._resources.limits, sleep=self._resources.allowance.sleep)
        for topic, of_topic in reports.items():
            counts = self._counts[topic]
            for report in of_topic:
                report.rows, report.gtid_set = self._rows.get(topic, 0), str(seen.low.executed)
                report.sent_twice, report.back_in_time = counts.sent_twice, counts.back_in_time
                if counts.unreadable:
                    report.refused = (
                        f"{counts.unreadable:,} records of {topic} do not have the form that FILE describes."
                    )
        self._naming.name(reports, outcomes, self._cut)
        if self._resources.lists_history and any(
            each.sent_twice or each.back_in_time for each in self._counts.values()
        ):
            self._list_history(reports)

    def _changed(self, low: Low, high: RowPlace) -> Collection[TopicKey]:
        """Return the keys that are compared and changed behind `low`.

        Raise TableChanged for a changed table, and TooManyChanges.
        """
        return self._sides.events(low, low.end, high, None, self._resources.sample).changed

    def _list_history(self, reports: Mapping[str, Sequence[TableReport]]) -> None:
        """Add the keys to the reports whose records were sent twice or back in time."""
        repeated = self._whole.repeated_keys(MOST_KEYS)
        if len(repeated) == MOST_KEYS:
            log.warning("Only %d of the keys that were sent twice or back in time are listed", MOST_KEYS)
        for (topic, key), counts in repeated.items():
            named = zip(OF_HISTORY, counts, strict=True)
            listed = [Difference(key, kind, note=f"{count} records") for kind, count in named if count]
            for report in reports[topic]:
                report.history += listed

    def compare_again(self, reports: Mapping[str, Sequence[TableReport]], keys: Collection[TopicKey]) -> None:
        """Compare keys that were sent again, and bring the reports up to date."""
        if not keys:
            return
        repaired = {topic: {key for name, key in keys if name == topic} for topic in reports}
        try:
            outcomes = settle(self._sides, keys, self._resources.limits, sleep=self._resources.allowance.sleep)
            before = [(report, again) for topic, again in repaired.items() for report in reports[topic] if again]
            counts = []
            for report, again in before:
                counts.append(sum(each.key in again for each in report.differences))
                report.differences = [each for each in report.differences if each.key not in again]
            self._naming.name(reports, outcomes, self._cut)
            for count, (report, again) in zip(counts, before, strict=True):
                if count:
                    report.repaired = count - sum(each.key in again for each in report.differences)
        except (TableChanged, TableLocked) as error:
            for topic, again in repaired.items():
                for report in reports[topic] if again else ():
                    report.refused = LOCKED if isinstance(error, TableLocked) else CHANGED

    # -- the sides of whole tables, for `observe`

    def low(self) -> Low:
        low = self._kept.low
        if low is None:
            low = self._sides.low()
            self._kept.note_low(low)
        return low

    def select(self, keys: None) -> None:
        known = catalog.row_counts(self._connection, [table.shape.id for table in self._members])
        counts = [known[table.shape.id] for table in self._members]
        ends, begins = self._topic_ends()
        self._resources.progress.expect(sum(counts), sum(end - begins[each] for each, end in ends.items()))
        if self._kept.ranges is None:
            self._kept.note_ranges([each for number, rows in enumerate(counts) for each in self._ranges(number, rows)])
        ranges = self._kept.ranges or ()
        parts = Counter(each.table for each in ranges)
        rows_of = {number: counts[number] // parts[number] // self._resources.sample.every for number in parts}
        self._rows = self._whole.read_tables(ranges, rows_of)
        self._resources.progress.know_rows()

    def topic(self, keys: None) -> None:
        if self._kept.topics is None:
            ends, begins = self._topic_ends()
            self._kept.note_topics(begins, ends)
        kept = self._kept.topics or ()
        ends = {(topic, partition): end for topic, partition, _, end in kept}
        begins = {(topic, partition): begin for topic, partition, begin, _ in kept}
        self._cut = {topic for (topic, _), begin in begins.items() if begin > 0}
        self._counts = self._whole.read_topics(self._client, parts_between(begins, ends))
        self._sides.ends = ends

    def high(self) -> RowPlace:
        return self._sides.high()

    def _topic_ends(self) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
        """Return the ends and the beginnings of the topics' partitions."""
        counts = {topic: of_topic[0].partitions for topic, of_topic in self._tables.items()}
        return topic_ends(self._client, counts), topic_ends(self._client, counts, first=True)

    def _ranges(self, number: int, rows: int) -> list[KeptRange]:
        count, table = rows // _RANGE_ROWS, self._members[number].shape.id
        if count <= 1:
            return [KeptRange(number)]
        ask = partial(ranges_of, self._connection, self._settings, table, count)
        parts = when_unlocked(table, self._locked_seconds, self._resources.allowance, ask)
        return [KeptRange(number, part.order, part.lower, part.upper) for part in parts]
