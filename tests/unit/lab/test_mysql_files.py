"""The interpreter of MySQL's test files, without a server."""

from __future__ import annotations

from pathlib import Path

from lab.addresses import MySqlAddress
from tests.mysql_files.language import Block, Command, parse
from tests.mysql_files.script import Script


class Spoken(Script):
    """A script whose statements are kept instead of run."""

    def __init__(self, folder: Path) -> None:
        super().__init__(MySqlAddress("", 0), folder, 60, lambda *_: None)
        self.statements: list[str] = []

    def _statement(self, sql: str) -> None:
        self.statements.append(sql)

    def _answer(self, sql: str) -> str:
        return sql.removeprefix("SELECT ")


def statements(folder: Path, text: str) -> list[str]:
    (folder / "a.test").write_text(text)
    script = Spoken(folder)
    script.run(folder / "a.test")
    return script.statements


def test_statements_commands_comments_and_blocks_are_told_apart() -> None:
    text = """# it's a comment; of one line
--error ER_NO_SUCH_TABLE
SELECT 'a;b', "it's", `c;`;
--this is no command
let $a= 1;
if ($a)
{
  eval INSERT INTO t VALUES ($a); }
DROP TABLE t;"""
    assert parse(text) == (
        Command("error", "ER_NO_SUCH_TABLE"),
        Command("", "SELECT 'a;b', \"it's\", `c;`"),
        Command("let", "$a= 1"),
        Block("if", "$a", (Command("eval", "INSERT INTO t VALUES ($a)"),)),
        Command("", "DROP TABLE t"),
    )


def test_a_delimiter_holds_up_to_the_next_one() -> None:
    text = "delimiter |;\nCREATE TRIGGER x BEGIN SET @a = 1; END|\nSELECT 1|\ndelimiter ;|\nSELECT 2;"
    assert [step.argument for step in parse(text) if isinstance(step, Command)] == [
        "CREATE TRIGGER x BEGIN SET @a = 1; END",
        "SELECT 1",
        "SELECT 2",
    ]


def test_lines_of_other_languages_are_left_out() -> None:
    text = "perl;\nprint 'it;\nEOF\n--write_file $place END\nDROP TABLE t;\nEND\nSELECT 1;"
    assert [step.name for step in parse(text) if isinstance(step, Command)] == ["perl", "write_file", ""]


def test_variables_conditions_loops_and_other_files_are_obeyed(tmp_path: Path) -> None:
    (tmp_path / "more.inc").write_text("eval SELECT $n, '\\$n', $unknown;\nexit;")
    text = """let $n= `SELECT 0`;
while ($n < 2) { inc $n; eval INSERT INTO t$n VALUES (1); }
if (!$n) { SELECT 'never'; }
if ($n == 3) { SELECT 'never'; }
--if ($n != 3) { SELECT '$n is not replaced'; }
--source more.inc
SELECT 'behind the end';"""
    assert statements(tmp_path, text) == [
        "INSERT INTO t1 VALUES (1)",
        "INSERT INTO t2 VALUES (1)",
        "SELECT '$n is not replaced'",
        "SELECT 2, '$n', ",
    ]


def test_names_of_errors_are_their_numbers(tmp_path: Path) -> None:
    assert statements(tmp_path, "eval SELECT $ER_NO_SUCH_TABLE;") == ["SELECT 1146"]
