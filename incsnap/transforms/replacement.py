"""Replacements as in Java's `Matcher.replaceFirst`, which the settings of routers use.

`$1` and `${name}` are groups of the match. A backslash takes the next character as it is. A number has as many digits
as there is such a group: `$12` is group 1 and the digit 2 if there are fewer than twelve groups.
https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/regex/Matcher.html
"""

from __future__ import annotations

import re
from functools import lru_cache

from signals.regex import java_pattern

#: A backslash with its character, a group's name, digits behind a `$`, or any other character.
_PART = re.compile(r"\\(?P<taken>.?)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|\$(?P<digits>[0-9]*)|.", re.DOTALL)

#: A part of a replacement: a text, or a tuple with the number or the name of a group.
Part = str | tuple[int | str]


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
    new = "".join(part if isinstance(part, str) else match[part[0]] or "" for part in parts)
    return text[: match.start()] + new + text[match.end() :]


@lru_cache(maxsize=256)
def parsed(regex: str, replacement: str) -> tuple[Part, ...]:
    """Return the parts of `replacement`.

    `regex` must be valid. Raise ValueError with a reason if `replacement` is not valid for `regex`.
    """
    pattern = java_pattern(regex)
    parts: list[Part] = []
    for match in _PART.finditer(replacement):
        taken, name, digits = match["taken"], match["name"], match["digits"]
        if taken is not None:
            if not taken:
                raise ValueError("it ends with a backslash")
            parts.append(taken)
        elif name is not None:
            if name not in pattern.groupindex:
                raise ValueError(f"the regular expression has no group {name!r}")
            parts.append((name,))
        elif digits is not None:
            parts += _numbered(digits, pattern.groups)
        else:
            parts.append(match[0])
    return tuple(parts)


def _numbered(digits: str, groups: int) -> tuple[Part, str]:
    """Return the group that `digits` behind a `$` name, and the digits that are a text behind the group.

    Raise ValueError if there is no such group, or no digit.
    """
    if not digits:
        raise ValueError("a $ stands before no group's number or {name}; write \\$ for the sign itself")
    if int(digits[0]) > groups:
        raise ValueError(f"the regular expression has no group {digits[0]}")
    count = max(count for count in range(1, len(digits) + 1) if int(digits[:count]) <= groups)
    return (int(digits[:count]),), digits[count:]
