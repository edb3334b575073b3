"""Conditions of filters and routers: on the operation of a change, and on its columns.

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

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

#: Letters of the operations of changes and of snapshot rows.
OPERATIONS = frozenset("crudt")
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
Value = str | int | float | bool | None


class NotUnderstoodError(ValueError):
    """An error: the condition asks for more than operations and columns, or its syntax is wrong."""


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition that always has the same truth value."""

    holds: bool  #: the truth value
    kind: Literal["Truth"] = "Truth"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class OneOf:
    """A condition that a value is one of some values. No value equals null, except null."""

    #: ("op",), ("before",), ("after",), (image, column), or (column,) of a row
    path: tuple[str, ...]
    values: tuple[Value, ...]  #: the values
    #: whether Groovy looks for them in a list, where a number equals another only if Java's class of both is the same
    in_groovys_list: bool = False
    kind: Literal["OneOf"] = "OneOf"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class Ordered:
    """A condition that a value is less or greater than another. It does not hold for null."""

    path: tuple[str, ...]  #: as in `OneOf`
    sign: Literal["<", "<=", ">", ">="]  #: of the comparison
    value: Value  #: a text or a number
    kind: Literal["Ordered"] = "Ordered"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that holds where another does not."""

    part: Condition  #: the other condition
    kind: Literal["Not"] = "Not"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class All:
    """A condition that holds where all its parts do."""

    parts: tuple[Condition, ...]  #: at least two
    kind: Literal["All"] = "All"  #: name of the class where settings are stored as JSON


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that holds where one of its parts does."""

    parts: tuple[Condition, ...]  #: at least two
    kind: Literal["AnyOf"] = "AnyOf"  #: name of the class where settings are stored as JSON


Condition = Truth | OneOf | Ordered | Not | All | AnyOf


@dataclass(frozen=True, slots=True)
class Choice:
    """A text that conditions choose."""

    condition: Condition  #: decides between the two
    chosen: Choice | str | None  #: where the condition holds; None: none
    otherwise: Choice | str | None  #: where it does not hold
    kind: Literal["Choice"] = "Choice"  #: name of the class where settings are stored as JSON


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


def of_operation(
    condition: Condition, op: str, *, is_row: bool, known: Mapping[str, Value] = MappingProxyType({})
) -> Condition:
    """Return the condition for changes with the operation `op`: a `Truth`, or a condition on columns alone.

    The paths of the result are (image, column). `is_row`: the value is a row. Its columns are those before a deletion,
    and else those after the change. `known`: values of the row's fields that are no columns.
    """
    match condition:
        case OneOf(("op",), values) if not is_row:
            return Truth(op in values)
        case OneOf((name,), values) if is_row and name in known:
            return Truth(known[name] in values)
        case OneOf(path) | Ordered(path):
            placed = _placed(path, op, is_row=is_row)
            missing = placed[0] == ("after" if op in "dt" else "before" if op in "crt" else "")
            if not missing:
                # An image that is there equals no value.
                return Truth(False) if len(placed) == 1 else replace(condition, path=placed)
            return Truth(isinstance(condition, OneOf) and None in condition.values)
        case Not(part):
            inner = of_operation(part, op, is_row=is_row, known=known)
            return Truth(not inner.holds) if isinstance(inner, Truth) else Not(inner)
        case All(parts) | AnyOf(parts):
            return _joined(type(condition), [of_operation(each, op, is_row=is_row, known=known) for each in parts])
    return condition


def _placed(path: tuple[str, ...], op: str, *, is_row: bool) -> tuple[str, ...]:
    """Return the path with its image in front."""
    if is_row:
        return ("before" if op == "d" else "after", path[-1])
    if path[0] not in ("before", "after"):
        raise NotUnderstoodError(f"value.{'.'.join(path)} is no column: write value.after.{path[-1]}")
    return path


def _joined(kind: type[All] | type[AnyOf], parts: list[Condition]) -> Condition:
    """Return the parts joined by && or ||, without those that always have the same truth value."""
    decides = kind is AnyOf
    if any(isinstance(each, Truth) and each.holds == decides for each in parts):
        return Truth(decides)
    left = [each for each in parts if not isinstance(each, Truth)]
    if not left:
        return Truth(not decides)
    return left[0] if len(left) == 1 else kind(tuple(left))


def asks_for_columns(condition: Condition) -> bool:
    """Return True if the condition asks for more than the operation."""
    match condition:
        case OneOf(path) | Ordered(path):
            return path != ("op",)
        case Not(part):
            return asks_for_columns(part)
        case All(parts) | AnyOf(parts):
            return any(map(asks_for_columns, parts))
    return False


def conditions_of(choice: Choice | str | None) -> Iterator[Condition]:
    """Yield the conditions of a choice."""
    if isinstance(choice, Choice):
        yield choice.condition
        yield from conditions_of(choice.chosen)
        yield from conditions_of(choice.otherwise)


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
        return Ordered(path, sign, value)  # type: ignore[arg-type]

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


def _tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of a condition, each in the group `token`. Raise NotUnderstoodError for another character."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotUnderstoodError(f"{text[at : at + 20]!r} is not understood")
        yield token
        at = token.end()
