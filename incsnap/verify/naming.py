"""The names of what differs: the kind of each difference, and the tables whose reports have it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from incsnap.config.settings import Settings
from incsnap.tables import TableId
from incsnap.verify.both_sides import LiveSides, differing_columns
from incsnap.verify.evidence import Evidence, UnderWay
from incsnap.verify.kinds import DIFFERENCES, MISSING, STALE, UNVERIFIABLE, WRONG, is_behind, kind_of, older_record
from incsnap.verify.proof import Events, LastRecord, TopicKey, Verdict
from incsnap.verify.report import Difference, TableReport
from incsnap.verify.rounds import Outcome
from incsnap.verify.table_side import VerifiedTable, owned_keys


class Naming:
    """The naming of differences between `sides`. `tables`: those of each topic.

    Call `note_snapshots` before the records are read that `name` is about.
    """

    def __init__(
        self,
        sides: LiveSides,
        settings: Settings,
        tables: Mapping[str, Sequence[VerifiedTable]],
        evidence: Evidence,
    ) -> None:
        self._sides, self._settings, self._tables = sides, settings, tables
        self._evidence, self._under_way = evidence, UnderWay()
        self._compared = {topic: {str(table.shape.id) for table in of_topic} for topic, of_topic in tables.items()}

    def note_snapshots(self) -> None:
        """Note the tables whose snapshots are under way.

        A snapshot may end before the differences have names, so the rows that it had not sent are noted before.
        """
        self._under_way |= self._evidence.under_way()

    def name(
        self,
        reports: Mapping[str, Sequence[TableReport]],
        outcomes: Mapping[TopicKey, Outcome],
        cut: Collection[str],
    ) -> None:
        """Add the differences among `outcomes` to the reports of their tables.

        `cut`: topics whose oldest records are gone. Raise TableChanged if a statement changed a table.
        """
        self.note_snapshots()
        later = self._later_events(outcomes)
        for key, outcome in outcomes.items():
            difference = self._named(key, outcome, later, cut)
            if difference is not None:
                of_topic = [report for report in reports[key[0]] if not report.refused]
                owners = of_topic if len(self._tables[key[0]]) == 1 else self._owners_among(of_topic, key)
                for report in owners:
                    report.differences.append(difference)
        for topic, all_of_topic in reports.items():
            tables = {str(table.shape.id): table for table in self._tables[topic]}
            for report in all_of_topic:
                keys = [each.key for each in report.differences if each.kind in DIFFERENCES]
                report.odd = set(keys) - owned_keys(self._settings, tables[report.table], keys)

    def _owners_among(self, reports: Sequence[TableReport], key: TopicKey) -> Sequence[TableReport]:
        """Return the reports of the tables to which a key of a shared topic belongs; all if it can be of any table."""
        owners = self._sides.owners(key) or [
            table for table in self._tables[key[0]] if owned_keys(self._settings, table, [key[1]])
        ]
        names = {str(table.shape.id) for table in owners or self._tables[key[0]]}
        return [report for report in reports if report.table in names]

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

    def _named(self, key: TopicKey, outcome: Outcome, later: Events | None, cut: Collection[str]) -> Difference | None:
        """Return the difference that an outcome is, or None if the key is equal."""
        verdict, owners = outcome.judgement.verdict, self._sides.owners(key)
        if len(owners) > 1:
            names = ", ".join(sorted({str(table.shape.id) for table in owners}))
            return Difference(key[1], UNVERIFIABLE, note=f"{len(owners)} rows of {names} have this key")
        if outcome.unproved:
            return Difference(key[1], UNVERIFIABLE, note=outcome.unproved)
        if verdict is Verdict.EQUAL:
            return None
        record, history = outcome.record, self._sides.histories[key]
        # MySQL hides tables without a right. A repair would delete rows of such a table from the topic.
        if record is not None and record.table and record.table not in self._compared[key[0]]:
            return Difference(key[1], UNVERIFIABLE, note=f"its last record is of {record.table}, which is not compared")
        last = outcome.event_before(None if later is None else later.last.get(key))
        older = older_record(record, history.older)
        kind = kind_of(outcome.row, record, older, last)
        place = None if record is None else record.place or record.read_at
        if kind in (STALE, WRONG) and not is_behind(place, last):
            altered = None if later is None else later.altered.get(key[0])
            if is_behind(place, altered) or _has_other_columns(outcome.row, record):
                return Difference(key[1], UNVERIFIABLE, note="a statement has changed the table behind its record")
        if kind == MISSING and record is None and any(self._under_way.has(str(each.shape.id)) for each in owners):
            return Difference(key[1], UNVERIFIABLE, note="its snapshot is under way")
        # Compaction keeps the beginning of a topic. Retention or a request moves it, whatever the policy is now.
        if kind == MISSING and record is None and key[0] in cut:
            return Difference(key[1], UNVERIFIABLE, note="the topic no longer has its oldest records")
        if kind == MISSING and record is None and (setting := self._leaves_out(owners[0].shape.id)):
            return Difference(key[1], UNVERIFIABLE, note=f"{setting} may have left out its row")
        columns: list[str] = []
        if kind in (STALE, WRONG) and outcome.row and record is not None and record.row:
            columns = differing_columns(owners[0], outcome.row, record)
        notes = ["it rests on records of other partitions or tables"] if outcome.judgement.weak else []
        if kind == STALE:
            notes.append(
                f"the row of partition {older.partition}, offset {older.offset}"
                if older is not None
                else "the binlog has a later change"
            )
        return Difference(key[1], kind, tuple(columns), "; ".join(notes))

    def _leaves_out(self, table: TableId) -> str:
        """Return the setting by which the first snapshot leaves out rows of `table` on purpose, or ""."""
        if self._settings.snapshot.has_condition(table):
            return "snapshot.select.statement.overrides"
        return "" if self._settings.snapshot.included(table) else "snapshot.include.collection.list"


def _has_other_columns(row: bytes | None, record: LastRecord | None) -> bool:
    """Return True if the record's row names other columns than the table's row."""
    if row is None or record is None or record.row is None:
        return False
    try:
        return set(json.loads(row)) != set(json.loads(record.row))
    except (ValueError, TypeError):
        return False
