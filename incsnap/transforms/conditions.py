"""Conditions of filters that look at the operation of a change: `value.op == 'c' || value.op in ['u', 'r']`.

    condition := term { || term }          term := factor { && factor }
    factor := negated | ( condition ) | true | false | comparison
    negated := ! negated | ! ( condition ) | ! true | ! false
    comparison := OP == TEXT | OP != TEXT | TEXT == OP | TEXT != OP | OP in LIST | LIST.contains(OP) | LIST.includes(OP)

OP is `value.op`, a TEXT stands in single or double quotes, a LIST in brackets. `in` with a list and `contains` are
Groovy's; `===`, `!==` and `includes` are JavaScript's. Both languages read `!value.op == 'c'` as `(!value.op) == 'c'`,
which no author means, so such a condition is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Letters of the operations of changes and of snapshot rows.
OPERATIONS = frozenset("crudt")
GROOVY, JAVASCRIPT = "groovy", "graal.js"

_TOKEN = re.compile(
    r"""\s*(?P<token>value\.op\b|'[^'\\$]*'|"[^"\\$]*"|[A-Za-z_]\w*|===|!==|==|!=|\|\||&&|[!()\[\],.;])"""
)
_EQUAL = {GROOVY: ("==", "!="), JAVASCRIPT: ("==", "!=", "===", "!==")}
_MEMBER = {GROOVY: "contains", JAVASCRIPT: "includes"}


class NotUnderstoodError(ValueError):
    """An error: the condition asks for more than the operation, or its syntax is wrong."""


def operations(condition: str, language: str) -> tuple[str, ...]:
    """Return the letters of OPERATIONS for which the condition is true, in alphabetical order.

    `language` is GROOVY or JAVASCRIPT. Raise NotUnderstoodError if the condition asks for more than the operation.
    """
    reader = _ConditionParser(condition, language)
    met = reader.condition()
    reader.end()
    return tuple(sorted(met))


class _ConditionParser:
    """A parser by recursive descent. Each reading method returns the operations for which its part is true."""

    def __init__(self, text: str, language: str) -> None:
        self._language = language
        self._condition = text.strip()
        tokens = list(_tokens(self._condition))
        self._tokens = [token["token"] for token in tokens]
        self._spans = [token.span("token") for token in tokens]
        self._at = 0

    def condition(self) -> frozenset[str]:
        """Read a condition: terms that are joined by `||`."""
        met = self._term()
        while self._skip("||"):
            met |= self._term()
        return met

    def end(self) -> None:
        """Raise NotUnderstoodError if text is left behind the condition, except a semicolon."""
        self._skip(";")
        if self._at < len(self._tokens):
            raise NotUnderstoodError(f"{self._next()!r} is not understood here")

    def _term(self) -> frozenset[str]:
        met = self._factor()
        while self._skip("&&"):
            met &= self._factor()
        return met

    def _factor(self) -> frozenset[str]:
        """Read a part without `||` and `&&`: a negation, a condition in brackets, a truth value or a comparison."""
        if self._skip("!"):
            if self._next() not in ("!", "(", "true", "false"):
                raise NotUnderstoodError(
                    f"! stands before {self._next()!r} and negates that alone; write !({self._comparison_text()})"
                )
            return OPERATIONS - self._factor()
        if self._skip("("):
            inner = self.condition()
            self._expect(")")
            return inner
        if self._next() in ("true", "false"):
            return OPERATIONS if self._take() == "true" else frozenset()
        return self._comparison()

    def _comparison_text(self) -> str:
        """Return the comparison that begins here as it is written, for a message."""
        begin = self._at
        self._comparison()
        return self._condition[self._spans[begin][0] : self._spans[self._at - 1][1]]

    def _comparison(self) -> frozenset[str]:
        """Read a comparison of the operation with a text or a list."""
        if self._skip("["):
            among = self._list()
            for token in (".", _MEMBER[self._language], "(", "value.op", ")"):
                self._expect(token)
            return among
        if self._skip("value.op"):
            if self._language == GROOVY and self._skip("in"):
                self._expect("[")
                return self._list()
            sign, text = self._sign(), self._text()
        else:
            text, sign = self._text(), self._sign()
            self._expect("value.op")
        equal = OPERATIONS & {text}
        return equal if sign.startswith("=") else OPERATIONS - equal

    def _sign(self) -> str:
        sign = self._take()
        if sign not in _EQUAL[self._language]:
            raise NotUnderstoodError(f"{sign!r} is not one of {', '.join(_EQUAL[self._language])}")
        return sign

    def _list(self) -> frozenset[str]:
        """Read the operations of a list, from behind its opening bracket to its end."""
        texts = {self._text()}
        while self._skip(","):
            texts.add(self._text())
        self._expect("]")
        return OPERATIONS & texts

    def _text(self) -> str:
        token = self._take()
        if token[:1] not in ("'", '"'):
            raise NotUnderstoodError(f"{token!r} stands where a text in quotes was expected")
        return token[1:-1]

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else "the end"

    def _take(self) -> str:
        token = self._next()
        self._at += 1
        return token

    def _skip(self, token: str) -> bool:
        is_next = self._at < len(self._tokens) and self._tokens[self._at] == token
        self._at += is_next
        return is_next

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise NotUnderstoodError(f"{self._next()!r} stands where {token!r} was expected")


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a condition, each in the group `token`. Raise NotUnderstoodError for another character."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotUnderstoodError(f"{text[at : at + 20]!r} is not understood")
        yield token
        at = token.end()
