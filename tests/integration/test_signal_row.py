"""A signal by a row that the server does not take: the error says why, and what to do."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pymysql.cursors import Cursor

from incsnap.errors import IncsnapError
from incsnap.monitoring.signal_sender import send_signal
from lab.addresses import MySqlAddress
from signals import send
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers


@pytest.fixture
def reader(cursor: Cursor, mysql_address: MySqlAddress) -> Iterator[MySqlAddress]:
    """A user who sees everything, and may insert nothing."""
    name = "u" + secrets.token_hex(5)
    cursor.execute(f"CREATE USER {name} IDENTIFIED BY 'p'")
    cursor.execute(f"GRANT SELECT ON *.* TO {name}")
    yield replace(mysql_address, user=name, password="p")
    cursor.execute(f"DROP USER {name}")


def _refused(address: MySqlAddress, table: str, name: str = "s") -> IncsnapError:
    settings = settings_of(address, "unused:1", "p", "shop", signal__data__collection=table)
    with pytest.raises(IncsnapError) as raised:
        send_signal(settings, name, "log", {"message": "m"})
    return raised.value


def test_where_the_database_or_the_table_does_not_exist_the_statements_are_given(
    mysql_address: MySqlAddress, reader: MySqlAddress, database: str
) -> None:
    for table, lack, create in (
        ("absent.sig", "the database absent does not exist", "CREATE DATABASE `absent`; CREATE TABLE `absent`.`sig`"),
        (f"{database}.sig", f"the table {database}.sig does not exist", f"CREATE TABLE `{database}`.`sig`"),
    ):
        by_owner, by_reader = _refused(mysql_address, table), _refused(reader, table)

        assert by_owner.message.endswith(f": {lack}")
        assert by_owner.hint.startswith(create)
        assert "GRANT" not in by_owner.hint
        assert f"; {lack}, or the user may not see it" in by_reader.message
        assert by_reader.hint.startswith(create)
        assert "GRANT INSERT ON" in by_reader.hint


def test_without_insert_on_the_signal_table_only_the_grant_is_given(
    cursor: Cursor, reader: MySqlAddress, database: str
) -> None:
    cursor.execute("CREATE TABLE sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")

    error = _refused(reader, f"{database}.sig")

    assert "denied" in error.message
    assert error.hint.startswith(f"GRANT INSERT ON `{database}`.`sig`")


def test_an_id_that_is_taken_asks_for_another_one(cursor: Cursor, mysql_address: MySqlAddress, database: str) -> None:
    cursor.execute("CREATE TABLE sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    cursor.execute("INSERT INTO sig VALUES ('taken', 'log', '{}')")

    assert _refused(mysql_address, f"{database}.sig", "taken").hint == "Choose another --id."


def test_a_list_of_keys_that_is_too_long_for_the_table_is_refused_with_the_ways_out(
    cursor: Cursor, mysql_address: MySqlAddress, database: str
) -> None:
    """A row that is cut off would be no JSON, and the job would ignore it."""
    cursor.execute("CREATE TABLE sig (id VARCHAR(42) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))")
    settings = settings_of(mysql_address, "unused:1", "p", "shop", signal__data__collection=f"{database}.sig")
    keys = {"incsnap-keys": [{"id": key} for key in range(500)]}
    for data, hint in (
        (send.snapshot_data(["shop.orders"], chosen=keys), "--keys-file"),
        (send.snapshot_data([f"shop.orders_{number}" for number in range(500)]), "or name fewer tables."),
    ):
        with pytest.raises(IncsnapError, match="Data too long for column 'data'") as raised:
            send_signal(settings, "s", "execute-snapshot", data)
        assert hint in raised.value.hint
    cursor.execute("SELECT COUNT(*) FROM sig")
    assert cursor.fetchone() == (0,)
