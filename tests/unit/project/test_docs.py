"""The pages name what there is: every setting, every command, every decision, and no link leads nowhere."""

from __future__ import annotations

import re
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import click
import pytest

from incsnap.cli.main import commands
from incsnap.config.record_form import RECORD_FORM
from incsnap.monitoring import status
from incsnap.snapshot import offset
from tests.support.snapshots import A, Snapshots, execute

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
OPERATION = DOCS / "operation.md"
DECISIONS = ROOT / "docs" / "adr" / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
RESULTS = ROOT / "benchmarks" / "results" / "README.md"
MEASURED = (ROOT / "README.md", RESULTS, *map(DOCS.joinpath, ("memory.md", "performance.md", "operation.md")))
#: The two pages whose links are the contents of the site.
CONTENTS = (DOCS / "README.md", DECISIONS)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), RESULTS, ROOT / "tests" / "golden" / "README.md"]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

LINKS = [(page, target) for page in PAGES for target in _LINK.findall(page.read_text()) if "://" not in target]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


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

    # A folder is no page of the site.
    assert target_page.is_file()
    if anchor:
        assert anchor in {_anchor(heading) for heading in _HEADING.findall(target_page.read_text())}


def test_every_page_is_in_the_contents_of_the_site() -> None:
    listed = {(page.parent / target.partition("#")[0]).resolve() for page, target in LINKS if page in CONTENTS}

    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in {*listed, CONTENTS[0]}] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_a_page_says_first_whom_it_is_for(page: Path) -> None:
    heading, blank, first, *_ = page.read_text().splitlines()

    assert heading.startswith("# ")
    assert not blank
    assert first.startswith("For ")


def test_the_fields_of_a_notification_are_documented() -> None:
    rows = re.findall(r"^\| (`[A-Z][^|]*) \| ([^|]*) \|$", OPERATION.read_text(), re.MULTILINE)
    documented = {kind: fields for kinds, fields in rows for kind in re.findall(r"`([A-Z_]+)`", kinds)}
    job = Snapshots({A: [1, 2, 3]})
    job.batch(replace(execute("s", A), reason="ALTER TABLE a: column c is new"))
    job.batch(uncaptured=frozenset((A,)))

    sent = [note for context in job.log for note in context.notifications]
    assert {note.type for note in sent} >= {"STARTED", "ABORTED"}
    assert [
        (note.type, name) for note in sent for name, _ in note.fields if f"`{name}`" not in documented[note.type]
    ] == []


def test_every_decision_is_listed() -> None:
    listed = {target for page, target in LINKS if page == DECISIONS}

    assert listed, "no link to a decision was found"
    assert listed == {page.name for page in DECISIONS.parent.glob("[0-9]*.md")}


def test_sizing_takes_its_figures_from_what_was_measured() -> None:
    """Only numbers from 1,000 on are checked. A bound in operation.md counts as measured; 5,000 is an example."""
    figure = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
    measured = " ".join(path.read_text() for path in MEASURED)
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
