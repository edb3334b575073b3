"""The execution of MySQL's test files, as far as one thread can do it. A statement that fails is skipped.

Statements run one after another, also those that a file sends in parallel. Results are not compared: the lane judges
what the binlog tells, and not what statements return.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, ER

from lab.addresses import MySqlAddress
from lab.mysql_client import connect
from tests.mysql_files.language import Block, Command, parse

#: Statements that stop the server, hide changes from the binlog, or change settings on which the lane relies.
_REFUSED = re.compile(
    r"\s*(shutdown|restart|clone|kill|purge|reset|install|uninstall|change|start\s+(replica|slave|group)|use\s+mysql\b"
    r"|alter\s+instance|(create|alter|drop)\s+(undo\s+)?tablespace|(alter|drop|rename)\s+user\b.*\broot)"
    r"|.*\b(global|persist|persist_only)\b|.*\b(sql_log_bin|gtid_next|pseudo_thread_id)\b|.*\bbinlog_(format|row\w+)"
    r"|.*\bmysql\s*\.|.*\bsleep\s*\(",
    re.IGNORECASE | re.DOTALL,
)
#: A single thread has no other thread to wait for. A fixed time makes two runs of a file write equal rows.
_SESSION = (
    "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1, max_execution_time = 5000,"
    " timestamp = 1700000000, rand_seed1 = 1, rand_seed2 = 2"
)
_PAUSES = ("sleep", "real_sleep")
_GONE = (0, 2006, 2013)
_NAME = re.compile(r"\\\$|\$(\w+)")


class ServerEnded(Exception):
    """The error of a statement that ended the server. Its text is the statement."""


class _Enough(Exception):
    """The signal that a file has ended or has used up its time."""


@dataclass
class Script:
    """The execution of one test file on a server."""

    address: MySqlAddress
    folder: Path  #: the root of MySQL's test files
    seconds: float  #: time that the statements may take
    #: called with each statement's text, session, and a call that runs it
    around: Callable[[str, Connection[Any], Callable[[], object]], object]
    most: int | None = None  #: most statements to run; None: all
    taken: int = 0  #: statements that the server accepted
    refused: int = 0  #: statements that failed
    late: bool = False  #: whether the time ended the run
    _variables: dict[str, str] = field(default_factory=lambda: {"BIG_TEST": "1", "mysql_errno": "0"})
    _sessions: dict[str, Connection[Any]] = field(default_factory=dict)
    _current: str = "default"

    def run(self, file: Path) -> None:
        """Run the file up to its end, or for `seconds`. If `most` is set, ten times as long."""
        self._end = time.monotonic() + self.seconds * (1 if self.most is None else 10)
        try:
            self._source(file)
        except _Enough:
            pass
        finally:
            for session in self._sessions.values():
                session.close()

    def _source(self, file: Path) -> None:
        self._steps(parse(file.read_text(encoding="latin-1")), file)

    def _steps(self, steps: tuple[Command | Block, ...], file: Path) -> None:
        for step in steps:
            if time.monotonic() > self._end:
                self.late = True
                raise _Enough
            if isinstance(step, Command):
                self._command(step.name, step.argument, file)
            elif step.name == "if":
                if self._holds(step.condition):
                    self._steps(step.body, file)
            else:
                # Skip a loop with a pause: it waits for other sessions, and there are none.
                while step.body and self._holds(step.condition):
                    self._steps(step.body, file)
                    if _pauses(step):
                        break

    def _command(self, name: str, argument: str, file: Path) -> None:
        match name:
            case "" | "query" | "send" | "query_vertical" | "query_horizontal":
                # `query_vertical` replaces variables too; a statement without any stays as it is.
                self._statement(self._replaced(argument) if name.startswith("query_") else argument)
            case "eval" | "send_eval":
                self._statement(self._replaced(argument))
            case "let":
                variable, _, value = argument.partition("=")
                self._variables[variable.strip().lstrip("$")] = self._value(value.strip())
            case "inc" | "dec":
                variable = argument.strip().lstrip("$")
                self._variables[variable] = str(
                    _number(self._variables.get(variable, "")) + (1 if name == "inc" else -1)
                )
            case "source":
                self._include(self._replaced(argument).strip(" ;'\""), file)
            case "connect":
                self._current = self._replaced(argument).strip("() ").split(",")[0].strip()
            case "connection":
                self._current = self._replaced(argument).strip()
            case "disconnect":
                if session := self._sessions.pop(self._replaced(argument).strip(), None):
                    session.close()
            case "exit":
                raise _Enough

    def _include(self, name: str, file: Path) -> None:
        places = (self.folder / name, file.parent / name, file.parent.parent / name)
        included = next((place for place in places if place.is_file()), None)
        if included is not None:
            self._source(included)

    # -- variables

    def _replaced(self, text: str) -> str:
        """Return the text with its variables replaced.

        An unknown variable is empty. The name of an error becomes its number.
        """
        return _NAME.sub(lambda name: self._variable(name[1]) if name[1] else "$", text)

    def _variable(self, name: str) -> str:
        if name in self._variables or not name.startswith("ER_"):
            return self._variables.get(name, "")
        return str(getattr(ER, name.removeprefix("ER_"), 0))

    def _value(self, text: str) -> str:
        if len(text) > 1 and text.startswith("`") and text.endswith("`"):
            return self._answer(self._replaced(text[1:-1]))
        if text.startswith("query_get_value"):
            return self._answer(self._replaced(text.partition("(")[2].rpartition(",")[0].rpartition(",")[0]))
        return self._replaced(text)

    def _holds(self, condition: str) -> bool:
        """Whether the condition of a block holds: a value, `!value`, or two values and a comparison between them."""
        compared = re.fullmatch(r"(\$\w+)\s*(==|!=|<=|>=|<|>)\s*(.*)", condition, re.DOTALL)
        if compared is None:
            denied = condition.startswith("!")
            return (self._value(condition.lstrip("! ")).strip() not in ("", "0")) is not denied
        left, right = self._value(compared[1]), self._value(compared[3].strip("'\""))
        if compared[2] in ("==", "!="):
            return (left == right) is (compared[2] == "==")
        order = _number(left) - _number(right)
        return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[compared[2]]

    # -- the server

    def _session(self) -> Connection[Any]:
        session = self._sessions.get(self._current)
        if session is None or not session.open:
            options: dict[str, Any] = {
                "database": "test",
                "use_unicode": False,
                "conv": {},
                "client_flag": CLIENT.MULTI_STATEMENTS,
            }
            session = connect(self.address, read_timeout=10, init_command=_SESSION, **options)
            self._sessions[self._current] = session
        return session

    def _statement(self, sql: str) -> None:
        if sql and not _REFUSED.match(sql):
            self._run(sql, lambda session: self.around(sql, session, lambda: self._send(session, sql)))

    def _answer(self, sql: str) -> str:
        """Return the first value of the first row as text, or "" if there is none."""
        answers: list[Any] = []
        if not _REFUSED.match(sql):
            self._run(sql, lambda session: answers.extend(self._send(session, sql)))
        value = answers[0][0] if answers else None
        return value.decode("latin-1") if isinstance(value, bytes) else "" if value is None else str(value)

    def _run(self, sql: str, send: Callable[[Connection[Any]], object]) -> None:
        if self.taken + self.refused == self.most:
            raise _Enough
        number = 0
        try:
            send(self._session())
            self.taken += 1
        except (pymysql.MySQLError, OSError, ValueError) as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            self.refused += 1
            if number in _GONE:
                self._look_after(sql)
        self._variables["mysql_errno"] = str(number)

    @staticmethod
    def _send(session: Any, sql: str) -> tuple[Any, ...]:
        """Run a statement, or several, and return the rows of the first result."""
        session.query(sql.encode("latin-1"))
        rows = session._result.rows
        while session._result.has_next:
            session.next_result()
        return tuple(rows or ())

    def _look_after(self, sql: str) -> None:
        """End the session, which has waited too long. Raise ServerEnded if the server does not run."""
        session: Any = self._sessions.pop(self._current, None)
        if session is None:
            raise ServerEnded(sql)
        session._force_close()
        try:
            with connect(self.address) as other, other.cursor() as cursor:
                cursor.execute(f"KILL {session.thread_id()}")
        except pymysql.MySQLError as error:
            if error.args[0] != ER.NO_SUCH_THREAD:
                raise ServerEnded(sql) from error


def _pauses(block: Block) -> bool:
    """Whether a step of the block, or of a block in it, is a pause."""
    return any(_pauses(each) if isinstance(each, Block) else each.name in _PAUSES for each in block.body)


def _number(text: str) -> int:
    digits = re.match(r"\s*-?\d+", text)
    return int(digits[0]) if digits else 0
