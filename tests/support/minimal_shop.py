"""A database on a server with `binlog_row_metadata=MINIMAL`, and a job without Spark that captures it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.value_files import ValueFiles
from incsnap.ddl.batch_definitions import BatchDefinitions
from incsnap.errors import DefinitionUnknown
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of

_NUMBERS = itertools.count()


class Shop:
    """A database of one test, and the job that captures it. The job is created on first use."""

    def __init__(self, address: MySqlAddress, kafka: str, prefix: str, root: Path) -> None:
        self.address, self.prefix, self.root = address, prefix, root
        self.database = f"shop_{next(_NUMBERS)}"
        self.connection = connect(address)
        self.run(f"CREATE DATABASE {self.database}", f"USE {self.database}", "SET GLOBAL binlog_row_metadata = MINIMAL")
        self.settings = settings_of(address, kafka, prefix, self.database, snapshot__mode="no_data")
        self._job: PlannedJob | None = None

    @property
    def job(self) -> PlannedJob:
        if self._job is None:
            self._job = PlannedJob(self.settings, str(self.root))
        return self._job

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements, and return the rows of the last one."""
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def insert(self, table: str, *rows: Sequence[Any]) -> None:
        """Insert the rows, each in its own transaction."""
        with self.connection.cursor() as cursor:
            for values in rows:
                cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(values))})", values)

    def job_with(self, **properties: str) -> None:
        """Set further properties of the job. Call it before the job is used."""
        kafka = self.settings.kafka.bootstrap_servers
        self.settings = settings_of(self.address, kafka, self.prefix, self.database, **properties)

    def knows(self, *tables: str) -> None:
        """Run batches until the job has written these tables' definitions."""
        self.job.batches_until(lambda: self.known() >= set(tables), f"definitions of {tables}")

    def known(self) -> set[str]:
        """Return the tables whose definitions the job has written."""
        name = self.job.offset.definitions
        if not name:
            return set()
        kept = ValueFiles(Files(str(self.root)), "definitions", "definitions", BatchDefinitions)
        return {each.shape.id.table for each in kept.read(name).tables}

    def sent(self, table: str) -> list[Any]:
        """Return the `after` of each record of the table, in the order of its bucket. It is None for a deletion."""
        values = [each.value for each in self.job.of(f"{self.prefix}.{self.database}.{table}") if each.value]
        return [value["after"] for value in values]

    def until(self, table: str, count: int) -> list[Any]:
        """Run batches until `count` records of the table were sent, and return them."""
        self.job.batches_until(lambda: len(self.sent(table)) >= count, f"{count} rows of {table}")
        return self.sent(table)

    def stops(self, because: str) -> str:
        """Run batches until the job stops because of an unknown definition. Return the error's message."""
        with pytest.raises(DefinitionUnknown, match=because) as stop:
            self.job.batches_until(lambda: False, "stop")
        assert "SET PERSIST binlog_row_metadata = FULL" in stop.value.hint
        return stop.value.message

    def close(self) -> None:
        if self._job is not None:
            self._job.close()
        self.run(f"DROP DATABASE {self.database}")
        self.connection.close()


def row(key: int, a: str | None = None, b: str | None = None, e: str | None = None) -> dict[str, Any]:
    return {"id": key, "a": a, "b": b, "e": e}
