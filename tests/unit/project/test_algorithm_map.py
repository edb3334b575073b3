"""The pages name things that exist: a renamed function or test must be renamed there too."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.property.test_needed_rules import MUTANTS

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "docs" / "algorithm-map.md",
    ROOT / "docs" / "invariants.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "vocabulary.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs" / "adr").glob("*.md")),
]
_REFERENCE = re.compile(r"`((?:incsnap|signals|lab|benchmarks|tests|docs)/[\w./-]+)(?:::([\w.]+)(?:\[([^\]]+)\])?)?`")

REFERENCES = sorted({(page.name, *reference) for page in PAGES for reference in _REFERENCE.findall(page.read_text())})


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names of the functions, classes and methods of a module; a method as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return frozenset(names)


@pytest.mark.parametrize("page", PAGES[:3], ids=lambda page: page.name)
def test_names_are_found(page: Path) -> None:
    assert [file for of, file, _, _ in REFERENCES if of == page.name]


@pytest.mark.parametrize(("page", "file", "name", "case"), REFERENCES)
def test_names_on_a_page_exist(page: str, file: str, name: str, case: str) -> None:
    path = ROOT / file

    assert path.exists(), f"{page} names {file}"
    if name:
        assert name in names_in(path), f"{page} names {file}::{name}"
    if case:
        assert f'"{case}"' in path.read_text(), f"{page} names the case {case} of {file}"


def test_every_step_has_code_and_a_test() -> None:
    steps = [line for line in PAGES[0].read_text().splitlines() if re.match(r"\| \d+[a-z]? \|", line)]

    assert len(steps) >= 26
    for step in steps:
        _, code, _, test = (cell.strip() for cell in step.strip("|").split("|")[1:])
        assert code.startswith("`incsnap/"), step
        assert test.startswith("`tests/"), step


def test_every_wrong_rule_that_is_tested_is_on_the_map() -> None:
    listed = PAGES[0].read_text()

    assert [name for name in MUTANTS if f"[{name}]" not in listed] == []


def test_the_path_of_a_newcomer_ends_at_the_last_line_of_its_last_function() -> None:
    _, _, section = (ROOT / "CONTRIBUTING.md").read_text().partition("## Five minutes")
    steps, _, code = section.partition("\n## ")[0].partition("```python\n")
    [*_, (file, name)] = re.findall(r"^\d+\. .*?`(incsnap/[\w/]+\.py)::(\w+)`", steps, re.MULTILINE)
    text = (ROOT / file).read_text()
    [function] = [each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef) and each.name == name]

    assert text.splitlines()[: function.end_lineno][-1] == code.splitlines()[0]
