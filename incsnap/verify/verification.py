"""The comparison of captured tables with their topics, which begins again if a statement changes a table."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from incsnap.config.settings import Settings
from incsnap.config.topics import tables_by_topic, topics_of
from incsnap.errors import ConfigError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.connect_offsets import ConnectorOffsets
from incsnap.mysql import catalog, watermarks
from incsnap.mysql.chunk_reader import TableLocked
from incsnap.mysql.session import connect
from incsnap.planner.online_ddl import captured_by_job
from incsnap.tables import TableId, TableShape
from incsnap.verify.allowance import Allowance
from incsnap.verify.changed_keys import TableChanged, TooManyChanges, TopicChanged
from incsnap.verify.compared_sides import TooManyKeys
from incsnap.verify.course import CHANGED, LOCKED, Course, Resources, open_sides
from incsnap.verify.kept_sides import held
from incsnap.verify.progress import Progress
from incsnap.verify.proof import TopicKey
from incsnap.verify.record_reading import for_table
from incsnap.verify.report import TableReport
from incsnap.verify.rounds import Limits
from incsnap.verify.sampling import Sample
from incsnap.verify.table_side import VerifiedTable
from incsnap.verify.topic_side import RecordsRemoved
from incsnap.verify.verified_tables import choose, refusals_of_repair, shapes_to_compare, without_defaults

log = logging.getLogger(__name__)

#: How often a table is begun again because a statement changed it meanwhile.
_ATTEMPTS = 3
#: Errors behind which a comparison begins anew. What was read is removed then.
_NOT_RESUMABLE = (RecordsRemoved, TooManyChanges, TooManyKeys, TopicChanged)


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of what is compared, how long the topics are waited for, and what the comparison may use."""

    tables: tuple[str, ...] = ()  #: names; empty: all captured tables without those of tools for online DDL
    sample: int = 1  #: one key in so many
    limits: Limits = field(default_factory=Limits)  #: how long keys are read again
    offsets: ConnectorOffsets | None = None  #: where a connector's offsets are; None: unknown
    lists_history: bool = False  #: whether keys are listed whose records were sent twice or back in time
    allowance: Allowance = field(default_factory=Allowance)  #: what the comparison may use
    number: int = 0  #: which of the samples, from 0 on
    folder: Path | None = None  #: where both sides are kept; None: a temporary folder, which is removed
    resume: bool = False  #: whether `folder` has the sides of a comparison that was interrupted
    progress: Progress = field(default_factory=Progress)  #: what was read


#: Lets somebody repair what reports name, and returns the keys that are to be compared again. The text is the uuid of
#: the server that was compared.
Repair = Callable[[Sequence[TableReport], str], Collection[TopicKey]]


def verify_tables(
    spark: SparkSession, settings: Settings, choice: Choice, repair: Repair | None = None
) -> list[TableReport]:
    """Compare the captured tables with their topics, and return the answer for each.

    With `repair` the answer is that after the repair: keys that it returns are compared again. Raise ConfigError if a
    named table is not captured or does not exist, or if there is nothing to resume, and ServerUnreachable. Raise
    VerificationStopped if the allowance ends the comparison: `choice.folder` then keeps what was read.
    """
    if choice.folder is None:
        with TemporaryDirectory(prefix="incsnap-verify-") as folder:
            return _verify_in(Path(folder), spark, settings, choice, repair)
    with held(choice.folder):
        return _verify_in(choice.folder, spark, settings, choice, repair)


def _verify_in(
    folder: Path, spark: SparkSession, settings: Settings, choice: Choice, repair: Repair | None
) -> list[TableReport]:
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    with closing(connect(settings.mysql)) as connection:
        captured = captured_by_job(connection, settings, choice.tables)
        named = [table for table in captured if not choice.tables or str(table) in choice.tables]
        if unknown := set(choice.tables) - {*map(str, named)}:
            raise ConfigError(
                f"not a captured table: {', '.join(sorted(unknown))}",
                "Name tables as database.table. MySQL hides tables without a right: GRANT SELECT on them to the user.",
            )
        owners = tables_by_topic(settings, captured)
        shapes = shapes_to_compare(connection, settings, captured)
        # A table without a topic is looked at by `choose`. The look sees all that was executed before.
        executed = str(watermarks.executed(connection))
        chosen = choose(connection, settings, shapes, owners, named)
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
            resources = Resources(
                spark=spark,
                settings=for_table(settings),
                client=client,
                connection=connection,
                folder=folder,
                sample=Sample(choice.sample, choice.number),
                limits=choice.limits,
                offsets=choice.offsets,
                lists_history=choice.lists_history,
                allowance=choice.allowance,
                progress=choice.progress,
            )
            course = _compare(resources, chosen.by_topic, by_topic, resume=choice.resume)
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
    resources: Resources,
    tables: Mapping[str, Sequence[VerifiedTable]],
    reports: Mapping[str, Sequence[TableReport]],
    *,
    resume: bool,
) -> Course | None:
    """Compare `tables`, by topic, and fill in their reports. Return the course; None if no attempt succeeded.

    An attempt ends if a statement changes a table. Another one begins, without topics whose tables have other columns
    now, and without those that statements have changed too often. An attempt also ends if a table stays locked. Another
    one begins without its topic.
    """
    left, changes = dict(tables), Counter[str]()
    while left:
        members = [table for of_topic in left.values() for table in of_topic]
        sides = open_sides(resources, members, resume=resume)
        course, resume = Course(resources, left, sides), False
        try:
            course.run({topic: reports[topic] for topic in left})
            sides.remove()
            return course
        except _NOT_RESUMABLE:
            sides.remove()
            raise
        except TableLocked as error:
            log.warning("The comparison begins again without a topic: %s", error.message)
            others = [each.topic for each in members if TableLocked.text(each.shape.id) == error.message]
            why = LOCKED
            if not others:
                raise
        except TableChanged as error:
            log.warning("The comparison begins again: %s", error.message)
            again = catalog.shapes_of(resources.connection, [table.shape.id for table in members])
            changes.update({table.topic for table in members if table.shape.id in error.tables})
            why = CHANGED
            others = [
                topic
                for topic, of_topic in left.items()
                if changes[topic] >= _ATTEMPTS
                or any(again.get(table.shape.id) != without_defaults(table.shape) for table in of_topic)
            ]
        _refuse(left, reports, others, why)
        if not left:
            sides.remove()
    return None


def _refuse(
    left: dict[str, Sequence[VerifiedTable]],
    reports: Mapping[str, Sequence[TableReport]],
    topics: Sequence[str],
    why: str,
) -> None:
    """Give no answer about `topics`, and take them out of `left`."""
    for topic in topics:
        del left[topic]
        for report in reports[topic]:
            report.refused = why
