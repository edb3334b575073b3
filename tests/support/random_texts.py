"""Random names and texts for statements: hostile ones, quoted in every way that a SQL mode allows."""

from __future__ import annotations

import random
from collections.abc import Sequence

from incsnap.ddl.words import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

#: Names that need no quotes. Some are keywords that MySQL does not reserve.
_PLAIN = (
    "a", "b", "c", "d", "e", "B2", "id", "first", "after", "comment", "engine", "data", "enum_", "größe", "no", "x1",
)  # fmt: skip
#: Names that need quotes.
_HOSTILE = (
    "order", "key", "primary", "ключ", "a b", "a`b", 'x"y', "it's", "/* c */", "-- c", "#c", "(", ")", ",", "a,b", ";",
    "drop column a", "\\", "\\'", "ﾄｵ", "日本", "1e5", "select", "a.b", "unique", "Ä",
)  # fmt: skip
_TEXTS = (
    "", "x", "a,b", "it's", 'say "x"', "\\", "\\'", "`", "(", ")", "/* c */", "-- c", "#", ";", "größe",
    "ü, add y int", "*/*",
)  # fmt: skip
_BLANKS = (" ", " ", " ", "  ", "\n", "\t", " /* , */ ", " /*x*/", " -- it's\n", " #`\n")


class RandomTexts:
    """A generator of parts of statements. `rng` chooses; `sql_mode` decides how names and texts may be quoted."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.sql_mode = 0
        self._numbers = 0

    def some(self, chance: float) -> bool:
        """Return True in this share of calls."""
        return self.rng.random() < chance

    def join(self, *parts: str) -> str:
        """Return the parts with blanks and comments between them. Some parts are in a comment that servers execute."""
        words = [part for part in parts if part]
        blanks = _BLANKS if self.some(0.2) else (" ",)
        text = words[0]
        for word in words[1:]:
            executed = self.some(0.01) and "*/" not in word
            version = self.rng.choice(("", "50000", "80000", "080023"))
            text += self.rng.choice(blanks) + (f"/*!{version} {word} */" if executed else word)
        return text

    def quoted(self, name: str) -> str:
        """Return the name as a statement may write it."""
        plain = name in _PLAIN or (name.isascii() and name.isalnum() and name.startswith("t"))
        if plain and self.some(0.6):
            return name
        if self.sql_mode & ANSI_QUOTES and self.some(0.5):
            return '"' + name.replace('"', '""') + '"'
        return "`" + name.replace("`", "``") + "`"

    def text(self, text: str | None = None) -> str:
        """Return a literal of `text`, or of a text chosen here."""
        text = self.rng.choice(_TEXTS) if text is None else text
        if not self.sql_mode & NO_BACKSLASH_ESCAPES:
            text = text.replace("\\", "\\\\")
            if self.some(0.3):
                return "'" + text.replace("'", "\\'") + "'"
        if not self.sql_mode & ANSI_QUOTES and self.some(0.3):
            return '"' + text.replace('"', '""') + '"'
        return "'" + text.replace("'", "''") + "'"

    def any_case(self, name: str) -> str:
        """Return a column's name, sometimes in capitals."""
        return self.quoted(name.upper() if name.isascii() and self.some(0.1) else name)

    def new_name(self, taken: Sequence[str] = ()) -> str:
        """Return a name that is none of `taken` in any letter case."""
        folded = {name.casefold() for name in taken}
        while True:
            name = self.rng.choice(_PLAIN if self.some(0.6) else _HOSTILE)
            if name.casefold() not in folded:
                return name
            if self.some(0.1):
                self._numbers += 1
                return f"t{self._numbers}"
