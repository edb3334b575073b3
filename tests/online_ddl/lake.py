"""A lake's table that one query of `incsnap.merge_into` keeps beside a run, and its comparison with the MySQL table.

The query reads the signals of the job's signal table, so its snapshot is under way at the swap as well.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pymysql.cursors import DictCursor

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.location import own_part
from incsnap.config.frames import frame_settings
from incsnap.monitoring.job_status import NAME
from incsnap.monitoring.status import JobStatus, load
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.compare import Comparison
from lab.fetched_lake import DELTA, Lake
from lab.progress import tell
from lab.running_job import RunningJob, write_properties
from lab.running_query import running_query
from tests.support.mysql_versions import end_of_binlog

_PATIENCE_SECONDS = 3_600.0
#: The version of the last change. No writer uses it.
LAST = 2**62
#: Keys that are compared at once.
_KEYS = 100_000


class KeptLake:
    """A running query and the lake's table that it keeps."""

    def __init__(self, captured: CapturedDatabase, table: TableId, lake: Lake, folder: Path) -> None:
        self._captured, self._table, self._lake, self._folder = captured, table, lake, folder
        #: Iceberg's catalog is a folder. Delta's table is named by its path, as its catalog ends with the session.
        self.name = f"delta.`{folder}/warehouse/{lake.place}`" if lake is DELTA else lake.table
        self.properties = folder / "lake.properties"
        self.query: RunningJob | None = None

    def wait_until_streaming(self) -> None:
        """Wait until the query knows where in the binlog it begins."""
        self._wait("the lake's query was streaming", lambda: self._status() is not None)

    def wait_until_read(self, signals: set[str]) -> None:
        """Wait until the query has reached the present end of the binlog, and has ended the snapshots of `signals`.

        `signals`: ids, or beginnings of ids.
        """
        with self._captured.connect() as connection:
            end = end_of_binlog(connection)

        def is_read() -> bool:
            status = self._status()
            if status is None or status.stream is None or (status.stream.file, status.stream.pos) < end:
                return False
            snapshot = status.snapshot
            ended = [each.signal for each in snapshot.finished if each.is_whole]
            return (
                not snapshot.active
                and not snapshot.windows_in_flight
                and all(any(each.startswith(signal) for each in ended) for signal in signals)
            )

        self._wait(f"the lake's snapshots {', '.join(sorted(signals))} ended", is_read)

    def faults(self) -> list[str]:
        """Return how the lake's table differs from the MySQL table, whose last change has the version `LAST`."""
        rows = self._folder / "rows"
        command = [sys.executable, "-m", "tests.online_ddl.lake_rows", self.name, str(rows)]
        command += ["--format", self._lake.format, "--warehouse", f"{self._folder}/warehouse", "--version", str(LAST)]
        done = subprocess.run(
            command,
            env=self._lake.environment(),
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        ended = self.query and self.query.exit_code()
        if ended is not None:
            assert self.query is not None
            return [f"the lake's query has ended with code {ended}: {self.query.log_tail()}"]
        if done.returncode:
            return [f"the lake's table cannot be read: {done.stdout}{done.stderr[-4_000:]}"]
        result = self._compared(rows)
        tell(f"{self._lake.title}: {result.rows} rows compared, {result.unequal} differ")
        return [f"{self._lake.title}: {fault}" for fault in result.faults()]

    def _compared(self, rows: Path) -> Comparison:
        """Compare exported rows with the MySQL table, a range of keys at a time."""
        dataset, result = ds.dataset(rows), Comparison()
        with self._captured.connect() as connection, connection.cursor(DictCursor) as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(f"SELECT MIN(id) AS first, MAX(id) AS last FROM {self._table.sql}")
            [bounds] = cursor.fetchall()
            first, last = int(bounds["first"]), int(bounds["last"])
            outside = (ds.field("id") < first) | (ds.field("id") > last) | ds.field("id").is_null()
            for row in dataset.to_table(filter=outside).to_pylist():
                result.extra.add(f"key {row['id']}")
            for begin in range(first, last + 1, _KEYS):
                cursor.execute(
                    f"SELECT * FROM {self._table.sql} WHERE id >= {begin} AND id < {begin + _KEYS} AND id <= {last}"
                )
                chosen = (ds.field("id") >= begin) & (ds.field("id") < begin + _KEYS) & (ds.field("id") <= last)
                compare_rows(cursor.fetchall(), dataset.to_table(filter=chosen).to_pylist(), result)
        return result

    def _status(self) -> JobStatus | None:
        """Return the query's status, or None before the stream has begun."""
        given = {"config": str(self.properties), "table": str(self._table)}
        content = Files(own_part(frame_settings(given).settings.checkpoint_location)).read(NAME)
        status = None if content is None else load(json.loads(content.to_pybytes()))
        return status if status is not None and status.stream is not None else None

    def _wait(self, event: str, reached: Any) -> None:
        assert self.query is not None
        self.query.wait_until(event, reached, _PATIENCE_SECONDS, every=0.5)


@contextmanager
def kept_lake(captured: CapturedDatabase, table: TableId, lake: Lake) -> Iterator[KeptLake]:
    """Run a query that keeps a lake's table equal to `table` until the block ends."""
    folder = captured.folder / "lake"
    folder.mkdir()
    kept = KeptLake(captured, table, lake, folder)
    settings = {
        **captured.mysql.properties(),
        "topic.prefix": f"{captured.prefix}_lake",
        "snapshot.mode": "no_data",
        "signal.enabled.channels": "source",
        "signal.data.collection": str(captured.signals),
        "incsnap.online.ddl.reread": "all",
        "checkpoint.location": str(folder / "checkpoint"),
    }
    write_properties(kept.properties, settings)
    with running_query(lake, kept.properties, table, kept.name, folder) as query:
        kept.query = query
        yield kept


def compare_rows(rows: Any, lake_rows: list[dict[str, Any]], result: Comparison) -> None:
    of_lake: dict[int, dict[str, Any]] = {}
    for row in lake_rows:
        if row["id"] in of_lake:
            result.extra.add(f"key {row['id']}, twice")
        of_lake[row["id"]] = {name: _as_mysql(value) for name, value in row.items()}
    result.rows += len(rows)
    for row in rows:
        lake_row = of_lake.pop(row["id"], None)
        if lake_row is None:
            result.missing.add(f"key {row['id']}")
        elif lake_row != row:
            names = [name for name in {**row, **lake_row} if row.get(name, ...) != lake_row.get(name, ...)]
            parts = [f"{name} is {row.get(name, ...)!r}, there {lake_row.get(name, ...)!r}" for name in names]
            result.different.add(f"key {row['id']}: {', '.join(parts)}")
    for key in of_lake:
        result.extra.add(f"key {key}")


def _as_mysql(value: Any) -> Any:
    """Return a timestamp without its time zone, as PyMySQL does. The zone is UTC here."""
    return value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
