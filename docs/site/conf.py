"""Configuration of the documentation site, which `make docs` builds in build/docs.

The source folder is the project's root, so a link between README, docs and code is the same here and on GitHub. Nothing
is fetched: Furo brings its scripts and uses the reader's fonts, and no page asks another site for names.
"""

from __future__ import annotations

import posixpath
import re
from importlib.metadata import version as installed_version
from typing import Any

import incsnap

project = "incsnap"
version = release = installed_version("incsnap")
html_title = f"incsnap {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/**.md", "benchmarks/results/README.md", "tests/golden/README.md"]
exclude_patterns = [".*", "build", "dist", "docker", "incsnap", "lab", "signals", "tests/[!g]*"]

html_theme = "furo"
html_extra_path = ["index.html"]
html_static_path = html_css_files = ["wide.css"]
html_copy_source = html_show_sourcelink = False
html_show_copyright = False

# Links to headings are GitHub's: `operation.md#the-checkpoint`.
myst_heading_anchors = 4
highlight_language = "text"
# Quotes and hyphens stay as they are written: readers copy them.
smartquotes = False

# Docstrings write code in single backticks.
default_role = "code"
autodoc_class_signature = "separated"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
# Names in signatures that have no page here: those of other projects, and of modules inside incsnap.
nitpick_ignore_regex = [("py:.*", r"(pyspark|pathlib|collections|typing|incsnap\.\w+)\..*")]

# The public names are imported when they are first used. autodoc looks for them in the module's namespace.
for _name in incsnap.__all__:
    setattr(incsnap, _name, getattr(incsnap, _name))

#: The pages whose links are the table of contents.
_LISTS = ("docs/README", "docs/adr/README")
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)\.md[)#]")


def contents(page: str, text: str) -> str:
    """Return hidden toctrees with the pages that `text` links to: one for each heading of level 2."""
    seen = {page, *_LISTS[:1]}
    parts = []
    for section in text.split("\n## "):
        caption, _, body = section.partition("\n")
        targets = [posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in _LINK.findall(body)]
        new = [target for target in dict.fromkeys(targets) if target not in seen]
        seen.update(new)
        if new:
            entries = "\n".join(f"/{target}" for target in new)
            parts.append(f"\n```{{toctree}}\n:hidden:\n:caption: {caption.strip('# ')}\n\n{entries}\n```\n")
    return "".join(parts)


def _add_contents(_app: Any, page: str, text: list[str]) -> None:
    """Append the table of contents to the pages that list the others."""
    if page in _LISTS:
        text[0] += contents(page, text[0])


def _mark_code(_app: Any, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Make an indented paragraph behind a colon a block of code, as reStructuredText writes it."""
    for number in range(len(lines) - 2):
        if lines[number].endswith(":") and not lines[number + 1] and lines[number + 2].startswith("    "):
            lines[number] += ":"


def _skip_fields(_app: Any, what: str, name: str, _object: object, skip: bool, _options: object) -> bool:
    """Leave out pydantic's members, and the fields of `Settings`: other pages describe the settings by their names."""
    return skip or (what == "class" and (name.startswith("model_") or name in incsnap.Settings.__annotations__))


def setup(app: Any) -> None:
    """Connect the functions above to Sphinx's events."""
    app.connect("source-read", _add_contents)
    app.connect("autodoc-process-docstring", _mark_code)
    app.connect("autodoc-skip-member", _skip_fields)
