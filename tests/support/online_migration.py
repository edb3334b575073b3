"""A table that a tool for online schema changes alters, and the job that captures the table's database."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.support.planned_job import PlannedJob, settings_of
from tests.support.waiting import PATIENCE_SECONDS

_NUMBERS = itertools.count()


class Migration:
    """A table `t` that a tool alters, and the job that captures its database."""

    def __init__(self, address: MySqlAddress, kafka: str, prefix: str, root: Path, rows: int, **more: str) -> None:
        self.address = address
        self.database = f"online_{next(_NUMBERS)}_{prefix[-6:]}"
        self.connection = connect(address)
        self.run(f"CREATE DATABASE {self.database}", f"USE {self.database}")
        self.run("CREATE TABLE t (id INT NOT NULL, v VARCHAR(9) DEFAULT NULL, PRIMARY KEY (id))")
        self.keys = list(range(1, rows + 1))
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, 'a')", [(key,) for key in self.keys])
        options = {
            "include__schema__changes": "true",
            "notification__enabled__channels": "sink",
            "notification__sink__topic__name": f"{prefix}-notifications",
            "signal__enabled__channels": "file",
            "signal__file": str(root / "signals"),
            **more,
        }
        self.root, self.prefix = root, prefix
        self.settings = settings_of(address, kafka, prefix, self.database, **options)
        self._job: PlannedJob | None = None

    @property
    def job(self) -> PlannedJob:
        """The job. It begins with the first use."""
        if self._job is None:
            self._job = PlannedJob(self.settings, str(self.root))
        return self._job

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements, and return the rows of the last one."""
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def insert(self) -> int:
        """Insert a row into `t`, as its users do. Return its key."""
        self.keys.append(self.keys[-1] + 1)
        self.run(f"INSERT INTO t (id, v) VALUES ({self.keys[-1]}, 'b')")
        return self.keys[-1]

    def play(
        self, statements: Sequence[str], *, copies: str = "", batches: bool = True, restarts: bool = False
    ) -> None:
        """Run the statements with an insertion behind each. With `copies`, fill that copy from `t` before it is
        swapped.

        `batches`: run batches up to each insertion. `restarts`: start the job again behind each batch.
        """
        for statement in statements:
            upper = statement.upper()
            if copies and "RENAME" in upper and self.has_table() and self.has_table(copies):
                self.run(f"INSERT IGNORE INTO {copies} (id, v) SELECT id, v FROM t")
            self.run(statement)
            if not self.has_table():
                continue
            key = self.insert()
            if copies and self.has_table(copies) and (self.has_table("_t_ghc") or self.has_table("_t_chkpnt")):
                self.run(f"REPLACE INTO {copies} (id, v) SELECT id, v FROM t WHERE id = {key}")
            if self.has_table("_t_ghk"):
                self.run(f"INSERT INTO _t_ghk (id_min, id_max) VALUES ({key}, {key})")
            if batches:
                self.until_event(key)
            if restarts:
                self.job.restart()

    def has_table(self, name: str = "t") -> bool:
        """Whether the table exists."""
        with self.connection.cursor() as cursor:
            cursor.execute("SHOW TABLES LIKE %s", (name.replace("_", r"\_"),))
            return bool(cursor.fetchall())

    def events(self, table: str = "t") -> list[dict[str, Any]]:
        """The rows behind insertions that were sent."""
        records = self.job.of(f"{self.prefix}.{self.database}.{table}")
        return [each.value["after"] for each in records if each.value and each.value["op"] == "c"]

    def reads(self) -> Counter[int]:
        """How often each key of `t` was sent by a snapshot."""
        records = self.job.of(f"{self.prefix}.{self.database}.t")
        return Counter(each.value["after"]["id"] for each in records if each.value and each.value["op"] == "r")

    def until_event(self, key: int) -> None:
        """Run batches until the insertion of the row was sent."""
        self.job.batches_until(lambda: any(row["id"] == key for row in self.events()), f"event of {key}")

    def schema_changes(self) -> list[tuple[str, list[str], str]]:
        """The records of the schema change topic: types, tables and the statement."""
        values = [each.value for each in self.job.of(self.prefix)]
        return [
            (
                "/".join(each["type"] for each in value["tableChanges"]),
                [each["id"].rpartition(".")[2].strip('"') for each in value["tableChanges"]],
                value["ddl"],
            )
            for value in values
        ]

    def columns_after(self) -> list[list[str]]:
        """The columns in each ALTER of the schema change topic."""
        changes = [change for each in self.job.of(self.prefix) for change in each.value["tableChanges"]]
        return [[column["name"] for column in each["table"]["columns"]] for each in changes if each["type"] == "ALTER"]

    def notifications(self) -> list[dict[str, Any]]:
        """The notifications about online schema changes."""
        notes = (each.value for each in self.job.of(f"{self.prefix}-notifications"))
        return [{"type": each["type"], **each["additional_data"]} for each in notes if "ONLINE" in each["type"]]

    def recognised(self) -> set[str]:
        """The tables of tools in notifications."""
        notes = (each for each in self.notifications() if each["type"] == "ONLINE_DDL_TABLE")
        return {each["data_collections"].rpartition(".")[2] for each in notes}

    def topics(self) -> set[str]:
        """The tables that have got records."""
        begin = f"{self.prefix}.{self.database}."
        return {each.topic.removeprefix(begin) for each in self.job.sent if each.topic.startswith(begin)}

    def topics_in_kafka(self) -> set[str]:
        """The tables that have a topic."""
        begin = f"{self.prefix}.{self.database}."
        admin = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        names = admin.list_topics(timeout=30).topics
        return {name.removeprefix(begin) for name in names if name.startswith(begin)}

    def close(self) -> None:
        """Close the job, and drop the database."""
        if self._job is not None:
            self._job.close()
        self.run(f"DROP DATABASE IF EXISTS {self.database}")
        self.connection.close()


def wait_patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a batch wait for the server's definitions, and for later statements, as long as a test waits.

    A batch that has waited for a second goes on without them.
    """
    for module in ("schema_changes", "online_ddl"):
        monkeypatch.setattr(f"incsnap.planner.{module}.WAIT_SECONDS", PATIENCE_SECONDS)


def migrations(address: MySqlAddress, kafka: str, prefix: str, root: Path) -> Iterator[Any]:
    """Yield a function that begins a migration on the server `address`. Close all migrations at the end.

    `starts`: whether the job begins at once. `more`: settings of the job, with `__` in place of each dot.
    """
    opened: list[Migration] = []

    def begin(rows: int = 5, *, starts: bool = True, **more: str) -> Migration:
        opened.append(Migration(address, kafka, prefix, root, rows, **more))
        if starts:
            assert opened[-1].job
        return opened[-1]

    yield begin
    for each in opened:
        with closing(each):
            pass
