"""Random statements on a real server: what is followed from their text is what the server made of them.

`make test` runs 1,500 alterations, and what lies between them. `INCSNAP_PROFILE=nightly make test
TESTS=tests/integration/test_followed_definitions.py` runs 10,000 that are new each time.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from incsnap.ddl.created import read_definition
from incsnap.ddl.follow import Followed, follow
from incsnap.ddl.statements import schema_change
from incsnap.ddl.table_definition import Definitions, TableDefinition
from incsnap.ddl.words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, NotUnderstood
from incsnap.events import SchemaChange, Session
from incsnap.mysql.catalog import shapes_of
from incsnap.mysql.session import query
from incsnap.tables import TableId
from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from lab.servers import servers
from tests.support.profile import NIGHTLY, PROFILE, seed
from tests.support.random_statements import RandomStatements

pytestmark = pytest.mark.servers

_ALTERATIONS = {"check": 300, "ci": 4_000, "nightly": 10_000}.get(PROFILE, 1_500)
_MODES = {
    "": 0,
    "STRICT_TRANS_TABLES": 1 << 21,
    "ANSI_QUOTES": ANSI_QUOTES,
    "NO_BACKSLASH_ESCAPES": NO_BACKSLASH_ESCAPES,
    "ANSI_QUOTES,NO_BACKSLASH_ESCAPES": ANSI_QUOTES | NO_BACKSLASH_ESCAPES,
    "REAL_AS_FLOAT": 1,
}
_DATABASES = {"followed": "utf8mb4", "followed_latin1": "latin1"}
#: Nothing here has to survive a crash.
_FAST = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=OFF")


#: Errors of a client whose server is gone.
_CRASHES = (0, 2006, 2013)


class _Crash(Exception):
    """A statement ended the server."""


@dataclass
class Outcome:
    """The outcome of the statements."""

    taken: int = 0  #: by the server
    alterations: int = 0  #: of them that changed a table that was there
    followed: int = 0
    wrong: list[str] = field(default_factory=list)
    not_followed: Counter[str] = field(default_factory=Counter)  #: why -> how often
    crashes: list[str] = field(default_factory=list)  #: statements that ended the server


@pytest.mark.timeout(7_200 if NIGHTLY else 900)  # 15 minutes for 10,000 on two cores that others use too
def test_random_statements_are_followed_as_the_server_runs_them() -> None:
    taken = seed(8)
    outcome = run(taken, _ALTERATIONS)
    shown = f"seed {taken}: {outcome.followed} of {outcome.taken} followed, not: {outcome.not_followed.most_common(9)}"
    logging.getLogger(__name__).warning("%s", shown)
    assert not outcome.wrong, outcome.wrong[0]
    assert outcome.followed >= 0.95 * outcome.taken, shown


def run(seed: int, statements: int) -> Outcome:
    """Run statements until the server has taken so many alterations. A server that crashes is replaced by a new one."""
    rng, outcome = random.Random(seed), Outcome()
    while outcome.alterations < statements and len(outcome.wrong) < 20:
        try:
            with servers(kafka=False, mysql_options=_FAST) as started, _sessions(started.mysql) as (writer, reader):
                _Play(rng, writer, reader, outcome).run(statements)
        except _Crash as crash:
            outcome.crashes.append(str(crash))
            assert len(outcome.crashes) < 20
    return outcome


@contextmanager
def _sessions(address: MySqlAddress) -> Iterator[tuple[Connection[Any], Connection[Any]]]:
    with closing(connect(address)) as writer, closing(connect(address)) as reader:
        query(reader, "SET sql_mode = ''")
        yield writer, reader


class _Play:
    def __init__(self, rng: random.Random, writer: Connection[Any], reader: Connection[Any], outcome: Outcome) -> None:
        self._dice, self._writer, self._reader, self._outcome = rng, writer, reader, outcome
        self._known = Definitions({}, _DATABASES)
        self._statements = RandomStatements(rng, tuple(_DATABASES))
        for database, charset in _DATABASES.items():
            query(writer, f"CREATE DATABASE {database} CHARACTER SET {charset}")
        query(writer, f"CREATE TABLE {next(iter(_DATABASES))}.parent (id INT PRIMARY KEY)")

    def run(self, statements: int) -> None:
        """Run statements until the server has taken so many alterations."""
        while self._outcome.alterations < statements and len(self._outcome.wrong) < 20:
            self._step()

    def _step(self) -> None:
        session, maker, mode = self._session()
        maker.known = dict(self._known.tables)
        statement = maker.next()
        with self._writer.cursor() as cursor:
            cursor.execute(f"USE {session.database}")
            cursor.execute(
                f"SET sql_mode = '{mode}', explicit_defaults_for_timestamp = {int(bool(session.explicit_timestamps))},"
                f" collation_connection = {session.connection}_general_ci"
            )
            try:
                cursor.execute(statement.sql)
            except pymysql.MySQLError as refused:
                if refused.args[0] in _CRASHES:
                    raise _Crash(statement.sql) from refused
                return
        self._outcome.taken += 1
        self._outcome.alterations += statement.alters
        change = schema_change(statement.sql, session.database, sql_mode=session.sql_mode)
        # A table that is created is always a new one, of InnoDB.
        change = replace(change or SchemaChange(None, "", statement.sql), session=session, has_xid=True)
        self._judge(change, statement.tables | (change.tables or frozenset()))

    def _session(self) -> tuple[Session, RandomStatements, str]:
        mode = self._dice.choice(list(_MODES))
        database = self._dice.choice(list(_DATABASES))
        connection = self._dice.choice(("utf8mb4", "utf8mb4", "utf8mb4", "latin1"))
        session = Session(database, _MODES[mode], "utf8mb4", connection, "utf8mb4", self._dice.random() < 0.8)
        self._statements.sql_mode, self._statements.session_database = _MODES[mode], database
        return session, self._statements, mode

    def _judge(self, change: SchemaChange, tables: frozenset[TableId]) -> None:
        """Compare the tables behind the statement with those of the server, and go on from what was followed."""
        followed = follow(change, self._known)
        real = _server_definitions(self._reader, tables)
        differences = [each for table in sorted(tables) for each in _differences(table, followed, real)]
        if differences:
            self._outcome.wrong.append("\n".join((change.sql, str(change.session), *differences)))
        elif followed.lost:
            self._outcome.not_followed.update(followed.lost.values())
        else:
            self._outcome.followed += 1
        kept = dict(followed.known.tables)
        for table in tables:
            if table in followed.lost or differences or real.get(table, table) is None:
                kept.pop(table, None)
                query(self._writer, f"DROP TABLE IF EXISTS {table.sql}")
        self._known = Definitions(kept, followed.known.databases)


def _server_definitions(
    connection: Connection[Any], tables: frozenset[TableId]
) -> dict[TableId, TableDefinition | None]:
    """Tables that exist -> their definitions; None where SHOW CREATE TABLE prints what is not understood."""
    definitions: dict[TableId, TableDefinition | None] = {}
    for table, shape in shapes_of(connection, sorted(tables)).items():
        printed = str(query(connection, f"SHOW CREATE TABLE {table.sql}")[0][1])
        try:
            definitions[table] = read_definition(printed, table)
        except NotUnderstood:
            definitions[table] = None
        else:
            assert definitions[table].shape == shape, printed  # type: ignore[union-attr]
    return definitions


def _differences(table: TableId, followed: Followed, real: dict[TableId, TableDefinition | None]) -> Iterator[str]:
    ours = followed.known.tables.get(table)
    if table in followed.lost:
        return
    if (ours is None) != (table not in real):
        yield f"{table} {'is there' if ours is None else 'is not there'}"
    theirs = real.get(table)
    if ours is None or theirs is None:
        return
    if ours.shape != theirs.shape:
        yield f"{table}: {ours.shape}\nis on the server {theirs.shape}"
    if (ours.charset, sorted(ours.virtual)) != (theirs.charset, sorted(theirs.virtual)):
        yield f"{table}: {ours.charset}, {ours.virtual}, is on the server {theirs.charset}, {theirs.virtual}"
    # The names of unique keys decide what a later DROP INDEX does, and their order which of them stands in for a
    # primary key. A name that is not certain says nothing.
    left, right = (_unique_keys(each) for each in (ours, theirs))
    if len(left) != len(right) or any(
        own[0] not in ("", other[0]) or own[1] != other[1] for own, other in zip(left, right, strict=True)
    ):
        yield f"{table}: {left}\nis on the server {right}"


def _unique_keys(definition: TableDefinition) -> list[tuple[str, object]]:
    return [(key.name, key.parts) for key in definition.keys if key.unique and all(part.column for part in key.parts)]
