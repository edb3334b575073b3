"""The project's English stays plain: the counts of hard sentences, fragments and unexplained names keep their limits.

The counts do not judge. CONTRIBUTING.md ("How we build") has the rules, and a reader decides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("incsnap", "signals", "lab", "benchmarks")
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

MOST_WORDS = 30
MOST_LONG_SENTENCES = 20
MOST_BARE_FIELDS = 100
MOST_CELL_CHARACTERS = 120
MOST_LONG_CELLS = 10
MOST_README_CHARACTERS = 160
MOST_README_LINES = 150

#: Words that join, point or ask. A docstring that opens with one of them continues a sentence that is not there, or
#: points at something outside of the docstring.
_NO_OPENING = re.compile(
    r"(?:After|All|And|Any|Are|As|At|Because|Before|Behind|Beside|Between|Both|But|By|Can|Did|Does|During|Each|Either|"
    r"Every|For|From|Had|Has|Have|How|If|In|Into|Is|It|Its|Like|Neither|No|Nobody|None|Nor|Not|Nothing|Of|On|One|Only|"
    r"Or|Others|Otherwise|Since|So|Such|Than|That|The same|Their|Then|There|These|They|This|Those|Through|To|Under|"
    r"Unless|Until|Was|Were|What|When|Where|Which|While|Who|Whoever|Whose|Why|With|Without)\b"
)
_OPENING = re.compile(r"[A-Z]|incsnap\b")
_CODE = re.compile(r"(`+).*?\1")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"']?\s+|(?<=:)\s+(?=[A-Z`*])")
#: Rows that are no prose: headings, tables, doctests and indented code.
_NO_PROSE = re.compile(r"#|\||>>>|    ")
_LIST_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")


class Source(NamedTuple):
    """A Python file, parsed."""

    name: str  #: path below the project's root
    rows: list[str]  #: lines of the text
    nodes: list[ast.AST]  #: the module and all statements below it

    @classmethod
    def of(cls, text: str, name: str = "file.py") -> Source:
        module = ast.parse(text)
        return cls(name, text.splitlines(), [module, *statements(module)])

    def place(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


Function = ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[Source], Iterator[str]]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below a node, but no expression."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, part, ()):
            yield child
            yield from statements(child)


def docstrings(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yield the module, each class and each function, with its docstring; "" if there is none."""
    for node in source.nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, Function)):
            yield node, ast.get_docstring(node) or ""


def fragments(source: Source) -> Iterator[str]:
    """Yield the docstrings that open neither with a verb nor with a noun."""
    for node, text in docstrings(source):
        if text and (_NO_OPENING.match(text) or not _OPENING.match(text)):
            yield f"{source.place(node)}: {text.splitlines()[0]}"


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a docstring or a page, each in one line."""
    rows: list[str] = []
    is_code = False
    for row in [*text.splitlines(), ""]:
        is_fence = row.lstrip().startswith("```")
        is_code ^= is_fence
        is_item = _LIST_ITEM.match(row) is not None
        is_prose = bool(row.strip()) and not is_code and not is_fence and (is_item or not _NO_PROSE.match(row))
        if rows and (is_item or not is_prose):
            yield " ".join(rows)
            rows = []
        if is_prose:
            rows.append(row.strip())


def long_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of more than MOST_WORDS words. Code in backticks is one word."""
    for paragraph in paragraphs(text):
        for sentence in _SENTENCE_END.split(_CODE.sub("`code`", paragraph)):
            number = sum(any(map(str.isalnum, word)) for word in sentence.split())
            if number > MOST_WORDS:
                yield f"{number} words: {sentence}"


def long_docstrings(source: Source) -> Iterator[str]:
    for node, text in docstrings(source):
        yield from (f"{source.place(node)}: {sentence}" for sentence in long_sentences(text))


def bare_fields(source: Source) -> Iterator[str]:
    """Yield the fields of dataclasses that have no comment beside or above them."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
            for field in node.body:
                above, *beside = source.rows[field.lineno - 2 : field.end_lineno]
                has_comment = above.lstrip().startswith("#") or "  #" in "".join(beside)
                if isinstance(field, ast.AnnAssign) and not has_comment:
                    yield f"{source.place(field)}: {node.name}.{ast.unparse(field.target)}"


def raised(function: ast.AST) -> set[str]:
    """Return the names of the error classes that a function raises: `TableError` for `raise errors.TableError(x)`."""
    names = set()
    for node in statements(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            names |= set(re.findall(r"\b[A-Z]\w*", ast.unparse(error))[-1:])
    return names


def unnamed_errors(source: Source) -> Iterator[str]:
    """Yield the public functions that raise an error class which their docstring does not name."""
    for node, text in docstrings(source):
        if isinstance(node, Function) and not node.name.startswith("_"):
            for name in sorted(raised(node) - set(re.findall(r"\w+", text))):
                yield f"{source.place(node)}: {node.name} raises {name}"


def long_cells(text: str) -> Iterator[str]:
    """Yield the table cells of more than MOST_CELL_CHARACTERS characters."""
    for row in text.splitlines():
        if row.startswith("|"):
            yield from (cell.strip() for cell in row.split("|") if len(cell.strip()) > MOST_CELL_CHARACTERS)


def long_rows(rows: Iterable[str]) -> Iterator[str]:
    return (row for row in rows if len(row) > MOST_README_CHARACTERS)


#: Check of a Python file -> how many places it may find.
CODE_LIMITS: Mapping[Check, int] = {
    fragments: 0,
    long_docstrings: MOST_LONG_SENTENCES,
    bare_fields: MOST_BARE_FIELDS,
    unnamed_errors: 0,
}
#: Check of a page -> how many places it may find in all pages.
PAGE_LIMITS: Mapping[Callable[[str], Iterator[str]], int] = {
    long_sentences: MOST_LONG_SENTENCES,
    long_cells: MOST_LONG_CELLS,
}


@cache
def places_in_code() -> Mapping[Check, list[str]]:
    """Return the places that each check finds. Each tree is dropped at once: to hold all 500 takes 1 s longer."""
    places: dict[Check, list[str]] = {check: [] for check in CODE_LIMITS}
    for folder in FOLDERS:
        files = sorted((ROOT / folder).rglob("*.py"))
        assert files, folder
        for file in files:
            source = Source.of(file.read_text(), str(file.relative_to(ROOT)))
            for check, of_check in places.items():
                of_check += check(source)
    return places


@pytest.mark.parametrize(("check", "most"), CODE_LIMITS.items(), ids=[check.__name__ for check in CODE_LIMITS])
def test_code_keeps_its_limit(check: Check, most: int) -> None:
    places = places_in_code()[check]

    assert len(places) <= most, "\n".join(places)


@pytest.mark.parametrize(("check", "most"), PAGE_LIMITS.items(), ids=[check.__name__ for check in PAGE_LIMITS])
def test_pages_keep_their_limit(check: Callable[[str], Iterator[str]], most: int) -> None:
    places = [f"{page.relative_to(ROOT)}: {place}" for page in PAGES for place in check(page.read_text())]

    assert len(places) <= most, "\n".join(places)


def test_readme_is_short() -> None:
    rows = README.read_text().splitlines()

    assert len(rows) <= MOST_README_LINES
    assert list(long_rows(rows)) == []


@pytest.mark.parametrize("opening", ["What becomes of them.", "None if it ends.", "The same with these.", "`a`: rows."])
def test_a_fragment_is_found(opening: str) -> None:
    assert list(fragments(Source.of(f'def rows():\n    """{opening}"""\n'))) == [f"file.py:1: {opening}"]


@pytest.mark.parametrize("opening", ["Return the rows.", "Whether a row is left.", "A row.", "Rows of a table.", ""])
def test_a_verb_or_a_noun_is_no_fragment(opening: str) -> None:
    assert list(fragments(Source.of(f'class Row:\n    """{opening}"""\n'))) == []


def test_a_long_sentence_is_found() -> None:
    allowed, long = "word " * 29 + "last", "word " * 30 + "last"
    no_prose = f"    {long}\n\n```\n{long}\n```\n| {long} |\n# {long}\n>>> {long}"

    assert list(long_sentences(f"{allowed}. {allowed}: `some code`.\n- {allowed}\n- {allowed}\n{no_prose}")) == []
    assert list(long_sentences(f"Short. {long}.")) == [f"31 words: {long}."]
    assert list(long_sentences(long.replace(" ", "\n"))) == [f"31 words: {long}"]
    assert list(long_docstrings(Source.of(f'"""{long}"""'))) == [f"file.py:1: 31 words: {long}"]


def test_a_field_without_a_comment_is_found() -> None:
    rows = ["@dataclass", "class Row:", "    a: int  #: unit", "    #: unit", "    b: int", "    c: int"]

    assert list(bare_fields(Source.of("\n".join(rows)))) == ["file.py:6: Row.c"]
    assert list(bare_fields(Source.of("\n".join(rows[1:])))) == []


def test_an_error_that_the_docstring_does_not_name_is_found() -> None:
    def errors(name: str, error: str) -> list[str]:
        text = f'def {name}():\n    """Raise KeyError."""\n    if a:\n        raise {error}\n'
        return list(unnamed_errors(Source.of(text)))

    assert errors("rows", "errors.RowError(a)") == ["file.py:1: rows raises RowError"]
    assert errors("rows", "KeyError") == errors("rows", "error_of(a)") == errors("_rows", "ValueError") == []


def test_a_long_cell_is_found() -> None:
    assert list(long_cells(f"| name | {'x' * 120} |\n| name | {'y' * 121} |\n{'z' * 130}")) == ["y" * 121]


def test_a_long_row_is_found() -> None:
    assert list(long_rows(["x" * 160, "y" * 161])) == ["y" * 161]
