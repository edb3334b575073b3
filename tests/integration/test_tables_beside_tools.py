"""What reads all captured tables leaves out the tables of a tool for online schema changes, as the job does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pymysql.cursors import Cursor

from incsnap.checkpoint.files import Files
from incsnap.checkpoint.gap_files import GapFiles
from incsnap.checkpoint.location import own_part
from incsnap.cli.main import commands
from incsnap.config.settings import Settings
from incsnap.ddl.online_tables import OnlineTable, OnlineTables
from incsnap.events import StreamPosition
from incsnap.gtid import GtidSet
from incsnap.planner.online_ddl import OnlineDdl
from incsnap.snapshot.offset import Offset, TopicLayout
from incsnap.tables import TableId
from incsnap.verify.allowance import Allowance
from incsnap.verify.gap import GapCourse
from incsnap.verify.verification import Choice, verify_tables
from lab.addresses import MySqlAddress
from lab.running_job import write_properties
from signals.channels.file import SignalFile
from tests.support.online_runs import gh_ost, pt_osc
from tests.support.planned_job import settings_of

pytestmark = pytest.mark.servers

Signal = Callable[..., tuple[int, str]]


@pytest.fixture
def settings(
    cursor: Cursor, mysql_address: MySqlAddress, kafka_address: str, database: str, topic_prefix: str
) -> Settings:
    """Settings of a job that captures a database with two empty tables, beside gh-ost and pt-online-schema-change.

    The tools' tables have rows, and no table has a topic.
    """
    for table, run in (("t", gh_ost(database)), ("u", pt_osc(database, "u", new="u_v2"))):
        cursor.execute(f"CREATE TABLE {table} (id INT NOT NULL, PRIMARY KEY (id))")
        swap = next(number for number, sql in enumerate(run) if sql.upper().startswith("RENAME"))
        for statement in run[:swap]:
            cursor.execute(statement)
    cursor.execute("INSERT INTO _t_ghc (hint, value) VALUES ('state', 'copying')")
    for copy in ("_t_gho", "u_v2"):
        cursor.execute(f"INSERT INTO {copy} (id) VALUES (1)")
    return settings_of(mysql_address, kafka_address, topic_prefix, database)


def refusals(settings: Settings, *tables: str) -> dict[str, str]:
    """Compare, and return why each table was not compared. Without a topic no comparison needs Spark."""
    no_spark: Any = None
    reports = verify_tables(no_spark, settings, Choice(tables))
    return {report.table.rpartition(".")[2]: report.refused for report in reports}


def test_verify_compares_all_tables_but_those_of_tools(settings: Settings, database: str) -> None:
    assert refusals(settings) == {"t": "", "u": ""}
    named = refusals(settings, f"{database}._t_gho")
    assert named == {"_t_gho": f"Topic {settings.topic_prefix}.{database}._t_gho does not exist."}
    captured = refusals(settings.model_copy(update={"online_ddl_tables": "capture"}))
    assert {table for table, why in captured.items() if why.endswith("does not exist.")} == {"_t_ghc", "_t_gho", "u_v2"}


@pytest.fixture
def with_former(settings: Settings, cursor: Cursor, tmp_path: Path) -> Settings:
    """`settings` with a checkpoint of their own, beside the table `_t_del`, which has a row."""
    cursor.execute("CREATE TABLE _t_del (id INT NOT NULL, PRIMARY KEY (id))")
    cursor.execute("INSERT INTO _t_del VALUES (1)")
    return settings.model_copy(update={"checkpoint_location": str(tmp_path / "checkpoint")})


def write_former(settings: Settings, former: TableId) -> None:
    """Write a checkpoint that knows `former` as a former table of gh-ost."""
    of = TableId(former.database, "t")
    known = OnlineTables((OnlineTable(former, "gh-ost", "former", of, "a swap"),))
    name = OnlineDdl(settings, Files(own_part(settings.checkpoint_location))).keep(known)
    offset = Offset("job", 1, StreamPosition(GtidSet(), "", 0), TopicLayout(1), online=name)
    for log, content in (("offsets", json.dumps(offset.dump())), ("commits", "{}")):
        path = Path(settings.checkpoint_location) / "spark" / log / "1"
        path.parent.mkdir(parents=True)
        path.write_text(f"v1\n{{}}\n{content}")


def test_verify_leaves_out_a_former_table_that_the_checkpoint_knows(with_former: Settings, database: str) -> None:
    settings, former = with_former, TableId(database, "_t_del")
    no_topic = f"Topic {settings.topic_prefix}.{database}._t_del does not exist."
    assert refusals(settings) == {"t": "", "u": "", "_t_del": no_topic}
    write_former(settings, former)
    assert refusals(settings) == {"t": "", "u": ""}
    assert refusals(settings, str(former)) == {"_t_del": no_topic}
    captured = refusals(settings.model_copy(update={"online_ddl_tables": "capture"}))
    assert captured["_t_del"] == no_topic


def test_the_repair_behind_a_gap_leaves_out_a_former_table_that_the_checkpoint_knows(
    with_former: Settings, database: str
) -> None:
    settings, former = with_former, TableId(database, "_t_del")
    root, no_spark = own_part(settings.checkpoint_location), cast(Any, None)

    def read_whole(job: str) -> dict[str, str]:
        """Repair all tables, and return those that are read whole, each with the reason."""
        GapFiles(Files(root), job).open(GtidSet())
        course = GapCourse(no_spark, settings, root, job, Allowance())
        assert course.is_open()
        course.run(alone=False)
        return {each.table: each.reason for answer in course.answers for each in answer.tables}

    assert [*read_whole("before")] == [former.sql]
    write_former(settings, former)
    assert read_whole("behind") == {}


@pytest.fixture
def signal(settings: Settings, mysql_address: MySqlAddress, database: str, tmp_path: Path) -> Signal:
    """A function that asks for snapshots of tables by the command. It returns the exit code and the output."""
    lines = {
        **mysql_address.properties(),
        "topic.prefix": "p",
        "database.include.list": database,
        "bootstrap.servers": "unused:1",
        "checkpoint.location": str(tmp_path / "checkpoint"),
        "signal.enabled.channels": "file",
        "signal.file": str(tmp_path / "signals"),
    }
    file = write_properties(tmp_path / "job.properties", lines)

    def send(*tables: str) -> tuple[int, str]:
        options = [part for table in tables for part in ("--table", table)]
        arguments = ["--log-level", "error", "signal", str(file), "execute-snapshot", *options]
        result = CliRunner().invoke(commands, arguments)
        return result.exit_code, " ".join(result.output.split())

    return send


def test_a_signal_of_all_tables_does_not_name_those_of_tools(signal: Signal, database: str, tmp_path: Path) -> None:
    code, text = signal(rf"{database}\..*")
    assert (code, "warning" in text) == (0, False)
    code, text = signal(rf"{database}\._.*")
    assert (code, "no captured table" in text) == (2, True)
    code, text = signal(f"{database}._t_gho")
    assert code == 2
    assert f"{database}._t_gho belongs to gh-ost, which alters {database}.t" in text
    assert len(SignalFile(tmp_path / "signals").poll(None).records) == 1


def test_a_signal_does_not_name_a_former_table_that_the_checkpoint_knows(
    signal: Signal, with_former: Settings, database: str, tmp_path: Path
) -> None:
    former = TableId(database, "_t_del")
    assert signal(str(former))[0] == 0
    write_former(with_former, former)
    code, text = signal(str(former))
    assert (code, f"{former} belongs to gh-ost" in text) == (2, True)
    assert len(SignalFile(tmp_path / "signals").poll(None).records) == 1
