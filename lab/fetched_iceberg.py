"""Apache Iceberg's jar from the Maven repository, for tests that keep a table of a lake equal to MySQL's.

Delta Lake has a release for Spark 4.2 at most (4.4.0), which does not run on Spark 4.3: a constructor of Spark's own
that it calls has changed. Iceberg goes by Spark's interfaces for data sources.
"""

from __future__ import annotations

from pathlib import Path

from lab import cache
from lab.maven import dependency, retrieve
from lab.progress import tell

#: The newest there is, for Spark 4.1; it runs on 4.3.
SPARK, VERSION = "4.1", "1.12.0"
_NAME = f"iceberg-spark-runtime-{SPARK}_2.13"


def iceberg_jar() -> Path:
    """:raises ServerUnreachable: it cannot be fetched."""
    return cache.entry(f"iceberg-{SPARK}-{VERSION}", _build) / f"{_NAME}-{VERSION}.jar"


def _build(folder: Path, downloads: Path) -> None:
    tell(f"fetching Apache Iceberg {VERSION} into {cache.root()} (once; about 50 MB)")
    wanted = dependency("org.apache.iceberg", _NAME, VERSION)
    retrieve("Apache Iceberg", wanted, f"{folder}/[artifact]-[revision].[ext]", downloads, downloads / "log")
