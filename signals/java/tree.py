"""A Java regular expression as a tree, free of flags: letter case and the dot's lines are in its sets of characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from signals.java.code_points import CodePoints


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    points: CodePoints


@dataclass(frozen=True, slots=True)
class Anchor:
    """What matches no character: ``^``, ``$`` and ``\\b``."""

    kind: Literal["begin", "line begin", "end", "last line end", "line end", "word border", "no word border"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A text that an earlier group matched."""

    group: int
    ignores_case: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that match one behind the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Branches of which one matches; an earlier one is tried first."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """What stands in round brackets."""

    opening: str  #: "(" for a group with a number, else "(?:", "(?=", "(?!", "(?<=", "(?<!" or "(?>"
    inner: Node
    name: str = ""  #: of a group with a number, "" for none


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part that matches several times."""

    inner: Node
    count: str  #: "*", "+", "?" or "{2,3}"
    manner: str  #: "" for greedy, "?" for reluctant, "+" for possessive


Node = Characters | Anchor | Reference | Sequence | Choice | Group | Repeated
