"""DDL in the middle of windows, while writers write.

Every record has the shape that its row had, no key goes back in time, all rows arrive, and a consumer's final state is
the table.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest
from confluent_kafka import Message

from incsnap.checkpoint.status import read_status
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase
from lab.replay import read_topics
from lab.table_designs import Key, TableDesign
from lab.workload import Writer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.servers

ROWS = 200_000
#: One or two chunks a batch: the table takes many batches, and DDL falls between and into them.
SETTINGS = {"spark.master": "local[1,4]"}

#: The writer knows only the column `a`, so every other column may be added, dropped or moved.
DESIGN = TableDesign(
    name="shifting",
    columns="id BIGINT PRIMARY KEY, version BIGINT NOT NULL, a VARCHAR(40), b INT, gone INT, e ENUM('x', 'y')",
    key=("id",),
    load="i, 0, CONCAT('row ', i), i % 100, i, IF(i % 2, 'x', 'y')",
    new_key=lambda _, number: (1_000_000 + number,),
    row=lambda random: {"a": f"written {random.randrange(1_000_000)}"},
)


def alter(what: str) -> Callable[[Any, TableId], None]:
    return lambda cursor, table: cursor.execute(f"ALTER TABLE {table.sql} {what}")


def exchange(cursor: Any, table: TableId) -> None:
    """Replace the table as tools for schema changes do: a copy with another shape gets its place and name."""
    copy, old = TableId(table.database, "ghost"), TableId(table.database, "before")
    cursor.execute(f"CREATE TABLE {copy.sql} LIKE {table.sql}")
    cursor.execute(f"ALTER TABLE {copy.sql} ADD COLUMN ghost INT NOT NULL DEFAULT 9 AFTER id")
    cursor.execute(f"SHOW COLUMNS FROM {table.sql}")
    names = ", ".join(f"`{name}`" for name, *_ in cursor.fetchall())
    cursor.execute(f"LOCK TABLES {table.sql} WRITE, {copy.sql} WRITE")
    cursor.execute(f"INSERT INTO {copy.sql} ({names}) SELECT {names} FROM {table.sql}")
    cursor.execute(f"RENAME TABLE {table.sql} TO {old.sql}, {copy.sql} TO {table.sql}")
    cursor.execute("UNLOCK TABLES")
    cursor.execute(f"DROP TABLE {old.sql}")


CHANGES: list[tuple[str, Callable[[Any, TableId], None]]] = [
    ("add", alter("ADD COLUMN added INT NOT NULL DEFAULT 5")),
    ("drop", alter("DROP COLUMN gone")),
    ("exchange", exchange),
    ("rename", alter("RENAME COLUMN b TO renamed")),
    ("modify", alter("MODIFY renamed BIGINT FIRST")),
    ("reorder", alter("MODIFY a VARCHAR(300) AFTER id")),
    ("charset", alter("CONVERT TO CHARACTER SET utf8mb3")),
    ("literals", alter("MODIFY e ENUM('x', 'new', 'y')")),
    ("back", alter("DROP COLUMN added")),
]


@dataclass(slots=True)
class Consumer:
    """The state of a consumer of the topic."""

    #: by key: the newest row, by column; None after a deletion
    rows: dict[Key, dict[str, Any] | None] = field(default_factory=dict)
    versions: dict[Key, int] = field(default_factory=dict)  #: the newest version of each key
    back_in_time: list[str] = field(default_factory=list)  #: records with an older version than the one before
    counts: Counter[str] = field(default_factory=Counter)  #: records by `op`
    shapes: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)  #: rows by `op` and columns

    def observe(self, message: Message) -> None:
        key, value = message.key(), message.value()
        assert key is not None
        identity = tuple(json.loads(key).values())
        if value is None:
            return
        record = json.loads(value)
        op, row = record["op"], record["after"]
        self.counts[op] += 1
        newest = (row or record["before"])["version"]
        if newest < self.versions.get(identity, -1):
            self.back_in_time.append(f"{identity}: {op} {newest} behind {self.versions[identity]}")
        self.versions[identity] = newest
        self.rows[identity] = row
        if row is not None:
            self.shapes[op, tuple(row)] += 1

    @property
    def living(self) -> dict[Key, dict[str, Any]]:
        return {key: row for key, row in self.rows.items() if row is not None}


def progress(play: CapturedDatabase) -> tuple[int, int]:
    """Return the newest planned batch, and the number of snapshot rows sent so far."""
    status = read_status(str(play.checkpoint))
    return (status.batch, status.sent.reads) if status is not None else (-1, 0)


def moved(play: CapturedDatabase, place: int, before: int) -> bool:
    return progress(play)[place] > before


def consumed(play: CapturedDatabase, table: TableId) -> Consumer:
    consumer = Consumer()
    read_topics(play.kafka, [play.topic(table)], consumer.observe)
    return consumer


def table_rows(play: CapturedDatabase, table: TableId) -> dict[Key, dict[str, Any]]:
    with play.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table.sql}")
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return {(row["id"],): row for row in rows}


def test_changes_of_a_table_in_the_middle_of_its_windows(play: CapturedDatabase, say: Callable[[str], None]) -> None:
    table = play.create(DESIGN, ROWS)
    random = Random(7)
    with play.notices() as notices, play.job(SETTINGS) as job:
        job.wait_until_streaming()
        made = []
        with Writer(play.connect, play.tables, seed=7, rate=150, largest_transaction=8):
            play.execute_by_row("while-changing", [table])
            with play.connect() as connection, connection.cursor() as cursor:
                for number, (name, change) in enumerate(CHANGES):
                    # DDL without pauses would make all windows be read again. Some must get through in between.
                    before = progress(play)
                    place = number % 2
                    with suppress(TimeoutError):
                        wait_until(partial(moved, play, place, before[place]), 15)
                    time.sleep(random.uniform(0.0, 0.3))
                    change(cursor, table)
                    made.append((name, notices.completed("while-changing")))
            job.wait_until("the snapshot was complete", lambda: notices.completed("while-changing"))
        play.drain(job)
        first, rows = consumed(play, table), table_rows(play, table)
        # Read everything once more in the last shape: now no row may lack a column.
        play.execute_by_row("afterwards", [table])
        job.wait_until("the second snapshot was complete", lambda: notices.completed("afterwards"))
        play.drain(job)
        job.stop()
    second = consumed(play, table)

    during = [name for name, completed in made if not completed]
    say(f"{len(during)} of {len(made)} changes while the snapshot ran; {dict(first.counts)}")
    assert len(during) >= 3, f"too few changes met a running snapshot: {made}"
    assert not first.back_in_time
    assert not second.back_in_time
    living = first.living
    assert living.keys() == rows.keys()
    wrong = [difference for key, row in rows.items() if (difference := differences(row, living[key]))]
    assert not wrong, f"{len(wrong)} rows, such as {wrong[:3]}"
    assert second.living == rows
    # The chunks were read in more than one shape.
    assert len([shape for op, shape in first.shapes if op == "r"]) >= 2, first.shapes


#: The value of a new column in rows that were written before.
ADDED = {"added": 5, "ghost": 9}


def differences(row: dict[str, Any], record: dict[str, Any]) -> str:
    """Return how the record differs from the row, or "".

    A record from before a DDL statement lacks new columns, and has renamed ones under their old names.
    """
    renamed = {"renamed": record["b"], **record} if "b" in record else record
    for name, value in row.items():
        expected = renamed.get(name, ADDED.get(name))
        if value != expected:
            return f"{row['id']}: {name} is {value!r} in the table, {expected!r} in the topic"
    return ""
