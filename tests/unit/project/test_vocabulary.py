"""A test that no name in the code is one that says nothing. docs/vocabulary.md lists such names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("incsnap", "signals", "lab", "benchmarks", "tests")
_SECTION = re.compile(r"^## Names\n.*?:\n(.*?\.)\n", re.MULTILINE | re.DOTALL)
#: A text, a comment or a word. Texts and comments match whole and are skipped. `tokenize` takes four times as long.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*|(?P<name>[^\W\d]\w*)', re.DOTALL
)


def words() -> frozenset[str]:
    [section] = _SECTION.findall((ROOT / "docs" / "vocabulary.md").read_text())
    return frozenset(re.findall(r"`(\w+)`", section))


def names(text: str) -> Iterator[tuple[int, str]]:
    """Yield each name of a program, with its index in the text."""
    return ((token.start(), token["name"]) for token in _TOKEN.finditer(text) if token["name"])


def test_the_page_lists_words() -> None:
    assert {"found", "only_one", "Place"} <= words()


def test_names_are_told_from_texts_and_comments() -> None:
    text = "\n".join(('"""found"""', "a = 'found' + f(\"it's\", found=1)  # found", "def found() -> None: ..."))

    assert [word for _, word in names(text)] == ["a", "f", "found", "def", "found", "None"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_is_one_that_says_nothing(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    avoided = words()

    wrong = [
        f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}: {name}"
        for file in files
        for text in [file.read_text()]
        for at, name in names(text)
        if name in avoided
    ]
    assert wrong == []
