"""Constructs that Java 17 and the module `regex` match differently. Expressions with one of them are refused.

A long comparison with random expressions found these differences. Each comes from the text of a group, or from a match
with no text, that one engine forgets where the other keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signals.java.tree import Anchor, Characters, Choice, Group, Node, Reference, Repeated, Sequence

_NEGATIVE = ("(?!", "(?<!")
#: A count that permits no repetition at all.
_NO_TIMES = re.compile(r"\{0+[,}]")


def refuse_differences(tree: Node) -> None:
    """Raise re.error if the two engines may match the expression differently.

    A reference to a group inside a negative look-around or a repetition is refused. So is a repetition, other than
    `?`, of a part that may match no text and holds an anchor or a look-around. The third is a look-behind that holds a
    possessive repetition or an atomic group.
    """
    groups: list[str] = []
    for number in list(_references(tree, "", groups)):
        if place := groups[number - 1]:
            raise re.error(f"a reference to group {number}, which is inside {place}, is not understood")


def _references(tree: Node, place: str, groups: list[str]) -> Iterator[int]:
    """Yield the numbers that are referred to. Append to `groups`, for each numbered group, what it is inside of."""
    match tree:
        case Reference(number):
            yield number
        case Group(opening, inner):
            if opening == "(":
                groups.append(place)
            if opening in ("(?<=", "(?<!") and _never_gives_back(inner):
                raise re.error("a possessive repetition or (?> in a look-behind is not understood")
            yield from _references(inner, "a negative look-around" if opening in _NEGATIVE else place, groups)
        case Repeated(inner, count):
            if count != "?" and _may_be_empty(inner) and _looks_around(inner):
                raise re.error("a repetition of an anchor or a look-around that may stand alone is not understood")
            yield from _references(inner, "a repetition", groups)
        case _:
            for part in _parts(tree):
                yield from _references(part, place, groups)


def _parts(tree: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    match tree:
        case Sequence(parts) | Choice(parts):
            return parts
        case Group(_, inner) | Repeated(inner):
            return (inner,)
    return ()


def _looks_around(tree: Node) -> bool:
    """Return True if a part holds an anchor or a look-around."""
    if isinstance(tree, Anchor) or (isinstance(tree, Group) and tree.opening in ("(?=", "(?<=", *_NEGATIVE)):
        return True
    return any(map(_looks_around, _parts(tree)))


def _never_gives_back(tree: Node) -> bool:
    """Return True if a part holds a possessive repetition or an atomic group.

    Java matches a look-behind forwards, and such a part takes characters behind the position.
    """
    match tree:
        case Group("(?>") | Repeated(manner="+"):
            return True
    return any(map(_never_gives_back, _parts(tree)))


def _may_be_empty(tree: Node) -> bool:
    """Return True if a part may match with no text."""
    match tree:
        case Characters():
            return False
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Choice(branches):
            return any(map(_may_be_empty, branches))
        case Group("(" | "(?:" | "(?>", inner):
            return _may_be_empty(inner)
        case Repeated(inner, count):
            return count in ("*", "?") or bool(_NO_TIMES.match(count)) or _may_be_empty(inner)
    return True
