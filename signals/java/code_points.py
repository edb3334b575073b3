"""Sets of characters, as Java's classes describe them: ranges of code points, and what letter case adds to one.

Java folds letters of ASCII only, unless ``(?u)`` asks for all alphabets:
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html#UNICODE_CASE
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

CodePoints = tuple[tuple[int, int], ...]
"""Ranges (first, last) that are in order and do not touch each other."""

LAST = 0x10FFFF
#: Behind the last letter that has another case (Adlam, U+1E943).
_END_OF_CASES = 0x20000
_GREATEST_OF_A_BYTE = 0xFF


def ranges(*parts: tuple[int, int]) -> CodePoints:
    """Return the set of all code points of ``parts``."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def letters(text: Iterable[str]) -> CodePoints:
    """Return the set of the characters of ``text``."""
    return ranges(*((ord(each), ord(each)) for each in text))


def union(*sets: CodePoints) -> CodePoints:
    """Return the set of all code points that any of ``sets`` has."""
    return ranges(*(part for each in sets for part in each))


def complement(points: CodePoints) -> CodePoints:
    """Return the set of all code points that ``points`` lacks."""
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
    """Return a range with what Java's UNICODE_CASE adds: a letter is in it if its capital or its folded form is."""
    more = [
        (point, point)
        for point, (upper, folded) in _cases().items()
        if first <= upper <= last or first <= folded <= last
    ]
    return ranges((first, last), *more)


def alone_in_any_case(point: int, *, in_class: bool) -> CodePoints:
    """Return what one letter matches under UNICODE_CASE where it is no part of a longer text.

    Java compares such a letter by its folded form only if it has one: ``ß`` alone is not U+1E9E, but ``xß`` matches
    both. In a class a letter of one byte stands for its two cases alone, but for the few that have a third.
    """
    upper, folded = _cases().get(point, (point, point))
    if in_class and point <= _GREATEST_OF_A_BYTE and chr(point) not in "\xff\xb5IiSsKk\xc5\xe5":
        lower = _simple_lower(chr(point))
        return ranges((lower, lower), (upper, upper))
    return ranges((point, point)) if upper == folded else folded_alike(point)


def folded_alike(point: int) -> CodePoints:
    """Return the letters that a letter of a text matches under UNICODE_CASE."""
    _, folded = _cases().get(point, (point, point))
    return ranges((point, point), *((each, each) for each in (folded, *_by_folded().get(folded, ()))))


@lru_cache(maxsize=1)
def _cases() -> dict[int, tuple[int, int]]:
    """Return (capital, lower case of the capital) of each letter that differs from one of the two."""
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
    alike: dict[int, tuple[int, ...]] = {}
    for point, (_, folded) in _cases().items():
        alike[folded] = (*alike.get(folded, ()), point)
    return alike


def _simple_upper(letter: str) -> int:
    """Return Java's ``Character.toUpperCase``: one character for one, where Python may give several."""
    capital = next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)
    return ord(capital)


def _simple_lower(letter: str) -> int:
    """Return Java's ``Character.toLowerCase``. Python's lower case of U+0130 is the only one of several characters."""
    return ord(letter.lower()[0])
