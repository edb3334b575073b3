"""Tests of patterns in settings and signals: they match what java.util.regex matches, or are refused."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from signals.regex import java_pattern, signal_matcher
from tests.support.java_regex import JavaRegex, java_regex
from tests.support.profile import NIGHTLY, seed

_PATTERNS = 100_000 if NIGHTLY else 1_500
_TEXTS = 3
_ATOMS = [
    *"aAbkKsSiß.Äéμ-&", "db", "ab", "größe", "[ab]", "[^ab]", "[a-c[x-z]]", "[^[ab]]", "[^a[b-d]]", "[a-z&&[^bc]]",
    "[a-d&&b-k&&[c]]", "[^a-z&&[k]]", "[a&&[b]c]", "[[a]b&&c]", "[a-]", "[]a]", r"[\w-.]", r"[^\s]", "[&a]", "[ä-ö]",
    "[ß]", "[k-s]", r"\.", r"\w", r"\W", r"\d", r"\s", r"\S", r"\h", r"\v", r"\0101", r"\x41", r"\x{1F600}", r"\u0061",
    r"\uD83D\uDE00", r"\cA", r"\t", r"\Qa.b\E", r"\Q1\E", "^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", "😀", "ſ", "\\1",
    r"\k<n>", "}", "]", " ", "#", "{", "[", "*", "[a-[b]]", r"[a-\d]", "[b-a]", "\n",
]  # fmt: skip
_OPENINGS = [
    "(", "(", "(?:", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?iu:", "(?s:", "(?m:", "(?x:",
    "(?-i:",
]  # fmt: skip
_FLAGS = ["(?i)", "(?iu)", "(?u)", "(?s)", "(?m)", "(?x)", "(?d)", "(?U)", "(?-i)"]
_REPETITIONS = ["", "", "", "", "*", "+", "?", "*?", "+?", "??", "++", "{2}", "{0,2}", "{1,}", "{,2}", "{2}{2}", "?+"]
_LETTERS = [*"aAbBcdkKsSiIx.-1_&]} #\t\n\r", "ä", "Ä", "ß", "ẞ", "ö", "é", "É", "ſ", "K", "ı", "İ", "μ", "µ", "😀",
            "\x85", "\u2028", "\xa0", "\x0b", "\x01", "größe", "a.b", "db", "GRÖSSE"]  # fmt: skip


@pytest.fixture(scope="module")
def java() -> Iterator[JavaRegex]:
    with java_regex() as machine:
        yield machine


def _pattern(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(1, 3)):
        choice = rng.random()
        if depth < 3 and choice < 0.3:
            part = f"{rng.choice(_OPENINGS)}{_pattern(rng, depth + 1)})"
        elif choice < 0.38:
            part = rng.choice(_FLAGS)
        elif choice < 0.46:
            part = _pattern(rng, depth + 1) + "|" if depth < 3 else "|"
        else:
            part = rng.choice(_ATOMS)
        parts.append(part + rng.choice(_REPETITIONS))
    return "".join(parts)


def _text(rng: random.Random) -> str:
    return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(0, 4)))


def test_random_patterns_match_as_java_matches_them_or_are_refused(java: JavaRegex) -> None:
    chosen = seed(1)
    rng = random.Random(chosen)
    taken = refused = 0
    for _ in range(_PATTERNS):
        pattern, ignore_case = _pattern(rng), rng.random() < 0.3
        try:
            ours = java_pattern(pattern, ignore_case=ignore_case)
        except re.error:
            refused += java.matches(pattern, "", ignore_case=ignore_case) is not None
            continue
        try:
            of_signal = signal_matcher(pattern, ignore_case=ignore_case)
        except re.error:
            of_signal = None
        for text in [_text(rng) for _ in range(_TEXTS)] + ["", "ab"]:
            expected = java.matches(pattern, text, ignore_case=ignore_case)
            if expected is None:
                break
            taken += 1
            where = f"{pattern!r} on {text!r}, ignore_case={ignore_case} (seed {chosen})"
            assert (ours.fullmatch(text) is not None) == expected, where
            assert of_signal is None or of_signal(text) == expected, f"signal: {where}"
    assert taken > _PATTERNS
    assert refused < _PATTERNS / 2


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"db\.[a-c[x-z]].*", "db.xfoo"), ("[^[ab]]", "c"), ("[^[ab]]", "a"), (r"\0101", "A"), (r"\uD83D\uDE00", "😀"),
        ("(?iu)größe\\..*", "GRÖßE.x"), ("(?u)größe", "GRÖßE"), ("(?i)ä", "Ä"), ("(?iu)ß", "ẞ"), ("(?iu)xß", "Xẞ"),
        ("(?iu)[ß]", "ẞ"), ("(?iu)k", "\u212a"), ("(?i)k", "\u212a"), ("a(?i)b|c", "C"), ("(?i:a)a", "AA"),
        ("[a-z&&[^bc]]", "d"), ("[a-z&&[^bc]]", "b"), ("[a-d&&[b]c]", "c"), ("a$\r\n", "a\r\n"), (".", "\u2028"),
        (r"\bä\b", "ä"), (r"\s", "\x0b"), (r"\w", "ä"), ("[a-[b]]", "-"), (r"(a)(?i)\1", "aA"), (r"\x4\Q1\E", "A"),
        (r"\Qa.b\E+", "a.bb"), ("(?:^|_)?x", "_x"), ("(?:^|_)?x", "x"), ("(?m)^a$\n", "a\n"),
    ],
)  # fmt: skip
def test_a_pattern_that_is_understood_means_what_it_means_to_java(java: JavaRegex, pattern: str, text: str) -> None:
    expected = java.matches(pattern, text)
    try:
        ours = java_pattern(pattern)
    except re.error:
        assert expected is None
        return
    assert (ours.fullmatch(text) is not None) == expected
    assert signal_matcher(pattern)(text) == expected


@pytest.mark.parametrize(
    ("pattern", "text"), [("a|ab", "xab"), ("$", "a\r\n"), ("b*?c", "aabbc"), (r"\b", " ä"), ("(?m)^", "\na")]
)
def test_the_first_match_is_javas(java: JavaRegex, pattern: str, text: str) -> None:
    match = java_pattern(pattern).search(text)
    assert (match and match.span()) == java.first(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("(?x)[a b]", "x (comments)"), ("(?d).", "d (UNIX lines)"), ("(?U)\\w", "U (Unicode classes)"),
        ("\\p{Lu}", "\\p"), ("\\R", "\\R"), ("\\X", "\\X"), ("\\Ga", "\\G"), ("\\N{DIGIT ONE}", "\\N"),
        ("(?P<a>x)", "(?P"), ("(?#x)", "(?#"), ("\\b{g}", "\\b{g}"), ("a{2}{3}", "repetition"), ("[a&&]", "&&"),
        ("\\ud800", "half a character"), ("\ud800", "half a character"), ("(a", ")"), ("a)", "("), ("[a", "]"),
        ("(" * 101 + ")" * 101, "100 brackets"), ("(?<!a*)b", "look-behind"),
        ("\\", "backslash"), ("(?<a>x)(?<a>y)", "two groups are called a"), ("\\1(a)", "group 1"),
        ("(?:(?!(a))|b)\\1", "negative look-around"), ("(?<!(?:(?<n>a)b|c))\\k<n>", "negative look-around"),
        ("(?:(a)|c)+\\1", "inside a repetition"), ("([ab]{1,})*\\1", "inside a repetition"),
        ("(?<n>\\b[ab]?){2}[ab]", "a repetition of an anchor"), ("(?<!\\ba?+)a", "in a look-behind"),
        ("(?<=(?>a|ab))", "in a look-behind"), ("((?:a{0}(?!b)|b))+", "a repetition of an anchor"),
    ],
)  # fmt: skip
def test_unsupported_patterns_are_refused_by_name(pattern: str, named: str) -> None:
    for compiled in (java_pattern, signal_matcher):
        with pytest.raises(re.error) as caught:
            compiled(pattern)
        assert named in str(caught.value)
