"""The course by which a job closes a gap (`incsnap.gap.recovery=differences`), beside its stream.

The tables are compared in groups (`gap_rules`, `gap_sides`). For each group an answer is written beside the checkpoint
(`incsnap.checkpoint.gap_files`), and the planner reads the keys that differ again. A table that cannot be compared is
read whole, as `snapshot.mode=when_needed` does without this setting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from pymysql.connections import Connection
from pyspark.sql import SparkSession

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import GapAnswer, GapFiles, TableAnswer
from incsnap.config.settings import Settings
from incsnap.config.topics import tables_by_topic
from incsnap.envelope.table_format import TableFormat
from incsnap.errors import ChunkFailed, IncsnapError, ServerUnreachable, shorten
from incsnap.gtid import GtidSet
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.kafka.topics import admin_client, partition_counts
from incsnap.mysql import catalog
from incsnap.mysql.session import connect
from incsnap.mysql.watermarks import wait_until_executed
from incsnap.planner.key_ranges import RangePart, ranges_of
from incsnap.planner.online_ddl import captured_by_job
from incsnap.tables import TableId, TableShape
from incsnap.tasks.formats import format_of
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap_rules import Seam
from incsnap.verify.gap_sides import GapComparison, TableCounts
from incsnap.verify.record_reading import for_table
from incsnap.verify.table_side import VerifiedTable, readable
from incsnap.verify.verified_tables import TableRefused, refusals_of_repair, shapes_to_compare, verified_table

log = logging.getLogger(__name__)

#: Rows and tables of a group at most, if it has more than one table.
_GROUP_ROWS, _GROUP_TABLES = 1_000_000, 200
#: Rows of one SELECT.
_RANGE_ROWS = 200_000
#: Keys of one list. The planner checks a list while it plans a batch: 50,000 keys take about 0.3 s.
_LIST_KEYS = 50_000
#: Keys whose form is checked at a time.
_CHECKED = 5_000
#: A table is read whole if one row in so many differs. Rows cost four times as much by their keys as in order.
_WHOLE_ONE_IN = 10
#: Seconds that the server may take until it has executed what the job has begun behind.
_LATE_SECONDS = 20.0


class GapCourse:
    """The comparison of a job's tables behind a gap.

    `root` is incsnap's part of the checkpoint. `allowance` says what the comparison may use, and when it ends.
    `progressed` is called with the number of tables that are left, before the first answer and after each answer.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        root: str,
        job: str,
        allowance: Allowance,
        progressed: Callable[[int], None] = lambda left: None,
    ) -> None:
        self._spark, self._settings, self._allowance = spark, settings, allowance
        self._progressed = progressed
        self._gap, self._job = GapFiles(Files(root), job), job
        self._client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
        self._answers: list[GapAnswer] = []

    @property
    def answers(self) -> Sequence[GapAnswer]:
        """Return the answers that are written."""
        return self._answers

    def is_open(self) -> bool:
        """Return True if there are tables that no answer names."""
        self._answers = self._gap.answers()
        return self._gap.is_open()

    def run(self, *, alone: bool) -> None:
        """Compare what is left, and write the answers. `alone`: each table alone, because one of them may fail.

        Raise VerificationStopped if the allowance ends the comparison. Raise ServerUnreachable, another IncsnapError or
        an error of Spark if a server fails. The answers that are written hold.
        """
        behind = self._gap.behind()
        assert behind is not None
        with closing(connect(self._settings.mysql)) as connection:
            try:
                wait_until_executed(connection, behind, _LATE_SECONDS)
            except ChunkFailed as error:
                raise ServerUnreachable(error.message, error.hint) from None
            groups = self._groups(connection, alone=alone)
            log.info("Behind %s, %d tables are compared with their topics", behind, sum(map(len, groups)))
            self._progressed(sum(map(len, groups)))
            for number, group in enumerate(groups):
                self._allowance.go_on()
                tables = self._answer(connection, group, behind)
                self._write(group, tables, groups[number + 1 :])
            if not groups:
                self._write({}, [], [])

    def read_next_whole(self, reason: str) -> None:
        """Let the next table be read whole, because its comparison fails. Raise ServerUnreachable."""
        with closing(connect(self._settings.mysql)) as connection:
            groups = self._groups(connection, alone=True)
        for group in groups[:1]:
            self._write(group, [_whole(table, reason) for table in group], groups[1:])

    def _write(
        self,
        group: Mapping[TableId, int],
        tables: Sequence[TableAnswer],
        left: Sequence[Mapping[TableId, int]],
    ) -> None:
        """Write the answer about a group of tables. It is obeyed from now on. `left`: the groups behind this one."""
        answer = GapAnswer(tuple(tables), tuple(map(str, group)), is_last=not left)
        self._gap.write_answer(len(self._answers) + 1, answer)
        self._answers.append(answer)
        self._progressed(sum(map(len, left)))

    def _groups(self, connection: Connection[Any], *, alone: bool) -> list[dict[TableId, int]]:
        """Return the tables that no answer names, in groups that are compared together."""
        left = self._left(connection)
        return [{table: rows} for table, rows in left.items()] if alone else in_groups(left)

    def _left(self, connection: Connection[Any]) -> dict[TableId, int]:
        """Return the tables that no answer names, with about how many rows each has."""
        named = {name for answer in self._answers for name in answer.named}
        settings = self._settings
        captured = [
            table
            for table in captured_by_job(connection, settings)
            if settings.snapshot.included(table) and table != settings.signals.data_collection
        ]
        return catalog.row_counts(connection, [table for table in captured if str(table) not in named])

    def _answer(self, connection: Connection[Any], group: Mapping[TableId, int], behind: GtidSet) -> list[TableAnswer]:
        """Compare a group of tables, and return what is sent again of each."""
        answers: list[TableAnswer] = []
        verified: list[VerifiedTable] = []
        settings = for_table(self._settings)
        owners = tables_by_topic(self._settings, captured_by_job(connection, self._settings))
        partitions = partition_counts(admin_client(self._client), owners)
        shapes = shapes_to_compare(connection, self._settings, list(group))
        for table in group:
            try:
                if (comparable := self._comparable(connection, shapes.get(table), owners, partitions)) is not None:
                    verified.append(comparable)
            except ServerUnreachable:
                raise  # an answer holds for good, and the server comes back
            except (TableRefused, IncsnapError) as error:
                answers.append(_whole(table, str(error)))
        if not verified:
            return answers
        counts = {table.topic: table.partitions for table in verified}
        # All producers of earlier starts are fenced: this start has announced itself.
        seam: Seam = topic_ends(self._client, counts)
        ranges = [_ranges(connection, settings, each, group[each.shape.id]) for each in verified]
        with closing(GapComparison(self._spark, settings, verified, behind, self._allowance, self._job)) as compared:
            rows_of = [group[each.shape.id] for each in verified]
            for place, count in enumerate(compared.run(self._client, seam, ranges, rows_of)):
                answers += self._of_table(verified[place], count, compared, place)
        return answers

    def _comparable(
        self,
        connection: Connection[Any],
        shape: TableShape | None,
        owners: Mapping[str, Sequence[TableId]],
        partitions: Mapping[str, int],
    ) -> VerifiedTable | None:
        """Return how a table is compared; None for a table without rows whose topic does not exist.

        Raise TableRefused if the table cannot be compared, and errors of its format.
        """
        if shape is None:
            raise TableRefused("The table is gone.")
        if self._settings.snapshot.has_condition(shape.id):
            raise TableRefused("snapshot.select.statement.overrides chooses its rows.")
        verified = verified_table(connection, self._settings, shape, partitions)
        others = [] if verified is None else [each for each in owners.get(verified.topic, ()) if each != shape.id]
        if reason := next(filter(None, refusals_of_repair(self._settings, shape, others)), ""):
            raise TableRefused(f"Its keys cannot be sent again: {reason}.")
        return verified

    def _of_table(
        self, table: VerifiedTable, count: TableCounts, compared: GapComparison, place: int
    ) -> list[TableAnswer]:
        """Write the keys of a table that differ, and return what is sent again of it."""
        name, format_ = str(table.shape.id), format_of(for_table(self._settings), table.shape)
        is_whole = count.differing > max(_LIST_KEYS, count.rows // _WHOLE_ONE_IN)
        log.info(
            "%s: %d of %d rows differ from topic %s, and %d keys are to be deleted%s",
            *(name, count.differing, count.rows, table.topic, count.extra),
            ". So many differ that the table is read whole" if is_whole else "",
        )
        answers: list[TableAnswer] = []

        def write(keys: Sequence[bytes]) -> None:
            for own in _batched(keys, _LIST_KEYS):
                file = self._gap.write_keys(len(self._answers) + 1, f"{place}-{len(answers)}", own)
                answers.append(TableAnswer(table.shape.id.sql, file, len(own)))

        for keys in compared.keys(place, extra=True):
            write(readable_keys(format_, keys, name))
        deletions = tuple(answers)
        for keys in () if is_whole else compared.keys(place, extra=False):
            if len(_with_rows(format_, keys)) < len(keys):
                log.warning("%s: some keys of its rows cannot be read again, so the table is read whole", name)
                is_whole = True
                break
            write(keys)
        return [TableAnswer(table.shape.id.sql, whole=True), *deletions] if is_whole else answers


def readable_keys(format_: TableFormat, keys: Sequence[bytes], table: str) -> list[bytes]:
    """Return the keys that a row of the table can have. Warn of the others, which are left out.

    A record of an earlier form of the table, or of another producer, has such a key.
    """
    own = _with_rows(format_, keys)
    if len(own) < len(keys):
        kept = set(own)
        odd = [key for key in keys if key not in kept]
        log.warning(
            "%s: %d keys of the topic have a form that no row has, so no deletion is sent for them, such as %s",
            *(table, len(odd), shorten(odd[0].decode(errors="replace"))),
        )
    return own


def _with_rows(format_: TableFormat, keys: Sequence[bytes]) -> list[bytes]:
    """Return those of `keys` that a row of the table can have, in their order."""
    parts = (part for some in _batched(keys, _CHECKED) for part, _ in readable(format_, some))
    return [key for part in parts for key in part]


def _batched(keys: Sequence[bytes], most: int) -> Iterator[Sequence[bytes]]:
    """Yield parts of `keys` of at most `most` keys."""
    return (keys[begin : begin + most] for begin in range(0, len(keys), most))


def in_groups(tables: Mapping[TableId, int]) -> list[dict[TableId, int]]:
    """Return the tables in groups that are compared together."""
    groups: list[dict[TableId, int]] = []
    rows = 0
    for table, count in tables.items():
        if not groups or rows + count > _GROUP_ROWS or len(groups[-1]) >= _GROUP_TABLES:
            groups.append({})
            rows = 0
        groups[-1][table] = count
        rows += count
    return groups


def _ranges(connection: Connection[Any], settings: Settings, table: VerifiedTable, rows: int) -> list[RangePart]:
    count = rows // _RANGE_ROWS
    return ranges_of(connection, settings, table.shape.id, count) if count > 1 else [RangePart()]


def _whole(table: TableId, reason: str) -> TableAnswer:
    """Return the answer for a table that cannot be compared, and warn."""
    log.warning(
        "%s cannot be compared, so the table is read whole. Deletions made in the gap are not sent: %s", table, reason
    )
    return TableAnswer(table.sql, whole=True, reason=reason)
