"""Parsing the characters of an expression: literal characters, escapes, and predefined classes such as `\\d`."""

from __future__ import annotations

import re

from signals.java import code_points as points

_DIGITS = points.ranges((0x30, 0x39))
_WORD = points.union(_DIGITS, points.ranges((0x41, 0x5A), (0x61, 0x7A)), points.letters("_"))
VERTICAL = points.union(points.ranges((0x0A, 0x0D), (0x2028, 0x2029)), points.letters("\x85"))
_HORIZONTAL = points.union(points.letters(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), points.ranges((0x2000, 0x200A)))
_PREDEFINED = {
    "d": _DIGITS,
    "w": _WORD,
    "s": points.letters(" \t\n\x0b\f\r"),
    "v": VERTICAL,
    "h": _HORIZONTAL,
}
_PREDEFINED |= {name.upper(): points.complement(each) for name, each in _PREDEFINED.items()}
_DECIMAL = tuple("0123456789")
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}
#: Letters after a backslash that make something else than one character.
_NO_LITERALS = "bBAGZzkRXNpP123456789dDsSwWhHvV"
#: Characters that do not stand for themselves.
_META = "()[|^$.*+?{\\"
_HEXADECIMAL = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})|u([0-9A-Fa-f]{4})")
_LOW_SURROGATE = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_OCTAL = re.compile(r"0([0-3][0-7][0-7]|[0-7][0-7]?)")


def without_quotes(text: str) -> str:
    """Return the expression with the text of each `\\Q...\\E` escaped, as Java does in its first step."""
    if "\\Q" not in text:
        return text
    written: list[str] = []
    for before, quoted in re.findall(r"((?:[^\\]|\\[^Q])*\\?)(?:\\Q(.*?)(?:\\E|\Z)|\Z)", text, re.S):
        escaped = "".join(each if each.isalnum() or not each.isascii() else "\\" + each for each in quoted)
        # A digit must not become part of an escape before the quote.
        first = f"\\x3{quoted[0]}" if quoted[:1] in _DECIMAL else escaped[:1]
        written.append(before + first + escaped[1:])
    return "".join(written)


class EscapeReader:
    """The part of the parser that reads single characters and escapes, a base class of the whole parser in `syntax`.

    `_at` is the index of the next character.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def at_end(self) -> bool:
        """Return True if the whole expression was parsed."""
        return self._at == len(self._text)

    def _literal(self) -> int | None:
        """Parse a literal character, or return None if there is none here."""
        if self.at_end():
            return None
        letter = self._text[self._at]
        if letter == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            if following and following in _NO_LITERALS:
                return None
            self._at += 1
            return self._escaped()
        if letter in _META:
            return None
        self._at += 1
        return ord(letter)

    def _escaped(self) -> int:
        """Parse the character of an escape after its backslash."""
        text, at = self._text, self._at
        letter = text[at : at + 1]
        if not letter:
            raise re.error("it ends with a backslash")
        self._at += 1
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "c":
            controlled = text[at + 1 : at + 2]
            if not controlled.isascii() or not controlled:
                raise re.error(r"\c stands before no character of ASCII")
            self._at += 1
            return ord(controlled) ^ 64
        if octal := _OCTAL.match(text, at):
            self._at = octal.end()
            return int(octal[1], 8)
        if hexadecimal := _HEXADECIMAL.match(text, at):
            self._at = hexadecimal.end()
            return self._code_point(int(hexadecimal[1] or hexadecimal[2] or hexadecimal[3], 16))
        if letter.isascii() and letter.isalnum():
            raise re.error(f"the escape \\{letter} is not understood")
        return ord(letter)

    def _code_point(self, number: int) -> int:
        """Return the character with this number. Parse the second half if it is a pair of surrogates."""
        low = _LOW_SURROGATE.match(self._text, self._at) if 0xD800 <= number < 0xDC00 else None
        if low:
            self._at = low.end()
            return 0x10000 + (number - 0xD800 << 10) + (int(low[1], 16) - 0xDC00)
        if 0xD800 <= number < 0xE000:
            raise re.error(f"\\u{number:04x} is half a character (a lone surrogate)")
        if number > points.LAST:
            raise re.error(f"there is no character {number:#x}")
        return number

    def _predefined(self) -> points.CodePoints | None:
        """Parse a predefined class such as `\\d`, or return None if there is none here."""
        letter = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at] != "\\" or letter not in _PREDEFINED:
            return None
        self._at += 2
        return _PREDEFINED[letter]

    def _skip(self, written: str) -> bool:
        """Skip `written` if it comes next, and return whether it does."""
        is_next = self._text.startswith(written, self._at)
        self._at += len(written) * is_next
        return is_next
