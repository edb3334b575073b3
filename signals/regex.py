"""Matching names by Java's regular expressions, for settings and signals.

`java` parses an expression as Java 17 does, and refuses what it does not understand. So a pattern never matches
something else than its author meant.

Settings are trusted. Signals are not, because anybody who may write a row or a message can send one. Some expressions
of 200 characters take gigabytes to compile, or years to match. So a signal's expression goes to RE2, which needs
bounded memory and linear time. RE2 has no lookarounds, backreferences and possessive repetitions. An expression with
one of these goes to the module `regex`, if it is short and has few counted repetitions.
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

#: Most characters of one expression in a signal. Debezium's signal table has this room for all of a signal's data.
MAX_CHARACTERS = 2_048
#: Bytes of one expression in RE2. They hold 10,000 instructions, with which one name takes at worst 10 ms.
_RE2_BYTES = 256 << 10
#: Limits for an expression that RE2 cannot match. The first limits its characters. The second limits its characters
#: times the product of all counts of repetitions (`{100}`), because nested counts multiply. `regex` takes up to 460
#: bytes for each unit of the product, so 46 MB.
_BACKTRACKING_CHARACTERS = 256
_BACKTRACKING_REPEATED = 100_000
#: Seconds for matching one name by the module `regex`. Microseconds are usual.
_BACKTRACKING_SECONDS = 0.2

#: A function that returns True if an expression matches the whole of a name, like Java's `matches()`.
Matcher = Callable[[str], bool]

#: A pattern of literal characters with at most one dot. Its unescaped dot matches any character. But a name with
#: exactly one dot, as `db.table`, either has that dot at this place or does not match. So the pattern is a literal name
#: for such names.
_EXACT = re.compile(r"[A-Za-z0-9_-]+(?:\\?\.[A-Za-z0-9_-]+)?")
#: A part of a signal's name: quoted, or of characters that mean themselves.
_PART = re.compile(r'"(?:[^"]|"")+"|`(?:[^`]|``)+`|[\w$-]+')
#: Parts with dots between them, of which at least one is quoted.
_QUOTED = re.compile(rf"""(?=.*["`])(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*""", re.S)
_COUNT = re.compile(r"\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")


@lru_cache(maxsize=4096)
def java_pattern(text: str, *, ignore_case: bool = False) -> regex.Pattern[str]:
    """Return a setting's expression, compiled. Raise re.error with the reason if it is not understood."""
    return _backtracking(read(text, ignore_case=ignore_case))


def signal_matcher(text: str, *, ignore_case: bool = False) -> Matcher:
    """Return a function that matches names by a signal's expression. It is compiled in bounded memory.

    Raise re.error if the expression is not understood or too large. The function raises TimeoutError if matching takes
    more than a fraction of a second.
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
    """Return the only name that a literal pattern can match, for example `db.orders`.

    Return None for any other pattern. The dot may be escaped or not. An unescaped dot also matches other characters,
    but only in names without a dot, which are no names of tables with their database. Most lists contain only literal
    patterns. Matching 5,000 tables by name took a minute when each pattern was compiled.
    """
    return pattern.replace("\\", "") if _EXACT.fullmatch(pattern) else None


def named(pattern: str) -> str | None:
    """Return the only name that a pattern of a signal can match, literal or quoted. Return None for an expression.

    A part of a name may stand in double quotes or backticks, as Debezium's page on signals has it for names with other
    characters than letters, digits and `_`. A doubled quote inside stands for one quote.

    >>> named('"shop"."my.orders"'), named("shop.`a``b`"), named("shop.orders"), named("shop.*")
    ('shop.my.orders', 'shop.a`b', 'shop.orders', None)
    """
    if not _QUOTED.fullmatch(pattern):
        return exact_name(pattern)
    return _PART.sub(_unquoted, pattern)


def literal(name: str) -> str:
    """Return a pattern of a signal that matches only the table `name`, which is `db.table` without quotes.

    >>> literal("shop.orders"), literal("shop.a+b"), literal("shop.my.`orders`")
    ('shop.orders', '`shop`.`a+b`', '`shop`.`my.``orders```')
    """
    if exact_name(name) == name:
        return name
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split(".", 1))


def _unquoted(part: re.Match[str]) -> str:
    quote = part[0][0]
    return part[0][1:-1].replace(quote * 2, quote) if quote in '"`' else part[0]


def any_matches(patterns: tuple[str, ...], name: str, *, ignore_case: bool) -> bool:
    """Return True if one of a setting's patterns matches the whole of `name`.

    Settings are trusted, so there is no time limit.
    """
    known, expressions, dotted = _divided(patterns, ignore_case)
    if name.isascii() and (name.lower() if ignore_case else name) in known:
        return True
    # If the name has no dot, another character may stand where the pattern has its dot.
    return any(each.fullmatch(name) for each in expressions) or (
        "." not in name and any(java_pattern(each, ignore_case=ignore_case).fullmatch(name) for each in dotted)
    )


@lru_cache(maxsize=64)
def _divided(
    patterns: tuple[str, ...], ignore_case: bool
) -> tuple[frozenset[str], tuple[regex.Pattern[str], ...], tuple[str, ...]]:
    """Divide patterns into exact names, compiled expressions, and exact names with an unescaped dot."""
    exact = {pattern: exact for pattern in patterns if (exact := exact_name(pattern))}
    names = frozenset(name.lower() if ignore_case else name for name in exact.values())
    rest = (java_pattern(pattern, ignore_case=ignore_case) for pattern in patterns if pattern not in exact)
    return names, tuple(rest), tuple(pattern for pattern, name in exact.items() if pattern == name and "." in name)


def _linear(written: str) -> Matcher:
    """Return a matcher that uses RE2."""
    options = re2.Options()
    options.max_mem = _RE2_BYTES
    options.log_errors = False
    compiled = re2.compile(written, options)
    return lambda name: compiled.fullmatch(name) is not None


def _backtracking(tree: Node) -> regex.Pattern[str]:
    """Return the expression compiled by the module `regex`. Raise re.error if it is too large."""
    # The tree's sets already include letter case. Only references to groups compare letters, and by ASCII's rules.
    flags = regex.V0 | (regex.ASCII if has_case_ignoring_references(tree) else regex.UNICODE)
    try:
        return regex.compile(for_regex(tree), flags)
    except (regex.error, OverflowError, RecursionError) as error:  # for example a{999999999}
        raise re.error(str(error) or type(error).__name__) from None
