"""The reader for statements whose whole text matters: each clause must be understood, up to the end.

A statement with an unknown word may do anything to a table. So an unknown word raises NotUnderstood. `words.Words`, the
base class, can stop before the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from incsnap.ddl.literals import bytes_of, in_charset
from incsnap.ddl.words import NO_BACKSLASH_ESCAPES, NotUnderstood, Words
from incsnap.events import Session

#: The bit of the SQL mode that makes REAL a FLOAT.
REAL_AS_FLOAT: Final = 1 << 0
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: Backslash and letter -> character. Any other character stands for itself. `\%` and `\_` keep their backslash.
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NOW = frozenset(("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"))
_CONSTANTS = {"NULL": None, "TRUE": 1, "FALSE": 0}
#: Words that form a time with the string behind them: DATE '2026-01-01'.
_TIMES = ("DATE", "TIME", "TIMESTAMP")


class Clauses(Words):
    """A statement that is read to its end.

    `printed`: SHOW CREATE TABLE printed the text. Then NOT NULL and the indexes of foreign keys are written out, and
    are not derived from other words.

    The methods raise NotUnderstood, with a reason, if the statement does not go on as the method expects. They also
    raise it if the meaning depends on a setting of the session that is unknown.
    """

    def __init__(self, sql: str, session: Session, *, printed: bool = False) -> None:
        if session.sql_mode is None and ('"' in sql or "\\" in sql):
            raise NotUnderstood("the sql_mode, which decides what its quotes mean, is not known")
        super().__init__(sql, session.database, session.sql_mode or 0)
        self.session = session
        self.printed = printed

    def wrong(self) -> NotUnderstood:
        """Return the error that names the word at which the statement is no longer understood."""
        if self._next is None:
            return NotUnderstood("the statement ends too early")
        return NotUnderstood(f"{self._next[1][:40]!r} is not understood there")

    def expect(self, *words: str) -> None:
        """Skip these words, which must follow one after another. Raise NotUnderstood otherwise."""
        for word in words:
            if not self.skip(word):
                raise self.wrong()

    def expect_any(self, *words: str) -> str:
        """Skip the next word, which must be one of `words`, and return it. Raise NotUnderstood otherwise."""
        word = self.skip_any(*words)
        if not word:
            raise self.wrong()
        return word

    def skip_any(self, *words: str) -> str:
        """Skip the next word if it is one of `words`, and return it; otherwise return ""."""
        word = self.peek()
        return self.take() if word and word in words else ""

    def must_end(self) -> None:
        """Raise NotUnderstood unless the statement ends here, perhaps with a semicolon."""
        self.skip(";")
        if not self.at_end:
            raise self.wrong()

    @property
    def is_string(self) -> bool:
        """Return True if a text in quotes is next."""
        return self._next is not None and self._next[0] == "string"

    @property
    def is_name(self) -> bool:
        """Return True if a name is next, in quotes or not."""
        return self._next is not None and self._next[0] in ("name", "word")

    def name(self) -> str:
        """Read a name, in quotes or not.

        Raise NotUnderstood if the server would not keep its characters (beyond U+FFFF).
        """
        if not self.is_name:
            raise self.wrong()
        name = super().name()
        if name and max(name) > "\uffff":
            raise NotUnderstood(f"the name {name[:40]!r} has characters that the server does not keep")
        return name

    def column(self) -> str:
        """Read a column's name, perhaps behind the names of database and table, and return the column's name."""
        name = self.name()
        while self.skip("."):
            name = self.name()
        return name

    def number(self) -> int:
        """Read a number without sign and point."""
        digits = self.peek()
        if not (digits.isascii() and digits.isdecimal()):
            raise self.wrong()
        self.take()
        return int(digits)

    def skip_string(self) -> None:
        """Skip a text in quotes."""
        if not self.is_string:
            raise self.wrong()
        self._take()

    def string(self) -> str:
        """Read a text in quotes, and return it without quotes and escapes."""
        if not self.is_string:
            raise self.wrong()
        text = self._take()[1]
        quote, text = text[0], text[1:-1]
        if (self.session.sql_mode or 0) & NO_BACKSLASH_ESCAPES or "\\" not in text:
            return text.replace(quote * 2, quote)
        # The parts between escapes may have doubled quotes. A quote behind a backslash is no part of a doubled quote.
        parts = _ESCAPE.split(text)
        parts[0::2] = (part.replace(quote * 2, quote) for part in parts[0::2])
        parts[1::2] = (_ESCAPED.get(letter, letter) for letter in parts[1::2])
        return "".join(parts)

    def name_or_string(self) -> str:
        """Read a name or a text in quotes. Character sets, engines and so on may be either."""
        return self.string() if self.is_string else self.name()

    def skip_brackets(self, refused: Collection[str] = ()) -> None:
        """Skip an expression in brackets. Raise NotUnderstood if it begins with one of the words `refused`."""
        self.expect("(")
        if self.peek() in refused:
            raise self.wrong()
        depth = 1
        while depth:
            word = self.take()
            depth += (word == "(") - (word == ")")

    def skip_rest(self, refused: Collection[str] = ()) -> None:
        """Skip everything up to the end of the statement. Raise NotUnderstood for one of the words `refused`."""
        while not self.at_end and self.peek() != ";":
            if self.peek() == "(":
                self.skip_brackets(refused)
            elif self.is_string:
                self.skip_string()
            elif self.peek() in refused:
                raise self.wrong()
            else:
                self.take()

    def skip_form(self, form: str) -> None:
        """Skip words that have the given form. Raise NotUnderstood if the next words of the statement have another
        form.

        A form is a text of parts with blanks between them. A part `A|B` stands for one of these words, and `=` for an
        equals sign that may be left out. A part in lower case, for example `name`, is a key of `_PARTS` and stands for
        what is named there.
        """
        for part in form.split():
            if part == "=":
                self.skip("=")
            elif part in _PARTS:
                _PARTS[part](self)
            else:
                self.expect_any(*part.split("|"))

    def skip_option(self, forms: Mapping[str, str]) -> bool:
        """Skip an option: its first word, and what follows the word. Return False, and skip nothing, if the next word
        is no key of `forms`.

        `forms` maps an option's first word to the form of what follows it (see `skip_form`). Raise NotUnderstood if
        something else follows.
        """
        word = self.skip_any(*forms)
        if word:
            self.skip_form(forms[word])
        return bool(word)

    def default(self) -> str | int | bytes | None:
        """Read the value behind DEFAULT.

        Return a whole number as an int, the text of a string, of a time or of another number, and the bytes of a
        literal such as x'ff' or b'1'. Return None for any other value.
        """
        if self.peek() == "(":
            self.skip_brackets()
            return None
        return None if self.skip_now() else self._literal()

    def skip_now(self) -> bool:
        """Skip CURRENT_TIMESTAMP or a synonym. Return True if it was there."""
        if not self.skip_any(*_NOW):
            return False
        if self.peek() == "(":
            self.skip_brackets()
        return True

    def _literal(self) -> str | int | bytes | None:
        if self.is_string:
            return self._strings()
        if constant := self.skip_any(*_CONSTANTS):
            return _CONSTANTS[constant]
        sign = self.skip_any("+", "-")
        if (of_bytes := self._bytes()) is not None:
            return None if sign else of_bytes
        word = self.peek()
        if word[:1].isdecimal() or word == ".":
            number = sign + self._number()
            return int(number) if number[-1:].isdecimal() and number.lstrip("+-").isdecimal() else number
        if sign:
            raise self.wrong()
        if self.skip_any(*_TIMES):
            return self._strings()
        if not (word == "N" or word.startswith("_")):
            raise self.wrong()
        self.take()
        if self._bytes() is not None:
            return None
        return in_charset(self._strings(), word[1:].lower() or "utf8mb3", self.session.connection)

    def _bytes(self) -> bytes | None:
        """Read a literal such as x'ff', 0xff, b'1' or 0b1. Return None, and skip nothing, if none is next."""
        if word := self.skip_any("X", "B"):
            return bytes_of(word, self.string())
        word = self.peek()
        if word[:2] not in ("0X", "0B"):
            return None
        self.take()
        return bytes_of(word[1], word[2:])

    def _strings(self) -> str:
        """Read neighbouring strings, which MySQL joins to one."""
        text = self.string()
        while self.is_string:
            text += self.string()
        return text

    def _number(self) -> str:
        """Read a number, which consists of several words: `1`, `.`, `5e`, `-`, `3`."""
        number = "" if self.peek() == "." else self.take()
        if self.skip("."):
            number += "." + (self.take() if self.peek()[:1].isdecimal() else "")
        if number.endswith("E") and (sign := self.skip_any("+", "-")):
            number += f"{sign}{self.number()}"
        return number


#: Parts of the forms of `Clauses.skip_form`.
_PARTS: dict[str, Callable[[Clauses], object]] = {
    "name": Clauses.name,
    "number": Clauses.number,
    "string": Clauses.skip_string,
    "value": Clauses.name_or_string,
    "brackets": Clauses.skip_brackets,
    "default": Clauses.default,
    "rest": Clauses.skip_rest,
}
