"""The lane for one of MySQL's test files: a job reads its binlog, once with all names in table maps, once with none."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pymysql.connections import Connection

from incsnap.ddl.follow import Followed, follow
from incsnap.events import SchemaChange
from incsnap.mysql.session import query
from incsnap.planner import definition_history
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import Servers
from tests.mysql_files.script import Script
from tests.mysql_files.table_rows import SYSTEM, Change, Observer, changes_of, compare
from tests.support.planned_job import PlannedJob, settings_of

_MARKS = "incsnap_marks"


@dataclass
class Run:
    """The result of one file in one mode."""

    taken: int = 0  #: statements that the server accepted
    refused: int = 0
    late: bool = False  #: whether the file's time was used up
    #: position of a statement about tables -> why its definition is lost
    definitions: dict[str, str] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    stop: str = ""  #: why the job stopped
    agreed: int = 0  #: compared tables, summed over spans, whose rows equal the rows that were sent
    differences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  #: the job's warnings about rows that it left out

    @property
    def followed(self) -> int:
        return sum(not why for why in self.definitions.values())


class Lane:
    """A server, and jobs that read its binlog."""

    def __init__(self, servers: Servers, folder: Path, seconds: float) -> None:
        self._servers, self._folder, self._seconds = servers, folder, seconds
        self._number = 0

    def run(self, file: Path, mode: str, most: int | None = None) -> Run:
        """Run a file with `binlog_row_metadata` set to `mode`, let a job read the binlog, and judge its records.

        The job is down while the file runs. So it knows only its earlier state and what the binlog tells. `most` is the
        number of statements to run. Without it, rows are also read from the tables and compared.
        """
        self._number += 1
        mysql = self._servers.mysql
        outcome = Run()
        with closing(
            connect(mysql, init_command="SET time_zone = '+00:00', sql_mode = '', lock_wait_timeout = 1")
        ) as admin:
            _clean(admin)
            for sql in (
                f"SET GLOBAL binlog_row_metadata = {mode}",
                "CREATE DATABASE test",
                f"CREATE DATABASE {_MARKS}",
                f"CREATE TABLE {_MARKS}.mark (id INT PRIMARY KEY)",
            ):
                query(admin, sql)
            with tempfile.TemporaryDirectory(prefix="mysql-files-") as root, self._job(mysql, root) as job:
                query(admin, f"INSERT INTO {_MARKS}.mark VALUES (0)")
                job.batches_until(lambda: bool(job.sent and (mode == "FULL" or job.offset.definitions)), "first mark")
                observer = Observer(admin)
                around = _run if most is not None else observer.around
                script = Script(mysql, self._folder, self._seconds, around, most)
                try:
                    script.run(file)
                finally:
                    outcome.taken, outcome.refused, outcome.late = script.taken, script.refused, script.late
                observer.end_span()
                query(admin, f"INSERT INTO {_MARKS}.mark VALUES ({self._number})")
                _deliver(job, outcome)
        for difference in compare(observer.spans, outcome.changes):
            outcome.agreed += not difference
            outcome.differences += [difference] if difference else []
        return outcome

    @contextmanager
    def _job(self, mysql: MySqlAddress, root: str) -> Iterator[PlannedJob]:
        settings = settings_of(
            mysql,
            self._servers.kafka,
            f"files-{self._number}",
            ".*",
            include__schema__changes="false",
            inconsistent__schema__handling__mode="warn",
        )
        with closing(PlannedJob(settings, root, buckets=1, parallelism=1)) as job:
            yield job


def _run(_sql: str, _session: Connection[Any], run: Callable[[], object]) -> None:
    run()


def _deliver(job: PlannedJob, outcome: Run) -> None:
    """Run batches up to the mark, and note how statements were followed and why the job stopped, if it did."""

    def marked() -> bool:
        return any(each.topic.endswith(".mark") and each.value["after"]["id"] for each in job.sent)

    with _statements(outcome), _warnings(outcome):
        try:
            job.batches_until(marked, "mark")
        except Exception as error:  # noqa: BLE001 - any error would stop a job
            outcome.stop = f"{type(error).__name__}: {error}"
    outcome.changes = [each for each in changes_of(job.sent) if each.table.database != _MARKS]


@contextmanager
def _statements(outcome: Run) -> Iterator[None]:
    """Note each statement that the job follows."""

    def noted(change: SchemaChange, *arguments: Any, **more: Any) -> Followed:
        followed = follow(change, *arguments, **more)
        if change.origin is not None and change.tables:
            why = "; ".join(f"{table}: {reason}" for table, reason in followed.lost.items())
            outcome.definitions[str(change.origin)] = f"{why} ({change.sql[:300]!r})" if why else ""
        return followed

    definition_history.follow = noted  # type: ignore[attr-defined]
    try:
        yield
    finally:
        definition_history.follow = follow  # type: ignore[attr-defined]


@contextmanager
def _warnings(outcome: Run) -> Iterator[None]:
    """Note the warnings of rows that are left out."""

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            outcome.warnings.append(record.getMessage())

    handler, logger = Notes(logging.WARNING), logging.getLogger("incsnap")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _clean(admin: Connection[Any]) -> None:
    """Drop all that earlier files have left on the server."""
    query(admin, "SET foreign_key_checks = 0")
    for (name,) in query(admin, "SHOW DATABASES"):
        if name not in SYSTEM:
            query(admin, f"DROP DATABASE `{str(name).replace('`', '``')}`")
    for user, host in query(admin, "SELECT user, host FROM mysql.user"):
        if user != "root" and not re.match(r"mysql\.", str(user)):
            query(admin, f"DROP USER {admin.escape(str(user))}@{admin.escape(str(host))}")
