"""Parsing of conditions of filters and routers, as Groovy and JavaScript write them.

    condition := term { || term }          term := factor { && factor }
    factor := negated | ( condition ) | true | false | comparison
    negated := ! negated | ! ( condition ) | ! true | ! false | ! member
    comparison := PATH SIGN VALUE | VALUE SIGN PATH | PATH in LIST | member
    member := LIST.contains(PATH) | LIST.includes(PATH)
    choice := condition ? choice : choice | TEXT | null | topic

A PATH is `value.op`, `value.before`, `value.after`, or a column: `value.after.status` in an envelope, `value.status` in
a row. `value.after.get('status')` means the same. A SIGN is == != < <= > >=. A VALUE is a text in single or double
quotes, a number, true, false or null. A LIST stands in brackets. `in` with a list and `contains` are Groovy's; `===`,
`!==` and `includes` are JavaScript's. Both languages read `!value.op == 'c'` as `(!value.op) == 'c'`, which no author
means, so such a condition is refused.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator

from incsnap.transforms.conditions import (
    All,
    AnyOf,
    Choice,
    Condition,
    Not,
    NotUnderstoodError,
    OneOf,
    Ordered,
    Truth,
    Value,
)

GROOVY, JAVASCRIPT = "groovy", "graal.js"

_TOKEN = re.compile(
    r"""\s*(?P<token>value(?:\??\.\w+)+|'[^'\\$]*'|"[^"\\$]*"|-?\d+(?:\.\d+)?|[A-Za-z_]\w*"""
    r"""|===|!==|==|!=|<=|>=|\|\||&&|[!()\[\],.;<>?:])"""
)
_EQUAL = {GROOVY: ("==", "!="), JAVASCRIPT: ("==", "!=", "===", "!==")}
_ORDER = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MEMBER = {GROOVY: "contains", JAVASCRIPT: "includes"}
#: The first whole number that JavaScript does not tell from the next one.
_INEXACT = 2**53
_WORDS = {"true": True, "false": False, "null": None}


def condition_of(text: str, language: str) -> Condition:
    """Return the condition in `text`. `language` is GROOVY or JAVASCRIPT.

    Raise NotUnderstoodError if it asks for more than operations and columns.
    """
    reader = _ConditionParser(text, language)
    condition = reader.condition()
    reader.end()
    return condition


def choice_of(text: str, language: str) -> Choice | str | None:
    """Return the text that conditions choose, as in `value.op == 'u' ? 'updates' : null`. Raise NotUnderstoodError."""
    reader = _ConditionParser(text, language)
    choice = reader.choice()
    reader.end()
    return choice


class _ConditionParser:
    """A parser by recursive descent."""

    def __init__(self, text: str, language: str) -> None:
        self._language = language
        self._condition = text.strip()
        tokens = list(_tokens(self._condition))
        self._tokens = [token["token"] for token in tokens]
        self._spans = [token.span("token") for token in tokens]
        self._at = 0

    def choice(self) -> Choice | str | None:
        """Read a text, null, or a condition that chooses between two choices. `topic` means null: it stays.

        Raise NotUnderstoodError for an empty text, or if the syntax is wrong.
        """
        if self._is_alone() and self._skip("topic"):
            return None
        if self._is_alone() and (self._next()[:1] in ("'", '"') or self._next() == "null"):
            value = self._value()
            assert value is None or isinstance(value, str)
            if value == "":
                raise NotUnderstoodError("an empty text is no topic; write null to leave the topic alone")
            return value
        if self._skip("("):
            begin = self._at
            try:
                inner = self.choice()
                self._expect(")")
            except NotUnderstoodError:
                self._at = begin - 1
            else:
                if not self._is_condition_next():
                    return inner
                self._at = begin - 1
        condition = self.condition()
        self._expect("?")
        chosen = self.choice()
        self._expect(":")
        return Choice(condition, chosen, self.choice())

    def _is_alone(self) -> bool:
        """Whether the next token is not the beginning of a comparison."""
        behind = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ""
        return behind not in (*_EQUAL[JAVASCRIPT], *_ORDER, "in")

    def _is_condition_next(self) -> bool:
        return self._next() in ("&&", "||", "?")

    def condition(self) -> Condition:
        """Read a condition: terms that are joined by `||`."""
        parts = [self._term()]
        while self._skip("||"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def end(self) -> None:
        """Raise NotUnderstoodError if text is left behind the condition, except a semicolon."""
        self._skip(";")
        if self._at < len(self._tokens):
            raise NotUnderstoodError(f"{self._next()!r} is not understood here")

    def _term(self) -> Condition:
        parts = [self._factor()]
        while self._skip("&&"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def _factor(self) -> Condition:
        """Read a part without `||` and `&&`: a negation, a condition in brackets, a truth value or a comparison."""
        if self._skip("!"):
            if self._next() not in ("!", "(", "[", "true", "false"):
                raise NotUnderstoodError(
                    f"! stands before {self._next()!r} and negates that alone; write !({self._comparison_text()})"
                )
            return Not(self._factor())
        if self._skip("("):
            inner = self.condition()
            self._expect(")")
            return inner
        if self._next() in ("true", "false") and self._is_alone():
            return Truth(self._take() == "true")
        return self._comparison()

    def _comparison_text(self) -> str:
        """Return the comparison that begins here as it is written, for a message."""
        begin = self._at
        self._comparison()
        return self._condition[self._spans[begin][0] : self._spans[self._at - 1][1]]

    def _comparison(self) -> Condition:
        """Read a comparison of a path with a value or a list."""
        if self._skip("["):
            values = self._list()
            for token in (".", _MEMBER[self._language], "("):
                self._expect(token)
            path = self._path()
            self._expect(")")
            return OneOf(path, values, self._language == GROOVY)
        if self._next().startswith("value"):
            path = self._path()
            if self._language == GROOVY and self._skip("in"):
                self._expect("[")
                return OneOf(path, self._list(), in_groovys_list=True)
            sign, value = self._sign(), self._value()
        else:
            value, sign, path = self._value(), self._sign(), self._path()
            sign = _ORDER.get(sign, sign)
        if sign not in _ORDER:
            equal = OneOf(path, (value,))
            return equal if sign.startswith("=") else Not(equal)
        if path == ("op",) or value is None or isinstance(value, bool):
            raise NotUnderstoodError(f"{sign!r} compares columns with texts and numbers alone")
        return Ordered(path, sign, value, _holds_for_null(sign, value, self._language))  # type: ignore[arg-type]

    def _path(self) -> tuple[str, ...]:
        token = self._take()
        parts = tuple(token.replace("?.", ".").split(".")[1:])
        if not token.startswith("value") or not parts:
            raise NotUnderstoodError(f"{token!r} stands where value.op or a column was expected")
        if parts[-1] == "get" and self._skip("("):
            name = self._value()
            self._expect(")")
            parts = (*parts[:-1], str(name))
            if self._language != GROOVY:
                raise NotUnderstoodError(f"JavaScript knows no get; write value.{'.'.join(parts)}")
        elif parts[-1] == "class" and self._language == GROOVY:
            raise NotUnderstoodError(f"{token!r} is a class of Java to Groovy; write value{token[5:-6]}.get('class')")
        if len(parts) > 2 or (len(parts) == 2 and parts[0] not in ("before", "after")):
            raise NotUnderstoodError(f"value.{'.'.join(parts)} is neither the operation nor a column")
        return parts

    def _sign(self) -> str:
        sign = self._take()
        if sign not in (*_EQUAL[self._language], *_ORDER):
            raise NotUnderstoodError(f"{sign!r} is not one of {', '.join((*_EQUAL[self._language], *_ORDER))}")
        return sign

    def _list(self) -> tuple[Value, ...]:
        """Read the values of a list, from behind its opening bracket to its end."""
        values = [self._value()]
        while self._skip(","):
            values.append(self._value())
        self._expect("]")
        return tuple(values)

    def _value(self) -> Value:
        token = self._take()
        if token[:1] in ("'", '"'):
            return token[1:-1]
        if token in _WORDS:
            return _WORDS[token]
        if re.fullmatch(r"-?\d+", token):
            if self._language == JAVASCRIPT and abs(int(token)) >= _INEXACT:
                raise NotUnderstoodError(f"JavaScript does not tell {token} from the numbers beside it")
            return int(token)
        if re.fullmatch(r"-?\d+\.\d+", token):
            return float(token)
        raise NotUnderstoodError(f"{token!r} stands where a text in quotes or a number was expected")

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


def _holds_for_null(sign: str, value: str | int | float, language: str) -> bool:
    """Return True if null stands in the order `sign` to `value`.

    In Groovy null is less than any value. JavaScript takes null for 0, and a text beside it for the number it means.
    """
    if language == GROOVY:
        return sign in ("<", "<=")
    number = _javascripts_number(value) if isinstance(value, str) else value
    return bool({"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign](0, number))


def _javascripts_number(text: str) -> float:
    """Return the number that a text means in JavaScript; NaN if it means none."""
    text = text.strip()
    if whole := re.fullmatch(r"0([xob])([0-9a-f]+)", text, re.IGNORECASE):
        try:
            return int(whole[2], {"x": 16, "o": 8, "b": 2}[whole[1].lower()])
        except ValueError:
            return math.nan
    decimal = re.fullmatch(r"[+-]?(Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)", text)
    return float(text) if decimal else math.nan if text else 0


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a condition, each in the group `token`. Raise NotUnderstoodError for another character."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotUnderstoodError(f"{text[at : at + 20]!r} is not understood")
        yield token
        at = token.end()
