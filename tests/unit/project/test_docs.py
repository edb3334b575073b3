"""The pages name what there is: every setting, every command, every decision, and no link leads nowhere."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from incsnap.cli.main import commands
from incsnap.config.names import OBEYED, OBEYED_PREFIXES
from incsnap.config.record_form import RECORD_FORM
from incsnap.monitoring import status
from incsnap.snapshot import offset

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
OPERATION = DOCS / "operation.md"
DECISIONS = ROOT / "docs" / "adr" / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
MEASURED = ("memory.md", "performance.md", "operation.md")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

LINKS = [(page, target) for page in PAGES for target in _LINK.findall(page.read_text()) if "://" not in target]


def _in_table(page: Path) -> str:
    """First cells of all rows: a setting mentioned in passing is not yet described."""
    return "\n".join(line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("|"))


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("name", sorted(OBEYED))
def test_every_obeyed_setting_is_described(name: str) -> None:
    assert f"`{name}`" in _in_table(OPERATION)


@pytest.mark.parametrize("prefix", OBEYED_PREFIXES)
def test_every_obeyed_prefix_is_described(prefix: str) -> None:
    assert f"`{prefix}*`" in _in_table(OPERATION)


def test_no_setting_is_described_that_is_not_obeyed() -> None:
    settings = OPERATION.read_text().split("\n## ")[1].split("\n### ")[0]
    rows = [line.split("|")[1] for line in settings.splitlines() if line.startswith("| `")]
    described = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}

    assert described, "no row of a setting was found"
    assert described - OBEYED - {f"{prefix}*" for prefix in OBEYED_PREFIXES} == set()


@pytest.mark.parametrize("command", commands.list_commands(click.Context(commands)))
def test_every_command_is_named(command: str) -> None:
    pages = (ROOT / "README.md").read_text() + OPERATION.read_text()

    assert re.search(rf"incsnap {command}\b", pages)


@pytest.mark.parametrize("page", [ROOT / "README.md", OPERATION, DECISIONS], ids=lambda page: page.name)
def test_links_are_found(page: Path) -> None:
    assert [target for of, target in LINKS if of == page]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=[f"{page.name}:{target}" for page, target in LINKS])
def test_links_lead_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    target_page = page.parent / path if path else page

    assert target_page.exists()
    if anchor:
        assert anchor in {_anchor(heading) for heading in _HEADING.findall(target_page.read_text())}


def test_every_decision_is_listed() -> None:
    listed = {target for page, target in LINKS if page == DECISIONS}

    assert listed, "no link to a decision was found"
    assert listed == {page.name for page in DECISIONS.parent.glob("[0-9]*.md")}


def test_sizing_takes_its_figures_from_what_was_measured() -> None:
    """Or from a bound that operation.md tells. Of a thousand and more; 5,000 changes/s are an example."""
    figure = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
    measured = " ".join(path.read_text() for path in (ROOT / "README.md", *map(DOCS.joinpath, MEASURED)))
    figures = set(figure.findall((DOCS / "sizing.md").read_text())) - {"5,000"}

    assert figures
    assert figures - set(figure.findall(measured)) == set()


def test_upgrading_tells_the_versions_that_there_are() -> None:
    page = (DOCS / "upgrade.md").read_text()

    assert f"| version {offset.VERSION} |" in page
    assert f"(`RECORD_FORM`), in the offset | {RECORD_FORM} |" in page
    assert f"`incsnap/status.json` | version {status.VERSION} |" in page
    assert re.findall(r"^\| (\d) \| ", page, re.MULTILINE) == [str(each) for each in range(2, offset.VERSION + 1)]


def test_the_packages_are_those_whose_imports_are_held_in_the_same_order() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    layers = settings["importlinter:contract:layers"]["layers"].split("\n")
    packages = [line.replace("|", " ").split() for line in layers if line]

    rows = [
        line.split("|")[1]
        for line in ARCHITECTURE.read_text().splitlines()
        if line.startswith(("| `incsnap.", "| `lab`"))
    ]
    assert [re.findall(r"`([^`]+)`", row) for row in rows] == packages
