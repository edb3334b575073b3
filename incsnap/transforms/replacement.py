"""Java's ``Matcher.replaceFirst``: what the settings of routers call a replacement.

``$1`` and ``${name}`` are groups of the match, a backslash takes the next character as it is. A number goes on for as
long as there is such a group: ``$12`` is group 1 and the digit 2 where there are fewer than twelve.
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Matcher.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from signals.regex import java_pattern

_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")

#: A text, or a group by its number or name.
Part = str | int | tuple[str]


def replaced(regex: str, replacement: str, text: str) -> str | None:
    """``text`` with its first match replaced, None where not all of it matches. The first match need not be all of it:
    Java searches once more."""
    pattern = java_pattern(regex)
    if pattern.fullmatch(text) is None:
        return None
    match = pattern.search(text)
    assert match is not None
    parts = parsed(regex, replacement)
    new = "".join(part if isinstance(part, str) else match[_group(part)] or "" for part in parts)
    return text[: match.start()] + new + text[match.end() :]


def _group(part: int | tuple[str]) -> int | str:
    return part if isinstance(part, int) else part[0]


@lru_cache(maxsize=256)
def parsed(regex: str, replacement: str) -> tuple[Part, ...]:
    """Raises ``ValueError``, which says what is wrong with ``replacement``. ``regex`` is sound."""
    pattern = java_pattern(regex)
    parts: list[Part] = []
    at = 0
    while at < len(replacement):
        letter = replacement[at]
        at += 1
        if letter == "\\":
            if at == len(replacement):
                raise ValueError("it ends with a backslash")
            parts.append(replacement[at])
            at += 1
        elif letter == "$":
            part, at = _reference(pattern.groups, pattern.groupindex, replacement, at)
            parts.append(part)
        else:
            parts.append(letter)
    return tuple(parts)


def _reference(groups: int, names: Mapping[str, int], replacement: str, at: int) -> tuple[Part, int]:
    """The group behind a ``$``, and where it ends."""
    if named := _NAME.match(replacement, at):
        if named[1] not in names:
            raise ValueError(f"the regular expression has no group {named[1]!r}")
        return (named[1],), named.end()
    digits = re.compile("[0-9]*").match(replacement, at)
    assert digits is not None
    if not digits[0]:
        raise ValueError("a $ stands before no group's number or {name}; write \\$ for the sign itself")
    number, at = int(digits[0][0]), at + 1
    if number > groups:
        raise ValueError(f"the regular expression has no group {number}")
    for digit in digits[0][1:]:
        if number * 10 + int(digit) > groups:
            break
        number, at = number * 10 + int(digit), at + 1
    return number, at
