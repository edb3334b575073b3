"""Java's regular expressions, as far as table lists and signals use them, as Python's.

The two languages agree on all that such patterns are made of. What differs is translated: ``\\Q...\\E`` (a literal),
``(?<name>...)`` with ``\\k<name>``, and ``\\z``. ``\\w`` and friends mean ASCII, as in Java. What Python cannot say
(``\\p{Lu}``) raises, so a pattern never matches something else than its author meant.
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Pattern.html
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from functools import lru_cache

import regex

#: Matching a name takes microseconds. A pattern such as ``(a|a)*b`` can take for ever, and a signal brings any.
SECONDS = 0.2

_DIFFERENCES = re.compile(
    r"\\Q(?P<literal>.*?)(?:\\E|\Z)|\(\?<(?P<group>[A-Za-z][A-Za-z0-9]*)>|\\k<(?P<back>\w+)>|\\z|\\.", re.S
)


@lru_cache(maxsize=4096)
def java_pattern(text: str, *, ignore_case: bool = False) -> regex.Pattern[str]:
    """``text`` compiled; to be used as Java's ``matches()`` by ``full_match``. Raises ``re.error``."""

    def translate(found: re.Match[str]) -> str:
        if found["literal"] is not None:
            return re.escape(found["literal"])
        if found["group"]:
            return f"(?P<{found['group']}>"
        if found["back"]:
            return f"(?P={found['back']})"
        return r"\Z" if found[0] == r"\z" else found[0]

    try:
        translated = _DIFFERENCES.sub(translate, text)
        # What re refuses, regex may read in a way that is not Java's; a warning is of a set such as [a-z&&[^b]].
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(translated, re.ASCII)
        return regex.compile(translated, regex.V0 | regex.ASCII | (regex.IGNORECASE if ignore_case else 0))
    except (regex.error, OverflowError, RecursionError, Warning) as error:  # a{99999999999}, ten thousand brackets
        raise re.error(str(error) or type(error).__name__) from None


def full_match(pattern: regex.Pattern[str], text: str) -> bool:
    """Raises ``TimeoutError`` after ``SECONDS``."""
    return pattern.fullmatch(text, timeout=SECONDS) is not None


def any_matches(patterns: Iterable[str], name: str, *, ignore_case: bool) -> bool:
    """Is all of ``name`` matched by one of a setting's patterns? Those are trusted to come to an end."""
    return any(java_pattern(pattern, ignore_case=ignore_case).fullmatch(name) for pattern in patterns)


def python_patterns(texts: Iterable[str]) -> tuple[str, ...]:
    """The same patterns for ``regex``; one that is no expression stays as it is, a plain name."""
    found: list[str] = []
    for text in texts:
        try:
            found.append(java_pattern(text).pattern)
        except re.error:
            found.append(text)
    return tuple(found)
