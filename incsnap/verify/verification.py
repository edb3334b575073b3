"""The course of `incsnap verify`: whole tables first, then the keys that differ or changed, then the names of what is
wrong."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pymysql.connections import Connection
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.config.topics import tables_by_topic, topics_of
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import connect, query
from incsnap.planner.key_ranges import RangePart, ranges_of
from incsnap.tables import TableId, TableShape
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides
from incsnap.verify.changed_keys import TableChanged
from incsnap.verify.evidence import Evidence
from incsnap.verify.kinds import OF_HISTORY
from incsnap.verify.naming import Naming
from incsnap.verify.proof import TopicKey, observe
from incsnap.verify.record_reading import for_table
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.rounds import Limits, settle
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import parts_between, topic_ends
from incsnap.verify.verified_tables import choose, refusals_of_repair, shapes_to_compare, without_defaults
from incsnap.verify.whole_tables import TopicCounts, WholeTables

log = logging.getLogger(__name__)

#: Rows of one SELECT.
_RANGE_ROWS = 200_000
#: How often a table is begun again because a statement changed it meanwhile.
_ATTEMPTS = 3
#: Most keys that are read again one by one.
_MOST_KEYS = 500_000
_CHANGED = "A statement changed the table while it was compared."


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of what is compared, how long the topics are waited for, and what the comparison may use."""

    tables: tuple[str, ...] = ()  #: names; empty: all captured tables
    sample: int = 1  #: one key in so many
    limits: Limits = field(default_factory=Limits)  #: how long keys are read again
    offsets: ConnectorOffsets | None = None  #: where a connector's offsets are; None: unknown
    lists_history: bool = False  #: whether keys are listed whose records were sent twice or back in time
    allowance: Allowance = field(default_factory=Allowance)  #: what the comparison may use
    number: int = 0  #: which of the samples, from 0 on


#: Lets somebody repair what reports name, and returns the keys that are to be compared again. The text is the uuid of
#: the server that was compared.
Repair = Callable[[Sequence[TableReport], str], Collection[TopicKey]]


def verify_tables(
    spark: SparkSession, settings: Settings, choice: Choice, repair: Repair | None = None
) -> list[TableReport]:
    """Compare the captured tables with their topics, and return the answer for each.

    With `repair` the answer is that after the repair: keys that it returns are compared again. Raise ConfigError if a
    named table is not captured or does not exist, and ServerUnreachable. Raise VerificationStopped if the allowance
    ends the comparison.
    """
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    with closing(connect(settings.mysql)) as connection:
        captured = catalog.tables(connection, settings.tables)
        named = [table for table in captured if not choice.tables or str(table) in choice.tables]
        if unknown := set(choice.tables) - {*map(str, named)}:
            raise ConfigError(f"not a captured table: {', '.join(sorted(unknown))}", "Name tables as database.table.")
        owners = tables_by_topic(settings, captured)
        shapes = shapes_to_compare(connection, settings, captured)
        chosen = choose(connection, settings, shapes, owners, named)
        executed = str(watermarks.executed(connection))
        reports = [
            _report(settings, shape, owners, chosen.refused.get(table, ""), executed)
            for table, shape in shapes.items()
            if table in named
        ]
        by_topic: dict[str, list[TableReport]] = {topic: [] for topic in chosen.by_topic}
        for report in reports:
            if report.topic in by_topic and not report.refused:
                by_topic[report.topic].append(report)
        if chosen.by_topic:
            course = _compare(spark, for_table(settings), client, connection, chosen.by_topic, by_topic, choice)
            if course is not None and repair is not None:
                course.compare_again(by_topic, repair(reports, watermarks.server_uuid(connection)))
    return reports


def _report(
    settings: Settings, shape: TableShape, owners: Mapping[str, Sequence[TableId]], refused: str, executed: str
) -> TableReport:
    """Return a report without an answer."""
    if refused:
        return TableReport(str(shape.id), "", refused=refused)
    topic = topics_of(settings, shape.id)[0]
    beside = [table for table in owners.get(topic, ()) if table != shape.id]
    unrepairable, undeletable = refusals_of_repair(settings, shape, beside)
    return TableReport(
        str(shape.id),
        topic,
        gtid_set=executed,
        beside=tuple(map(str, beside)),
        unrepairable=unrepairable,
        undeletable=undeletable,
    )


def _compare(
    spark: SparkSession,
    settings: Settings,
    client: ClientSettings,
    connection: Connection[Any],
    tables: Mapping[str, Sequence[VerifiedTable]],
    reports: Mapping[str, Sequence[TableReport]],
    choice: Choice,
) -> _Course | None:
    """Compare `tables`, by topic, and fill in their reports. Return the course; None if no attempt succeeded.

    An attempt ends if a statement changes a table. Another one begins, without topics whose tables have other columns
    now, and without those that statements have changed too often.
    """
    left, changes = dict(tables), Counter[str]()
    while left:
        members = [table for of_topic in left.values() for table in of_topic]
        with closing(WholeTables(spark, settings, members, choice.allowance)) as whole:
            course = _Course(settings, client, connection, left, whole, choice)
            try:
                course.run({topic: reports[topic] for topic in left})
                return course
            except TableChanged as error:
                log.warning("The comparison begins again: %s", error.message)
                again = catalog.shapes_of(connection, [table.shape.id for table in members])
                changes.update({table.topic for table in members if table.shape.id in error.tables})
        for topic, of_topic in list(left.items()):
            is_other = any(again.get(table.shape.id) != without_defaults(table.shape) for table in of_topic)
            if is_other or changes[topic] >= _ATTEMPTS:
                del left[topic]
                for report in reports[topic]:
                    report.refused = _CHANGED
    return None


class _Course:
    """An attempt to compare tables."""

    def __init__(
        self,
        settings: Settings,
        client: ClientSettings,
        connection: Connection[Any],
        tables: Mapping[str, Sequence[VerifiedTable]],
        whole: WholeTables,
        choice: Choice,
    ) -> None:
        self._settings, self._client, self._connection = settings, client, connection
        self._tables, self._whole, self._choice = tables, whole, choice
        evidence = Evidence(client, settings.topic_prefix, choice.offsets)
        self._sides = LiveSides(connection, settings, client, tables, evidence, choice.allowance)
        self._naming = Naming(self._sides, settings, client, tables)
        self._counts: dict[str, TopicCounts] = {}
        self._rows: dict[str, int] = {}
        #: Topics whose oldest records are gone.
        self._cut: set[str] = set()

    def run(self, reports: Mapping[str, Sequence[TableReport]]) -> None:
        """Compare, and fill in the reports. Raise TableChanged if a statement changed a table.

        Raise ConfigError if too many keys differ.
        """
        seen = observe(self, None)
        changed = self._sides.events(seen.low, seen.low.end, seen.high, None).changed
        differing = self._whole.differing(self._choice.sample, self._choice.number)
        keys = {*differing, *(self._whole.sampled(changed, self._choice.sample, self._choice.number))}
        log.info("%d keys differ or changed meanwhile; they are read again", len(keys))
        if len(keys) > _MOST_KEYS:
            raise ConfigError(
                f"{len(keys)} keys differ, more than the {_MOST_KEYS} that verify can look at one by one",
                "Does FILE describe these topics? Compare fewer tables with --table, or a part with --sample.",
            )
        self._sides.histories = self._whole.histories(keys)
        self._sides.facts = self._whole.facts()
        outcomes = settle(self._sides, keys, self._choice.limits, sleep=self._choice.allowance.sleep)
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
        if self._choice.lists_history and any(each.sent_twice or each.back_in_time for each in self._counts.values()):
            self._list_history(reports)

    def _list_history(self, reports: Mapping[str, Sequence[TableReport]]) -> None:
        """Add the keys to the reports whose records were sent twice or back in time."""
        repeated = self._whole.repeated_keys(_MOST_KEYS)
        if len(repeated) == _MOST_KEYS:
            log.warning("Only %d of the keys that were sent twice or back in time are listed", _MOST_KEYS)
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
            outcomes = settle(self._sides, keys, self._choice.limits, sleep=self._choice.allowance.sleep)
            before = [(report, again) for topic, again in repaired.items() for report in reports[topic] if again]
            counts = []
            for report, again in before:
                counts.append(sum(each.key in again for each in report.differences))
                report.differences = [each for each in report.differences if each.key not in again]
            self._naming.name(reports, outcomes, self._cut)
            for count, (report, again) in zip(counts, before, strict=True):
                if count:
                    report.repaired = count - sum(each.key in again for each in report.differences)
        except TableChanged:
            for topic, again in repaired.items():
                for report in reports[topic] if again else ():
                    report.refused = _CHANGED

    # -- the sides of whole tables, for `observe`

    def low(self) -> Any:
        return self._sides.low()

    def select(self, keys: None) -> None:
        members = [table for of_topic in self._tables.values() for table in of_topic]
        self._rows = self._whole.read_tables([(table, part) for table in members for part in self._ranges(table)])

    def topic(self, keys: None) -> None:
        counts = {topic: of_topic[0].partitions for topic, of_topic in self._tables.items()}
        ends, begins = topic_ends(self._client, counts), topic_ends(self._client, counts, first=True)
        self._cut = {topic for (topic, _), begin in begins.items() if begin > 0}
        self._counts = self._whole.read_topics(self._client, parts_between(begins, ends))
        self._sides.ends = ends

    def high(self) -> Any:
        return self._sides.high()

    def _ranges(self, table: VerifiedTable) -> list[RangePart]:
        ((rows,),) = query(
            self._connection,
            "SELECT COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (table.shape.id.database, table.shape.id.table),
        )
        count = int(rows) // _RANGE_ROWS
        return ranges_of(self._connection, self._settings, table.shape.id, count) if count > 1 else [RangePart()]
