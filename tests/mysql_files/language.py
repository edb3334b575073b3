"""A parser for the language of MySQL's test files: SQL statements, commands, and blocks of `if` and `while`.

https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_MYSQL_TEST_COMMANDS.html

A file is read as Latin-1, so each character is a byte of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Commands that the lane carries out.
_OBEYED = (
    "connect connection dec delimiter disconnect eval exit inc let query query_vertical query_horizontal send source"
)
#: Commands that only concern what mysqltest prints, or files of the server.
_IGNORED = """
    append_file assert cat_file change_user character_set chmod copy_file copy_files_wildcard diff_files die dirty_close
    disable_abort_on_error disable_async_client disable_connect_log disable_info disable_metadata disable_ps_protocol
    disable_query_log disable_reconnect disable_result_log disable_session_track_info disable_testcase disable_warnings
    echo enable_abort_on_error enable_async_client enable_connect_log enable_info enable_metadata enable_ps_protocol
    enable_query_log enable_reconnect enable_result_log enable_session_track_info enable_testcase enable_warnings error
    exec exec_in_background execw expr file_exists force-cpdir force-rmdir horizontal_results list_files
    list_files_append_file list_files_write_file lowercase_result mkdir move_file output partially_sorted_result perl
    ping query_attributes real_sleep reap remove_file remove_files_wildcard replace_column replace_numeric_round
    replace_regex replace_result require reset_connection result_format rmdir save_master_pos send_quit send_shutdown
    shutdown_server skip skip_if_hypergraph sleep sorted_result start_timer sync_slave_with_master sync_with_master
    vertical_results wait_for_slave_to_stop write_file
"""
#: `send_eval` and `eval` alike: a statement in which variables are replaced.
COMMANDS = frozenset((_OBEYED + " query_attrs send_eval " + _IGNORED).split())
#: Commands that include the lines after them, up to a line `EOF` or a word that they name.
_WITH_LINES = ("perl", "write_file", "append_file")

_WORD = re.compile(r"[\w-]+")
_BLOCK = re.compile(r"(if|while)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its argument. An SQL statement has the name ""."""

    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of `if` or `while`."""

    name: str
    condition: str
    body: tuple[Command | Block, ...]


def parse(text: str) -> tuple[Command | Block, ...]:
    """Return the steps of a test file. A bracket that is not closed ends with the file."""
    return _Parser(text).steps()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._delimiter = text, 0, ";"

    def steps(self) -> tuple[Command | Block, ...]:
        """Read up to the bracket that closes a block, or up to the end."""
        steps: list[Command | Block] = []
        while self._skip_blanks():
            if self._text.startswith("}", self._at):
                self._at += 1
                break
            step = self._step()
            if step is not None:
                steps.append(step)
        return tuple(steps)

    def _skip_blanks(self) -> bool:
        """Skip blanks and comments. Return False at the end."""
        blank = re.compile(r"(?:\s+|#[^\n]*)*")
        match = blank.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at < len(self._text)

    def _step(self) -> Command | Block | None:
        if self._text.startswith("--", self._at):
            return self._command(self._line()[2:].strip(), is_line=True)
        if block := _BLOCK.match(self._text, self._at):
            return self._block(block)
        if self._text.startswith("{", self._at):
            self._at += 1
            return Block("if", "1", self.steps())
        return self._command(self._until_delimiter().strip(), is_line=False)

    def _command(self, text: str, *, is_line: bool) -> Command | Block | None:
        if is_line and (block := _BLOCK.match(text)):
            # `--if (...)` and `--while (...)`: the condition is read from the text again.
            self._at = self._text.rindex(text, 0, self._at)
            return self._block(block)
        word = _WORD.match(text)
        name = word[0].lower() if word else ""
        if name not in COMMANDS:
            # A line that begins with `--` and is no command is a comment.
            return None if is_line or not text else Command("", text)
        argument = text[len(name) :].strip()
        if name in _WITH_LINES:
            words = argument.split()
            self._skip_lines(words[-1] if len(words) > (0 if name == "perl" else 1) else "EOF")
        elif name == "delimiter":
            self._delimiter = argument or self._delimiter
            return None
        return Command(name, argument)

    def _line(self) -> str:
        end = self._text.find("\n", self._at)
        line, self._at = self._text[self._at : None if end < 0 else end], len(self._text) if end < 0 else end + 1
        return line

    def _skip_lines(self, last: str) -> None:
        while self._at < len(self._text) and self._line().strip() != last:
            pass

    def _block(self, opening: re.Match[str]) -> Block:
        start = self._text.index("(", self._at) + 1
        depth, self._at = 1, start
        while depth and self._at < len(self._text):
            depth += {"(": 1, ")": -1}.get(self._text[self._at], 0)
            self._at += 1
        condition = self._text[start : self._at - 1].strip()
        opened = re.compile(r"[;\s]*\{").match(self._text, self._at)
        if opened is None:
            return Block(opening[1].lower(), condition, ())
        self._at = opened.end()
        return Block(opening[1].lower(), condition, self.steps())

    def _until_delimiter(self) -> str:
        start, quote = self._at, ""
        while self._at < len(self._text):
            letter = self._text[self._at]
            if quote:
                if letter == "\\" and quote != "`":
                    self._at += 1
                elif letter == quote:
                    quote = ""
            elif self._text.startswith(self._delimiter, self._at):
                self._at += len(self._delimiter)
                return self._text[start : self._at - len(self._delimiter)]
            elif letter in "'\"`":
                quote = letter
            self._at += 1
        return self._text[start:]
