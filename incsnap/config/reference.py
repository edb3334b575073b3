"""The pages that are made from the declarations of settings: `python -m incsnap.config.reference` writes them to docs.

The sample is a file of all settings with their defaults. The reference has a table for each group. The page for users
of Debezium has a table of the settings that are not obeyed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from incsnap.config.clients import JAVA_ONLY
from incsnap.config.declarations import GROUPS, capture
from incsnap.config.declarations.setting import Setting
from incsnap.config.older_names import LISTS
from incsnap.config.unsupported import CHANGE_RECORDS
from incsnap.config.without_effect import REASONS, SOMETIMES

_SAMPLE = """\
# All settings of incsnap, made from their declarations by `python -m incsnap.config.reference`.
# Decide the settings of the first part for each job. The others show their defaults, so each of their lines may go.
# A line that begins with #name= is an example: the setting has no default, or one that depends on others.
# A value may be ${env:NAME}, ${file:PATH:KEY} or ${directory:PATH:KEY}.
# docs/operation.md explains the settings. `incsnap config FILE` shows what a file means.
"""
#: The marks around the table of `not_obeyed` in docs/migrate-from-debezium.md.
_BEGIN, _END = "<!-- made by incsnap.config.reference -->", "<!-- end -->"
_REFERENCE = """\
# Settings

For users and operators: each setting, its values and its default. `python -m incsnap.config.reference` makes this page.

[Operation](operation.md#settings) explains more, as do the links of names. [sample.properties](sample.properties) is a
file of all settings. `incsnap config FILE` shows what a file means. Settings that begin with `incsnap.` or `spark.` are
ours, and so is `checkpoint.location`. The others are Debezium's or Kafka Connect's.

Regexes are Java's, and must match the whole name. Those of databases, tables and columns match in any letter case. In
a properties file `\\\\.` is the regex `\\.`, and `\\\\,` is a comma inside a regex. Times are in milliseconds.
"""


def sample() -> str:
    """Return the text of docs/sample.properties."""
    parts = [_SAMPLE]
    for title, settings in GROUPS.items():
        parts.append(f"\n# ---- {title}\n\n")
        for setting in settings:
            parts += [f"# {line}\n" for line in textwrap.wrap(_comment(setting), 118)]
            parts += [f"{line}\n" for line in _lines(setting, "" if settings is capture.DECIDED else "#")]
    return "".join(parts)


def reference() -> str:
    """Return the text of docs/settings.md."""
    parts = [_REFERENCE]
    for title, settings in GROUPS.items():
        parts += [f"\n## {title}\n\n", "| name | default | values | meaning | since |\n", "|---|---|---|---|---|\n"]
        parts += [f"| {' | '.join(_cells(setting))} |\n" for setting in settings]
    return "".join(parts)


def not_obeyed() -> str:
    """Return the table of settings of Debezium and Kafka Connect that incsnap does not obey."""
    refused = {
        name: f"refused{f', unless it is `{value}`' if value else ''}: {missed.format(value='its value')}"
        for name, (missed, value) in CHANGE_RECORDS.items()
    }
    refused |= {old: f"refused. Write `{new}`, or let `incsnap config --fix` do it" for old, new in LISTS.items()}
    # Other brokers are refused.
    of_java = [f"producer.override.{name}" for name in JAVA_ONLY if name != "bootstrap.servers"]
    rows = {name: f"no effect. {reason}" for name, reason in REASONS.items()} | {
        name: f"{text}." for name, text in refused.items()
    }
    rows |= {**SOMETIMES, **dict.fromkeys(of_java, "no effect. It is a setting of the Java client.")}
    lines = [f"| `{name}` | {text} |\n" for name, text in sorted(rows.items())]
    return "".join(["| setting | what incsnap does |\n", "|---|---|\n", *lines])


def with_table(page: str) -> str:
    """Return the text of docs/migrate-from-debezium.md with the table between its marks replaced.

    Raise ValueError if the page lacks the marks.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page lacks {_BEGIN} or {_END}")
    return f"{before}{begin}\n\n{not_obeyed()}\n{end}{after}"


def _comment(setting: Setting) -> str:
    """Return the meaning of a setting, and its values if they are words to choose from."""
    allowed = setting.kind.allowed
    values = f" {allowed.capitalize()}." if allowed.startswith(("one of: ", "a list of: ")) else ""
    return setting.meaning.replace("`", "") + values


def _lines(setting: Setting, mark: str) -> Iterator[str]:
    """Yield the lines of the sample for a setting. `mark` is put before each line of an example."""
    if not setting.example:
        yield f"{setting.name}={setting.default}"
        return
    first, *others = setting.example.split("\n")
    yield f"{mark}{first}" if setting.name.endswith("*") else f"{mark}{setting.name}={first}"
    yield from (f"{mark}{line}" for line in others)


def _cells(setting: Setting) -> tuple[str, ...]:
    """Return the cells of a setting's row in the reference."""
    default = "needed" if setting.is_needed else f"`{setting.default}`" if setting.default else setting.unset or "none"
    page = setting.see if setting.see.endswith(".md") else f"operation.md#{setting.see}"
    name = f"[`{setting.name}`]({page})" if setting.see else f"`{setting.name}`"
    return name, default, setting.kind.allowed, setting.meaning, setting.since


if __name__ == "__main__":
    docs = Path(__file__).parents[2] / "docs"
    for name, text in (("sample.properties", sample()), ("settings.md", reference())):
        (docs / name).write_text(text)
    migrate = docs / "migrate-from-debezium.md"
    migrate.write_text(with_table(migrate.read_text()))
