"""The parsed form of a Java regular expression, a tree without flags.

The sets of characters already include the effects of letter case and of the flags on the dot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from signals.java.code_points import CodePoints


@dataclass(frozen=True, slots=True)
class Characters:
    """A node that matches one character of a set."""

    points: CodePoints  #: the set, as ranges of code points


@dataclass(frozen=True, slots=True)
class Anchor:
    """A node that matches a position and no character: `^`, `$` and `\\b`."""

    #: the position that it matches
    kind: Literal["begin", "line begin", "end", "last line end", "line end", "word border", "no word border"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A node that matches the text of an earlier group."""

    group: int  #: number of the group
    ignores_case: bool  #: whether letters match in either case


@dataclass(frozen=True, slots=True)
class Sequence:
    """A node whose parts match one after the other."""

    parts: tuple[Node, ...]  #: in the order of the expression


@dataclass(frozen=True, slots=True)
class Choice:
    """A node of which one branch matches. Earlier branches are tried first."""

    branches: tuple[Node, ...]  #: in the order in which they are tried


@dataclass(frozen=True, slots=True)
class Group:
    """A node in round brackets."""

    opening: str  #: "(" for a numbered group, else "(?:", "(?=", "(?!", "(?<=", "(?<!" or "(?>"
    inner: Node  #: the content of the brackets
    name: str = ""  #: of a numbered group; "" for none


@dataclass(frozen=True, slots=True)
class Repeated:
    """A node that matches several times."""

    inner: Node  #: the part that is repeated
    count: str  #: "*", "+", "?" or "{2,3}"
    manner: str  #: "" for greedy, "?" for reluctant, "+" for possessive


Node = Characters | Anchor | Reference | Sequence | Choice | Group | Repeated
