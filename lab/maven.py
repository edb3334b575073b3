"""Jars and archives from the Maven repository, fetched by the Ivy inside pyspark.

Nothing has to be installed for it.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from xml.sax.saxutils import quoteattr

from incsnap.errors import ServerUnreachable
from lab import cache
from lab.child_programs import run
from lab.java import java
from lab.progress import tell

_ATTEMPTS = 3
_CONNECT_SECONDS = 20
#: Longest time without a byte. By default Ivy waits forever.
_READ_SECONDS = 60


def dependency(group: str, name: str, version: str) -> str:
    """Return Ivy's XML for an artifact with all its dependencies."""
    return f'<dependency org="{group}" name="{name}" rev="{version}" conf="default"/>'


def jar(group: str, name: str, version: str) -> str:
    """Return Ivy's XML for one jar without its dependencies."""
    return f'<dependency org="{group}" name="{name}" rev="{version}" conf="default" transitive="false"/>'


def archive(group: str, name: str, version: str, classifier: str) -> str:
    """Return Ivy's XML for one tar.gz without dependencies."""
    return (
        f'<dependency org="{group}" name="{name}" rev="{version}" conf="default" transitive="false">'
        f'<artifact name="{name}" type="tar.gz" ext="tar.gz" m:classifier="{classifier}"/></dependency>'
    )


def retrieve(
    product: str, dependencies: str, pattern: str, downloads: Path, log: Path, *, use_poms: bool = True
) -> None:
    """Fetch `dependencies` (XML of the functions above) to the paths that `pattern` gives.

    A pattern is, for example, `/libs/[artifact]-[revision].[ext]`. `product` is the name in progress lines. Without
    `use_poms` jars are fetched whose POM has a parent that the repository lacks. Raise ServerUnreachable if three
    attempts fail.
    """
    for attempt in range(_ATTEMPTS):
        try:
            _retrieve(product, dependencies, pattern, downloads, log, use_poms)
            return
        except ServerUnreachable:
            # Ivy keeps what it has, so the next attempt continues there.
            if attempt == _ATTEMPTS - 1:
                raise
            tell(f"fetching {product} failed, trying again")


def _retrieve(product: str, dependencies: str, pattern: str, downloads: Path, log: Path, use_poms: bool) -> None:
    settings, module = downloads / "ivysettings.xml", downloads / "ivy.xml"
    # pyspark reads this variable too: it replaces Maven Central.
    repository = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    root = f" root={quoteattr(repository)}" if repository else ""
    settings.write_text(
        '<ivysettings><settings defaultResolver="maven"/><timeout-constraints><timeout-constraint name="bounded"'
        f' connectionTimeout="{_CONNECT_SECONDS * 1000}" readTimeout="{_READ_SECONDS * 1000}"/></timeout-constraints>'
        f'<resolvers><ibiblio name="maven" m2compatible="true" usepoms="{str(use_poms).lower()}"'
        f' timeoutConstraint="bounded"{root}/></resolvers>'
        "</ivysettings>"
    )
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="incsnap" module="lab"/><dependencies>{dependencies}</dependencies></ivy-module>'
    )
    command = [java(), "-jar", str(_ivy(product)), "-settings", str(settings), "-ivy", str(module)]
    command += ["-cache", str(downloads / "ivy"), "-retrieve", pattern]

    def report() -> None:
        tell(f"fetching {product}: {cache.bytes_below(downloads / 'ivy') / 1e6:.0f} MB so far")

    run("Ivy", command, log, meanwhile=report)


def _ivy(product: str) -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    places = (pyspark and pyspark.submodule_search_locations) or []
    jars = [jar for place in places for jar in Path(place).glob("jars/ivy-*.jar")]
    if not jars:
        raise ServerUnreachable(
            f"{product} is fetched by the Ivy inside pyspark, which is not there",
            "Name servers of your own (INCSNAP_KAFKA=host:port, INCSNAP_REGISTRY=url), install Docker, or install"
            " pyspark as a package.",
        )
    return jars[0]
