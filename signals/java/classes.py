"""Parsing character classes such as `[a-z&&[^b]]`, with unions, intersections and letter case."""

from __future__ import annotations

import re
from dataclasses import dataclass

from signals.java import code_points as points
from signals.java.code_points import CodePoints
from signals.java.escapes import VERTICAL, EscapeReader

#: Most groups and classes inside each other. Python's stack has room for about 150.
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that are in force at a place of the expression."""

    ignores_case: bool = False  #: i: letter case does not matter
    all_alphabets: bool = False  #: u: `i` applies to all alphabets, not only to ASCII
    dot_matches_all: bool = False  #: s: a dot also matches line ends
    multiline: bool = False  #: m: `^` and `$` match at lines


class ClassReader(EscapeReader):
    """The part of the parser that reads classes, a base class of the whole parser in `syntax`."""

    def __init__(self, text: str, flags: Flags) -> None:
        super().__init__(text)
        self._flags = flags
        self._depth = 0  #: open groups and classes

    def _class(self, *, nested: bool = True) -> CodePoints:
        """Parse a class after its `[`. The right side of `&&` has no bracket of its own, so its `]` is left."""
        self._deeper()
        negated = nested and self._skip("^")
        members: list[CodePoints] = []
        while not self._text.startswith("]", self._at) or not members:
            if self._skip("["):
                members.append(self._class())
            elif self._skip("&&"):
                if not members:
                    raise re.error("nothing stands before && in a class")
                members = [points.intersection(points.union(*members), self._right_side())]
            else:
                members.append(self._range())
        self._at += nested
        self._depth -= 1
        union = points.union(*members)
        return points.complement(union) if negated else union

    def _right_side(self) -> CodePoints:
        """Parse the right side of `&&`: classes, and then members up to the end of the class."""
        members: list[CodePoints] = []
        while not self.at_end() and self._text[self._at] not in "]&":
            members.append(self._class() if self._skip("[") else self._class(nested=False))
        if not members:
            raise re.error("nothing stands behind && in a class")
        return points.union(*members)

    def _range(self) -> CodePoints:
        """Parse one member of a class: a character, two characters with a hyphen, or a predefined class."""
        if self.at_end():
            raise re.error("a [ has no ] behind it")
        text = self._text
        if predefined := self._predefined():
            if text.startswith("-", self._at) and predefined == VERTICAL:
                raise re.error(r"\v before a hyphen is not understood")
            return predefined
        first = last = self._member()
        if text.startswith("-", self._at) and text[self._at + 1 : self._at + 2] not in ("[", "]", ""):
            self._at += 1
            last = self._member()
            if last < first:
                raise re.error("the end of a range comes before its begin")
        elif self._flags.ignores_case and self._flags.all_alphabets:
            return points.alone_in_any_case(first, in_class=True)
        if not self._flags.ignores_case:
            return points.ranges((first, last))
        return (points.in_any_case if self._flags.all_alphabets else points.in_either_case)(first, last)

    def _member(self) -> int:
        """Parse one character of a class."""
        letter = self._text[self._at : self._at + 1]
        if letter and letter != "\\":
            self._at += 1
            return ord(letter)
        literal = self._literal()
        if literal is None:
            raise re.error(f"{self._text[self._at : self._at + 2]} is not understood in a class")
        return literal

    def _deeper(self) -> None:
        """Count an opening bracket. Raise re.error if too many are open."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise re.error(f"more than {_DEEPEST} brackets stand inside each other")
