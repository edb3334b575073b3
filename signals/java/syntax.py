"""Parsing Java's regular expressions into a tree, with the meaning that Java 17 gives them.

A construct that is not understood is refused by its name (`re.error`). So no expression matches something else than its
author meant. These are refused: `(?x)`, `(?d)`, `(?U)`, `\\p{...}`, `\\N`, `\\R`, `\\X`, `\\G`, `\\b{g}`, and what Java
itself refuses. https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html
"""

from __future__ import annotations

import re
from dataclasses import replace

from signals.java import code_points as points
from signals.java.classes import ClassReader, Flags
from signals.java.differences import refuse_differences
from signals.java.escapes import without_quotes
from signals.java.tree import Anchor, Characters, Choice, Group, Node, Reference, Repeated, Sequence

_NOT_LINE_ENDS = points.complement(points.letters("\n\r\x85\u2028\u2029"))
_ALL = points.ranges((0, points.LAST))
_OPENINGS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_REPETITION = re.compile(r"([*+?]|\{([0-9]{1,9})(,?)([0-9]{0,9})\})([?+]?)")
_FLAGS = re.compile(r"\(\?([A-Za-z]*)(-[A-Za-z]*)?([:)])")


_FLAG_FIELDS = {"i": "ignores_case", "u": "all_alphabets", "s": "dot_matches_all", "m": "multiline"}
_REFUSED_FLAGS = {"x": "comments", "d": "UNIX lines", "U": "Unicode classes"}


def read(text: str, *, ignore_case: bool = False) -> Node:
    """Return the tree of a Java expression. Raise re.error with the reason if it is not understood."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise re.error("it holds half a character (a lone surrogate)") from None
    reader = _Reader(without_quotes(text), Flags(ignores_case=ignore_case))
    tree = reader.choice()
    if not reader.at_end():
        raise re.error("a ) has no ( before it")
    refuse_differences(tree)
    return tree


def _is_bounded(tree: Node) -> bool:
    """Return True if Java also sees that the length of the matched text is bounded."""
    match tree:
        case Sequence(parts) | Choice(parts):
            return all(map(_is_bounded, parts))
        case Group(_, inner):
            return _is_bounded(inner)
        case Repeated(inner, count):
            return count not in ("*", "+") and not count.endswith(",}") and _is_bounded(inner)
    return not isinstance(tree, Reference)


class _Reader(ClassReader):
    """A parser of one whole expression."""

    def __init__(self, text: str, flags: Flags) -> None:
        super().__init__(text, flags)
        self._groups = 0  #: numbered groups that have begun
        self._ended: set[int] = set()  #: numbers of the groups that have ended
        self._names: dict[str, int] = {}

    def choice(self) -> Node:
        """Parse branches up to a closing bracket or the end."""
        branches = [self._sequence()]
        while self._skip("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        """Parse one branch."""
        parts: list[Node] = []
        while not self.at_end() and self._text[self._at] not in "|)":
            parts += self._part()
        return Sequence(tuple(parts))

    def _part(self) -> list[Node]:
        """Parse one part with its repetition. Return [] for flags that stand alone."""
        letter = self._text[self._at]
        if letter == "(":
            group = self._group()
            return [] if group is None else [self._repeated(group)]
        if letter == "[":
            self._at += 1
            return [self._repeated(Characters(self._class()))]
        if letter == ".":
            self._at += 1
            return [self._repeated(Characters(_ALL if self._flags.dot_matches_all else _NOT_LINE_ENDS))]
        if letter in "*+?{":
            raise re.error(f"nothing stands before the repetition {letter}")
        if place := self._place():
            if self._text[self._at : self._at + 1] in ("*", "+", "?", "{"):
                raise re.error(f"a repetition of {place.kind!r} is not understood; write a group around it")
            return [place]
        if predefined := self._predefined():
            return [self._repeated(Characters(predefined))]
        if reference := self._reference():
            return [self._repeated(reference)]
        return self._run()

    def _run(self) -> list[Node]:
        """Parse a run of literal characters.

        Java compares letters in a longer run differently from a single letter. A repetition applies to the last letter
        only.
        """
        run: list[int] = []
        while True:
            before = self._at
            literal = self._literal()
            if literal is None:
                break
            if run and self._text[self._at : self._at + 1] in ("*", "+", "?", "{"):
                self._at = before
                break
            run.append(literal)
        if not run:
            raise re.error(f"{self._text[self._at : self._at + 2]} is not understood")
        flags = self._flags
        if not flags.ignores_case:
            nodes: list[Node] = [Characters(points.ranges((each, each))) for each in run]
        elif not flags.all_alphabets:
            nodes = [Characters(points.in_either_case(each, each)) for each in run]
        elif len(run) == 1:
            nodes = [Characters(points.alone_in_any_case(run[0], in_class=False))]
        else:
            nodes = [Characters(points.folded_alike(each)) for each in run]
        return [self._repeated(nodes[0])] if len(nodes) == 1 else nodes

    def _place(self) -> Anchor | None:
        """Parse an anchor or a word border, or return None if there is none here."""
        text, at = self._text, self._at
        multiline = self._flags.multiline
        for written, kind in (
            ("^", "line begin" if multiline else "begin"),
            ("$", "line end" if multiline else "last line end"),
            (r"\A", "begin"),
            (r"\Z", "last line end"),
            (r"\z", "end"),
            (r"\b", "word border"),
            (r"\B", "no word border"),
        ):
            if text.startswith(written, at):
                if text.startswith(r"\b{", at):
                    raise re.error(r"\b{g} is not understood")
                self._at += len(written)
                return Anchor(kind)  # type: ignore[arg-type]
        return None

    def _reference(self) -> Reference | None:
        """Parse `\\1` or `\\k<name>`, or return None. A number takes further digits as long as such a group exists."""
        text, at = self._text, self._at
        if text[at] != "\\":
            return None
        letter = text[at + 1 : at + 2]
        if letter == "k":
            name = _NAME.match(text, at + 3) if text[at + 2 : at + 3] == "<" else None
            if name is None or text[name.end() : name.end() + 1] != ">" or name[0] not in self._names:
                raise re.error(r"\k names no group that stands before it")
            self._at = name.end() + 1
            number = self._names[name[0]]
        elif letter and letter in "123456789":
            number, self._at = int(letter), at + 2
            while (digit := text[self._at : self._at + 1]) and digit in "0123456789":
                if number * 10 + int(digit) > self._groups:
                    break
                number = number * 10 + int(digit)
                self._at += 1
        else:
            return None
        if number not in self._ended:
            raise re.error(f"it refers to group {number}, which does not end before that")
        if self._flags.ignores_case and self._flags.all_alphabets:
            raise re.error("a reference to a group under (?iu) is not understood")
        return Reference(number, self._flags.ignores_case)

    def _group(self) -> Node | None:
        """Parse a group. Return None for flags that stand alone, which hold up to the end of the enclosing group."""
        self._deeper()
        text, flags = self._text, self._flags
        opening, number, name = "(", 0, ""
        if plain := next((each for each in _OPENINGS if text.startswith(each, self._at)), ""):
            opening = plain
            self._at += len(plain)
        elif text.startswith("(?<", self._at):
            named = _NAME.match(text, self._at + 3)
            if named is None or text[named.end() : named.end() + 1] != ">":
                raise re.error("a group's name has other characters than letters and digits of ASCII")
            name, self._at = named[0], named.end() + 1
            if name in self._names:
                raise re.error(f"two groups are called {name}")
        elif text.startswith("(?", self._at):
            if self._set_flags() == ")":
                self._depth -= 1
                return None
            opening = "(?:"
        else:
            self._at += 1
        if opening == "(":
            self._groups += 1
            number = self._groups
            if name:
                self._names[name] = number
        inner = self.choice()
        if not self._skip(")"):
            raise re.error("a ( has no ) behind it")
        if opening in ("(?<=", "(?<!") and not _is_bounded(inner):
            raise re.error("a look-behind holds a repetition without an end or a reference to a group")
        self._ended.add(number)
        self._flags = flags
        self._depth -= 1
        return Group(opening, inner, name)

    def _set_flags(self) -> str:
        """Parse `(?i-s)` or `(?i-s:` and return its last character."""
        given = _FLAGS.match(self._text, self._at)
        if given is None or not (given[1] or given[2]):
            raise re.error(f"{self._text[self._at : self._at + 4]} is not understood")
        for letters, on in ((given[1], True), ((given[2] or "-")[1:], False)):
            for letter in letters:
                if letter in _FLAG_FIELDS:
                    self._flags = replace(self._flags, **{_FLAG_FIELDS[letter]: on})
                elif letter not in _REFUSED_FLAGS:
                    raise re.error(f"there is no flag {letter}")
                elif on:
                    raise re.error(f"the flag {letter} ({_REFUSED_FLAGS[letter]}) is not understood")
        self._at = given.end()
        return given[3]

    def _repeated(self, inner: Node) -> Node:
        """Parse the repetition after a part, if there is one."""
        given = _REPETITION.match(self._text, self._at)
        if self._text.startswith("{", self._at):
            if given is None or (given[4] and (not given[3] or int(given[4]) < int(given[2]))):
                raise re.error("a { begins no repetition such as {2} or {2,3}; write \\{ for the sign itself")
        elif given is None:
            return inner
        self._at = given.end()
        if self._text[self._at : self._at + 1] in ("*", "+", "?", "{"):
            raise re.error("a repetition stands behind a repetition")
        return Repeated(inner, given[1], given[5])
