"""Delta Lake's jars from the Maven repository, for tests that keep a table of it equal to MySQL's."""

from __future__ import annotations

from pathlib import Path

from lab import cache
from lab.maven import dependency, retrieve
from lab.progress import tell

#: The newest there is. It is made for Spark 4.2; of Spark 4.3 there is none yet.
SPARK, VERSION = "4.2", "4.4.0"


def delta_jars() -> list[Path]:
    """:raises ServerUnreachable: they cannot be fetched."""
    return sorted(cache.entry(f"delta-{SPARK}-{VERSION}", _build).glob("*.jar"))


def _build(folder: Path, downloads: Path) -> None:
    tell(f"fetching Delta Lake {VERSION} into {cache.root()} (once; about 10 MB)")
    wanted = dependency("io.delta", f"delta-spark_{SPARK}_2.13", VERSION)
    retrieve("Delta Lake", wanted, f"{folder}/[artifact]-[revision].[ext]", downloads, downloads / "log")
