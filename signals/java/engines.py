"""Translation of a parsed Java expression for two engines: the module `regex`, which can match all of it, and RE2."""

from __future__ import annotations

from signals.java import code_points as points
from signals.java.tree import Anchor, Characters, Choice, Group, Node, Reference, Repeated, Sequence

_LETTER, _MARK = r"[\p{L}\p{Nd}]", r"\p{Mn}"
#: `_WORD_BEFORE` matches a position after a character of a word, `_WORD_BEHIND` a position before one. A combining mark
#: counts as part of the letter before it.
_WORD_BEFORE = rf"(?<=[\p{{L}}\p{{Nd}}_]|{_LETTER}{_MARK}+)"
_WORD_BEHIND = rf"(?:(?=[\p{{L}}\p{{Nd}}_])|(?<={_LETTER}{_MARK}*)(?={_MARK}))"
_NO_WORD_BEFORE = _WORD_BEFORE.replace("(?<=", "(?<!", 1)
_NO_WORD_BEHIND = f"(?!{_WORD_BEHIND})"
_ENDS = r"\r\x85\u2028\u2029"
_PLACES = {
    "begin": r"\A",
    "end": r"\Z",
    "line begin": r"(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?!\Z)",
    "line end": rf"(?:(?=[{_ENDS}]|\Z)|(?<!\r)(?=\n))",
    "last line end": rf"(?:(?=(?:\r\n|[{_ENDS}])?\Z)|(?<!\r)(?=\n\Z))",
    "word border": f"(?:{_WORD_BEFORE}{_NO_WORD_BEHIND}|{_NO_WORD_BEFORE}{_WORD_BEHIND})",
    "no word border": f"(?:{_WORD_BEFORE}{_WORD_BEHIND}|{_NO_WORD_BEFORE}{_NO_WORD_BEHIND})",
}


class NotLinearError(Exception):
    """An error: RE2 cannot match the expression in linear time. `str(error)` names the construct."""


def has_case_ignoring_references(tree: Node) -> bool:
    """Return True if the expression refers to the text of a group without regard to letter case.

    Java then compares ASCII letters only, so the module `regex` needs its flag ASCII.
    """
    match tree:
        case Reference(_, ignores_case):
            return ignores_case
        case Sequence(parts) | Choice(parts):
            return any(map(has_case_ignoring_references, parts))
        case Group(_, inner) | Repeated(inner):
            return has_case_ignoring_references(inner)
    return False


def for_regex(tree: Node) -> str:
    """Return the expression in the syntax of the module `regex`, to be compiled without `IGNORECASE`."""
    match tree:
        case Characters(members):
            return _set(members)
        case Anchor(kind):
            return _PLACES[kind]
        case Reference(number, ignores_case):
            return rf"(?{'i' if ignores_case else ''}:\{number})"
        case Sequence(parts):
            return "".join(map(for_regex, parts))
        case Choice(branches):
            return "|".join(map(for_regex, branches))
        case Group(opening, inner, name):
            return f"{f'(?P<{name}>' if name else opening}{for_regex(inner)})"
        case Repeated(inner, count, manner):
            return f"{for_regex(inner)}{count}{manner}"


def for_re2(tree: Node, *, last: bool = True) -> str:
    """Return the expression in RE2's syntax, for a match with the whole text only (`fullmatch`).

    `last` says that no further part of the expression follows `tree`. An anchor such as `$`, which Java also matches
    before a final line break, can then be written as the end of the text. Raise NotLinearError if RE2 cannot match the
    expression in linear time.
    """
    match tree:
        case Characters(members):
            return _set(members)
        case Anchor("begin"):
            return r"\A"
        case Anchor("end"):
            return r"\z"
        case Anchor("last line end") if last:
            return r"\z"
        case Anchor(kind):
            raise NotLinearError(kind)
        case Reference():
            raise NotLinearError("backreference")
        case Sequence(parts):
            ends = [last and place == len(parts) - 1 for place in range(len(parts))]
            return "".join(for_re2(part, last=each) for part, each in zip(parts, ends, strict=True))
        case Choice(branches):
            return "|".join(for_re2(branch, last=last) for branch in branches)
        case Group("(" | "(?:", inner):
            return f"(?:{for_re2(inner, last=last)})"
        case Group(opening):
            raise NotLinearError(opening)
        case Repeated(inner, count, manner):
            if manner == "+":
                raise NotLinearError("possessive repetition")
            return f"{for_re2(inner, last=False)}{count}{manner}"


def _set(members: points.CodePoints) -> str:
    """Return a set of characters in the syntax of both engines."""
    if len(members) == 1 and members[0][0] == members[0][1]:
        return _character(members[0][0])
    others = points.complement(members)
    if not others:
        return "(?s:.)"
    sign, written = ("^", others) if len(others) < len(members) or not members else ("", members)
    return f"[{sign}{''.join(map(_range, written))}]"


def _range(part: tuple[int, int]) -> str:
    first, last = part
    return _character(first) if first == last else f"{_character(first)}-{_character(last)}"


def _character(point: int) -> str:
    letter = chr(point)
    if point < 0x20 or 0x7F <= point < 0xA0 or point == points.LAST:
        return f"\\x{point:02x}" if point < 0x100 else letter
    return letter if letter.isalnum() or not letter.isascii() else "\\" + letter
