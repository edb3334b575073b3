"""Replacements as in Java's `Matcher.replaceFirst`, which the settings of routers use.

`$1` and `${name}` are groups of the match. A backslash takes the next character as it is. A number has as many digits
as there is such a group: `$12` is group 1 and the digit 2 if there are fewer than twelve groups.
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Matcher.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from signals.regex import java_pattern

_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")

#: A part of a replacement: a text, or a group by its number (int) or by its name (tuple).
Part = str | int | tuple[str]


def replaced(regex: str, replacement: str, text: str) -> str | None:
    """Return `text` with the first match of `regex` replaced; None if the regex does not match the whole text.

    As in Java, the whole text is only a condition. The match that is replaced is searched anew and may be shorter.
    """
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
    """Return the parts of `replacement`.

    `regex` must be valid. Raise ValueError with a reason if `replacement` is not valid for `regex`.
    """
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
    """Return the group behind a `$`, and the position behind its number or name."""
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
