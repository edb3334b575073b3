"""The course of `incsnap verify`: whole tables first, then the keys that differ or changed, then the names of what is
wrong."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from pymysql.connections import Connection
from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.config.topics import tables_by_topic, topics_of
from incsnap.envelope.listed_keys import refusal_of_deletions, refusal_of_keys
from incsnap.errors import ConfigError, IncsnapError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topics import admin_client, partition_counts, topic_config
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.session import connect, query
from incsnap.planner.key_ranges import RangePart, ranges_of
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.both_sides import LiveSides, differing_columns
from incsnap.verify.changed_keys import TableChanged
from incsnap.verify.evidence import ConnectorOffsets, Evidence
from incsnap.verify.kinds import MISSING, STALE, UNVERIFIABLE, WRONG, is_behind, kind_of, older_record
from incsnap.verify.proof import Events, LastRecord, TopicKey, Verdict, observe
from incsnap.verify.record_reading import for_table
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.rounds import Limits, Outcome, settle
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import parts_between, topic_ends
from incsnap.verify.verified_tables import TableRefused, shapes_to_compare, verified_table, without_defaults
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
        named = {str(table) for table in captured}
        if unknown := [name for name in choice.tables if name not in named]:
            raise ConfigError(f"not a captured table: {', '.join(unknown)}", "Name tables as database.table.")
        reports, tables = [], dict[str, VerifiedTable]()
        owners = tables_by_topic(settings, captured)
        counts = partition_counts(admin_client(client), owners)
        for table, shape in shapes_to_compare(connection, settings, captured).items():
            if choice.tables and str(table) not in choice.tables:
                continue
            report = TableReport(str(table), "")
            reports.append(report)
            try:
                verified = verified_table(connection, settings, shape, owners, counts)
            except (TableRefused, IncsnapError) as error:
                report.refused = str(error)
                continue
            report.topic, report.gtid_set = topics_of(settings, shape.id)[0], str(watermarks.executed(connection))
            format_ = format_of(for_table(settings), shape)
            report.unrepairable, report.undeletable = refusal_of_keys(format_), refusal_of_deletions(format_)
            if verified is not None:
                tables[verified.topic] = verified
        by_topic = {report.topic: report for report in reports if report.topic in tables}
        if tables:
            course = _compare(spark, for_table(settings), client, connection, tables, by_topic, choice)
            if course is not None and repair is not None:
                course.compare_again(by_topic, repair(reports, watermarks.server_uuid(connection)))
    return reports


def _compare(
    spark: SparkSession,
    settings: Settings,
    client: ClientSettings,
    connection: Connection[Any],
    tables: Mapping[str, VerifiedTable],
    reports: Mapping[str, TableReport],
    choice: Choice,
) -> _Course | None:
    """Compare `tables`, by topic, and fill in their reports. Return the course; None if no attempt succeeded.

    An attempt ends if a statement changes a table. Another one begins, without tables that have other columns now, and
    without those that statements have changed too often.
    """
    left, changes = dict(tables), Counter[str]()
    while left:
        with closing(WholeTables(spark, settings, list(left.values()), choice.allowance)) as whole:
            course = _Course(settings, client, connection, left, whole, choice)
            try:
                course.run({topic: reports[topic] for topic in left})
                return course
            except TableChanged as error:
                log.warning("The comparison begins again: %s", error.message)
                again = catalog.shapes_of(connection, [table.shape.id for table in left.values()])
                changes.update(topic for topic, table in left.items() if table.shape.id in error.tables)
        for topic, table in list(left.items()):
            if changes[topic] >= _ATTEMPTS or again.get(table.shape.id) != without_defaults(table.shape):
                reports[topic].refused = _CHANGED
                del left[topic]
    return None


class _Course:
    """An attempt to compare tables."""

    def __init__(
        self,
        settings: Settings,
        client: ClientSettings,
        connection: Connection[Any],
        tables: Mapping[str, VerifiedTable],
        whole: WholeTables,
        choice: Choice,
    ) -> None:
        self._settings, self._client, self._connection = settings, client, connection
        self._tables, self._whole, self._choice = tables, whole, choice
        evidence = Evidence(client, settings.topic_prefix, choice.offsets)
        self._sides = LiveSides(connection, settings, client, tables, evidence, choice.allowance)
        self._counts: dict[str, TopicCounts] = {}
        self._rows: dict[str, int] = {}
        #: Topics whose oldest records are gone.
        self._cut: set[str] = set()

    def run(self, reports: Mapping[str, TableReport]) -> None:
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
        later = self._later_events(outcomes)
        for topic, report in reports.items():
            counts = self._counts[topic]
            report.rows, report.gtid_set = self._rows.get(topic, 0), str(seen.low.executed)
            report.sent_twice, report.back_in_time = counts.sent_twice, counts.back_in_time
            if counts.unreadable:
                report.refused = f"{counts.unreadable:,} records of {topic} do not have the form that FILE describes."
                continue
            own = {key: outcome for key, outcome in outcomes.items() if key[0] == topic}
            report.differences = [each for key, outcome in own.items() if (each := self._named(key, outcome, later))]

    def compare_again(self, reports: Mapping[str, TableReport], keys: Collection[TopicKey]) -> None:
        """Compare keys that were sent again, and bring the reports up to date."""
        if not keys:
            return
        try:
            outcomes = settle(self._sides, keys, self._choice.limits, sleep=self._choice.allowance.sleep)
            later = self._later_events(outcomes)
        except TableChanged:
            for topic in {topic for topic, _ in keys}:
                reports[topic].refused = _CHANGED
            return
        for topic, report in reports.items():
            own = {key[1]: outcome for key, outcome in outcomes.items() if key[0] == topic}
            if own:
                others = [each for each in report.differences if each.key not in own]
                left = [each for key, outcome in own.items() if (each := self._named((topic, key), outcome, later))]
                report.differences, report.repaired = [*left, *others], len(own) - len(left)

    # -- the sides of whole tables, for `observe`

    def low(self) -> Any:
        return self._sides.low()

    def select(self, keys: None) -> None:
        ranges = {topic: self._ranges(table) for topic, table in self._tables.items()}
        self._rows = self._whole.read_tables(ranges)

    def topic(self, keys: None) -> None:
        counts = {topic: table.partitions for topic, table in self._tables.items()}
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

    def _later_events(self, outcomes: Mapping[TopicKey, Outcome]) -> Events | None:
        """Return the last events of keys whose rows differ, from the places of their records on, if the binlog has
        them."""
        places = {
            key: place
            for key, outcome in outcomes.items()
            if outcome.judgement.verdict is Verdict.DIFFERENT and not outcome.unproved
            if outcome.row is not None and outcome.record is not None and outcome.record.row is not None
            if (place := outcome.record.place or outcome.record.read_at) is not None
        }
        if not places:
            return None
        low = self._sides.low()
        return self._sides.events(low, min(places.values()), self._sides.high(), places)

    def _named(self, key: TopicKey, outcome: Outcome, later: Events | None) -> Difference | None:
        """Return the difference that an outcome is, or None if the key is equal."""
        verdict = outcome.judgement.verdict
        if outcome.unproved:
            return Difference(key[1], UNVERIFIABLE, note=outcome.unproved)
        if verdict is Verdict.EQUAL:
            return None
        record, history = outcome.record, self._sides.histories[key]
        last = None if later is None else later.last.get(key)
        older = older_record(record, history.older)
        kind = kind_of(outcome.row, record, older, last)
        place = None if record is None else record.place or record.read_at
        if kind in (STALE, WRONG) and not is_behind(place, last):
            altered = None if later is None else later.altered.get(key[0])
            if is_behind(place, altered) or _has_other_columns(outcome.row, record):
                return Difference(key[1], UNVERIFIABLE, note="a statement has changed the table behind its record")
        if kind == MISSING and record is None and key[0] in self._cut and not self._is_compacted(key[0]):
            return Difference(key[1], UNVERIFIABLE, note="the topic no longer has its oldest records")
        columns: list[str] = []
        if kind in (STALE, WRONG) and outcome.row and record is not None and record.row:
            columns = differing_columns(self._tables[key[0]], outcome.row, record.row)
        notes = ["it rests on records of other partitions or tables"] if outcome.judgement.weak else []
        if kind == STALE:
            notes.append(
                f"the row of partition {older.partition}, offset {older.offset}"
                if older is not None
                else "the binlog has a later change"
            )
        return Difference(key[1], kind, tuple(columns), "; ".join(notes))

    def _is_compacted(self, topic: str) -> bool:
        """Whether Kafka keeps the last record of each key of the topic."""
        try:
            return bool(topic_config(self._client, topic)["cleanup.policy"] == "compact")
        except KafkaException:
            return False


def _has_other_columns(row: bytes | None, record: LastRecord | None) -> bool:
    """Return True if the record's row names other columns than the table's row."""
    if row is None or record is None or record.row is None:
        return False
    try:
        return set(json.loads(row)) != set(json.loads(record.row))
    except (ValueError, TypeError):
        return False
