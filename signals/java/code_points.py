"""Sets of characters for Java's classes: ranges of code points, and the letters that letter case adds.

Java folds only letters of ASCII, unless `(?u)` asks for all alphabets:
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html#UNICODE_CASE
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

#: A set of characters as ranges (first, last). The ranges are in ascending order, and neither overlap nor touch.
CodePoints = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
#: A code point after the last letter that has another case (Adlam, U+1E943).
_END_OF_CASES = 0x20000
_GREATEST_OF_A_BYTE = 0xFF


def ranges(*parts: tuple[int, int]) -> CodePoints:
    """Return the set of all code points of `parts`."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def letters(text: Iterable[str]) -> CodePoints:
    """Return the set of the characters of `text`."""
    return ranges(*((ord(each), ord(each)) for each in text))


def union(*sets: CodePoints) -> CodePoints:
    """Return the set of all code points that any of `sets` has."""
    return ranges(*(part for each in sets for part in each))


def complement(points: CodePoints) -> CodePoints:
    """Return the set of all code points that `points` lacks."""
    gaps, begin = [], 0
    for first, last in points:
        if begin < first:
            gaps.append((begin, first - 1))
        begin = last + 1
    return (*gaps, (begin, LAST)) if begin <= LAST else tuple(gaps)


def intersection(left: CodePoints, right: CodePoints) -> CodePoints:
    """Return the set of the code points that both sets have."""
    return complement(union(complement(left), complement(right)))


def in_either_case(first: int, last: int) -> CodePoints:
    """Return a range with the other case of its ASCII letters, as Java's CASE_INSENSITIVE has it."""
    parts = [(first, last)]
    for begin, end, other in ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20)):
        low, high = max(first, begin), min(last, end)
        if low <= high:
            parts.append((low + other, high + other))
    return ranges(*parts)


def in_any_case(first: int, last: int) -> CodePoints:
    """Return a range with the letters that Java's UNICODE_CASE adds: those whose capital or folded form is in the
    range."""
    more = [
        (point, point)
        for point, (upper, folded) in _cases().items()
        if first <= upper <= last or first <= folded <= last
    ]
    return ranges((first, last), *more)


def alone_in_any_case(point: int, *, in_class: bool) -> CodePoints:
    """Return the letters that a single letter of an expression matches under UNICODE_CASE.

    A single letter is not part of a longer text, for example in a class. Java compares such a letter by its folded form
    only if it has one: `ß` alone does not match U+1E9E, but `xß` matches both. In a class, a letter up to U+00FF
    matches only its two cases, except for a few letters with a third case.
    """
    upper, folded = _cases().get(point, (point, point))
    if in_class and point <= _GREATEST_OF_A_BYTE and chr(point) not in "\xff\xb5IiSsKk\xc5\xe5":
        lower = _simple_lower(chr(point))
        return ranges((lower, lower), (upper, upper))
    return ranges((point, point)) if upper == folded else folded_alike(point)


def folded_alike(point: int) -> CodePoints:
    """Return all letters with the folded form of `point`, which a letter of a longer text matches under
    UNICODE_CASE."""
    _, folded = _cases().get(point, (point, point))
    return ranges((point, point), *((each, each) for each in (folded, *_by_folded().get(folded, ()))))


@lru_cache(maxsize=1)
def _cases() -> dict[int, tuple[int, int]]:
    """Return (capital, lower case of the capital) for each letter that differs from one of the two."""
    cases = {}
    for point in range(_END_OF_CASES):
        letter = chr(point)
        upper = _simple_upper(letter)
        folded = _simple_lower(chr(upper))
        if upper != point or folded != point:
            cases[point] = upper, folded
    return cases


@lru_cache(maxsize=1)
def _by_folded() -> dict[int, tuple[int, ...]]:
    """Return the letters for each folded form."""
    alike: dict[int, tuple[int, ...]] = {}
    for point, (_, folded) in _cases().items():
        alike[folded] = (*alike.get(folded, ()), point)
    return alike


def _simple_upper(letter: str) -> int:
    """Return Java's `Character.toUpperCase`. Java maps one character to one, Python sometimes to several."""
    capital = next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)
    return ord(capital)


def _simple_lower(letter: str) -> int:
    """Return Java's `Character.toLowerCase`. Only for U+0130 Python's lower case has several characters."""
    return ord(letter.lower()[0])
