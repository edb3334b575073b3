"""Java's regular expressions, as settings and signals use them.

``java`` reads an expression as Java 17 does, and refuses by name what it does not understand. So a pattern never
matches something else than its author meant.

A setting is trusted. A signal is not: anybody who may write a row or a message sends one, and some expressions of two
hundred characters take gigabytes to compile, or years to match. So those go to RE2, whose memory is bounded and whose
time is linear. It has no lookarounds, backreferences and possessive repetitions; an expression with these is left to
``regex``, if it is short and counts little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

import re2
import regex

from signals.java.engines import NotLinearError, for_re2, for_regex, has_case_ignoring_references
from signals.java.syntax import read
from signals.java.tree import Node

#: Characters of one expression of a signal: Debezium's signal table has room for as many of all of its data.
MAX_CHARACTERS = 2_048
#: Bytes of one expression in RE2: 10,000 instructions, with which a name takes 10 ms at worst.
_RE2_BYTES = 256 << 10
#: Of an expression that RE2 cannot take: its characters, and these times all its counted repetitions (they multiply
#: where they are nested). ``regex`` takes up to 460 bytes for each of the latter, so 46 MB.
_BACKTRACKING_CHARACTERS = 256
_BACKTRACKING_REPEATED = 100_000
#: Seconds for one name, where only ``regex`` can match it. Microseconds are usual.
_BACKTRACKING_SECONDS = 0.2

Matcher = Callable[[str], bool]
"""Java's ``matches()``: is all of the name matched?"""

#: Characters that mean themselves, and one dot at the most. Where that is not escaped it stands for any character, but
#: a name with a dot has its own just there, or does not match.
_EXACT = re.compile(r"[A-Za-z0-9_-]+(?:\\?\.[A-Za-z0-9_-]+)?")
_COUNT = re.compile(r"\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")


@lru_cache(maxsize=4096)
def java_pattern(text: str, *, ignore_case: bool = False) -> regex.Pattern[str]:
    """Return a setting's expression, compiled. Raise ``re.error`` with the reason where it is not understood."""
    return _backtracking(read(text, ignore_case=ignore_case))


def signal_matcher(text: str, *, ignore_case: bool = False) -> Matcher:
    """Return the matcher of a signal's expression, compiled in bounded memory. Raise ``re.error``.

    The matcher raises ``TimeoutError`` where it would take more than a fraction of a second.
    """
    if len(text) > MAX_CHARACTERS:
        raise re.error(f"it has {len(text)} characters, and {MAX_CHARACTERS} are the most")
    tree = read(text, ignore_case=ignore_case)
    try:
        return _linear(for_re2(tree))
    except re2.error as error:
        message = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise re.error(message) from None
    except NotLinearError as error:
        lacking = str(error)
    repeats = math.prod(max(1, int(count["most"] or count["least"] or 1)) for count in _COUNT.finditer(text))
    if len(text) > _BACKTRACKING_CHARACTERS or len(text) * repeats > _BACKTRACKING_REPEATED:
        raise re.error(
            f"it is too large for an expression with {lacking!r}: {_BACKTRACKING_CHARACTERS} characters are the most,"
            f" and {_BACKTRACKING_REPEATED} with all repetitions"
        )
    pattern = _backtracking(tree)
    return lambda name: pattern.fullmatch(name, timeout=_BACKTRACKING_SECONDS) is not None


def exact_name(pattern: str) -> str | None:
    """The one name that ``pattern`` matches among those with a dot, where it can be told without compiling it.

    Most lists hold nothing else: five thousand tables by their names took a minute to be looked for as expressions.
    """
    return pattern.replace("\\", "") if _EXACT.fullmatch(pattern) else None


def any_matches(patterns: tuple[str, ...], name: str, *, ignore_case: bool) -> bool:
    """Is all of ``name`` matched by one of a setting's patterns? Those are trusted to come to an end."""
    known, expressions, dotted = _divided(patterns, ignore_case)
    if name.isascii() and (name.lower() if ignore_case else name) in known:
        return True
    # Without a dot of its own a name may have any other character where the pattern has its dot.
    return any(each.fullmatch(name) for each in expressions) or (
        "." not in name and any(java_pattern(each, ignore_case=ignore_case).fullmatch(name) for each in dotted)
    )


@lru_cache(maxsize=64)
def _divided(
    patterns: tuple[str, ...], ignore_case: bool
) -> tuple[frozenset[str], tuple[regex.Pattern[str], ...], tuple[str, ...]]:
    """Names that can be looked up, the patterns that cannot, compiled, and those of the names with an unescaped dot."""
    exact = {pattern: exact for pattern in patterns if (exact := exact_name(pattern))}
    names = frozenset(name.lower() if ignore_case else name for name in exact.values())
    rest = (java_pattern(pattern, ignore_case=ignore_case) for pattern in patterns if pattern not in exact)
    return names, tuple(rest), tuple(pattern for pattern, name in exact.items() if pattern == name and "." in name)


def _linear(written: str) -> Matcher:
    options = re2.Options()
    options.max_mem = _RE2_BYTES
    options.log_errors = False
    compiled = re2.compile(written, options)
    return lambda name: compiled.fullmatch(name) is not None


def _backtracking(tree: Node) -> regex.Pattern[str]:
    # Letter case is in the tree's sets already, but for that of a group's text, where it is ASCII's.
    flags = regex.V0 | (regex.ASCII if has_case_ignoring_references(tree) else regex.UNICODE)
    try:
        return regex.compile(for_regex(tree), flags)
    except (regex.error, OverflowError, RecursionError) as error:  # a{999999999}, a lookbehind without an end
        raise re.error(str(error) or type(error).__name__) from None
