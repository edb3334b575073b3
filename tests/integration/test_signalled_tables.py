"""`incsnap signal` says at once which of its tables the job cannot read, and why."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pymysql.cursors import Cursor

from incsnap.cli.main import commands
from lab.addresses import MySqlAddress
from signals.channels.file import SignalFile

pytestmark = pytest.mark.servers


@pytest.fixture
def user(cursor: Cursor, mysql_address: MySqlAddress, database: str) -> Iterator[MySqlAddress]:
    """A user who may read the table `seen`, insert into the table `written`, and see nothing else."""
    for table in ("seen", "hidden", "written"):
        cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    name = "u" + secrets.token_hex(5)
    cursor.execute(f"CREATE USER {name} IDENTIFIED BY 'p'")
    cursor.execute(f"GRANT SELECT ON {database}.seen TO {name}")
    cursor.execute(f"GRANT INSERT ON {database}.written TO {name}")
    yield replace(mysql_address, user=name, password="p")
    cursor.execute(f"DROP USER {name}")


def _signal(address: MySqlAddress, database: str, folder: Path, *arguments: str) -> Result:
    lines = {
        **address.properties(),
        "topic.prefix": "p",
        "database.include.list": database,
        "bootstrap.servers": "unused:1",
        "checkpoint.location": str(folder / "checkpoint"),
        "signal.enabled.channels": "file",
        "signal.file": str(folder / "signals"),
    }
    file = folder / "job.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return CliRunner().invoke(commands, ["--log-level", "error", "signal", str(file), *arguments])


def _text(result: Result) -> str:
    return " ".join(result.output.split())


def test_a_signal_without_any_readable_table_is_not_sent_and_each_reason_is_named(
    user: MySqlAddress, database: str, mysql_address: MySqlAddress, tmp_path: Path
) -> None:
    names = [f"{database}.hidden", f"{database}.written", "other.t", "seen", rf"{database}\.nothing.*"]
    arguments = [part for name in names for part in ("--table", name)]

    result = _signal(user, database, tmp_path, "execute-snapshot", *arguments)

    account = f"'{user.user}'@'%'"
    assert result.exit_code == 2
    for table in ("hidden", "written"):
        assert f"{account} may not read {database}.{table}" in _text(result)
        assert f"GRANT SELECT ON `{database}`.`{table}` TO {account};" in _text(result)
    assert "other.t is left out by the include and exclude lists" in _text(result)
    assert f"no captured table that {account} may see matches seen " in _text(result)
    assert rf"no captured table that {account} may see matches {database}\.nothing.*" in _text(result)
    assert not (tmp_path / "signals").exists()

    missing = _signal(mysql_address, database, tmp_path, "execute-snapshot", "--table", f"{database}.absent")
    assert missing.exit_code == 2
    assert f"no table is called {database}.absent" in _text(missing)


def test_a_signal_with_one_readable_table_is_sent_and_the_others_are_warned_about(
    user: MySqlAddress, database: str, tmp_path: Path
) -> None:
    seen, hidden = f"{database}.seen", f"{database}.hidden"

    result = _signal(user, database, tmp_path, "execute-snapshot", "--table", seen, "--table", hidden)

    assert result.exit_code == 0, result.output
    assert f"may not read {hidden}" in _text(result)
    assert seen not in _text(result)
    assert len(SignalFile(tmp_path / "signals").poll(None).records) == 1


def test_a_table_that_cannot_be_read_may_be_stopped(user: MySqlAddress, database: str, tmp_path: Path) -> None:
    result = _signal(user, database, tmp_path, "stop-snapshot", "--table", f"{database}.hidden")

    assert result.exit_code == 0, result.output
    assert len(SignalFile(tmp_path / "signals").poll(None).records) == 1
