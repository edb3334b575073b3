"""The Debian mirror that this machine uses, read from apt's sources in both formats: deb822 and one-line.

sources.list(5) describes both formats. No mirror is hard-coded, so a company's mirror is used if one is set up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True, slots=True)
class MirrorEntry:
    """A Debian archive of apt's sources."""

    uri: str  #: base address, such as `http://deb.debian.org/debian`
    suites: tuple[str, ...]  #: such as `trixie`, `trixie-updates`
    components: tuple[str, ...]  #: such as `main`
    signed_by: str = ""  #: path of the keyring that checks the archive's signature; "": apt's default


def mirror(etc_apt: Path = Path("/etc/apt"), keyring: Path = KEYRING) -> MirrorEntry | None:
    """Return the first source that is a Debian archive other than the security archive.

    Return None if there is none.
    """
    for source in _sources(etc_apt):
        if _is_debian(source):
            # If the entry has an embedded key block or no key, use the distribution's own keyring: it has the keys of
            # all suites.
            known = str(keyring) if keyring.exists() else ""
            return replace(source, signed_by=source.signed_by if source.signed_by.startswith("/") else known)
    return None


def _is_debian(source: MirrorEntry) -> bool:
    path = source.uri.rstrip("/")
    return (
        "main" in source.components
        and re.search(r"(^|[/:])debian(\.list)?$", path) is not None
        and not any(suite.endswith("-security") or "/updates" in suite for suite in source.suites)
    )


def _sources(etc_apt: Path) -> Iterator[MirrorEntry]:
    parts = etc_apt / "sources.list.d"
    for file in [etc_apt / "sources.list", *sorted(parts.glob("*.list"))]:
        if file.is_file():
            yield from _one_line(file.read_text(errors="replace"))
    for file in sorted(parts.glob("*.sources")):
        yield from _deb822(file.read_text(errors="replace"))


def _one_line(text: str) -> Iterator[MirrorEntry]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s*)?(\S+)\s+(\S+)\s*([^#]*)", line)
        if match:
            options = dict(option.partition("=")[::2] for option in (match[1] or "").split())
            yield MirrorEntry(match[2], (match[3],), tuple(match[4].split()), options.get("signed-by", ""))


def _deb822(text: str) -> Iterator[MirrorEntry]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        # A line that begins with a blank continues the field above it.
        joined = re.sub(r"\n[ \t]+", " ", stanza.strip())
        pairs = (line.partition(":") for line in joined.split("\n"))
        fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if "deb" in fields.get("types", "").split() and fields.get("enabled", "yes").lower() not in ("no", "false"):
            for uri in fields.get("uris", "").split():
                suites, components = fields.get("suites", "").split(), fields.get("components", "").split()
                yield MirrorEntry(uri, tuple(suites), tuple(components), fields.get("signed-by", ""))
