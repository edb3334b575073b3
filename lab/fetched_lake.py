"""Lake formats (Delta Lake, Iceberg), each with a Spark version that it has a release for. For tests and the demo.

The formats support a new Spark some months late. So their Spark may be older than the installed one. A child program
finds it before the installed one by its path (`Lake.environment`). All other packages are shared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import cache
from lab.child_programs import run
from lab.maven import jar, retrieve
from lab.progress import tell

_PYTHON, _JARS = "python", "jars"


@dataclass(frozen=True)
class Lake:
    """A lake format, its release, and the Spark that it is used with."""

    title: str  #: name for messages
    format: str  #: Spark's name of the format
    version: str  #: the format's release
    spark: str  #: the newest Spark that `version` supports
    group: str  #: Maven's group of `artifacts`
    artifacts: tuple[str, ...]  #: jars, without versions
    megabytes: int  #: size of the download, for a progress line
    table: str  #: name of the demo's table in a session with `settings`
    place: str  #: the table's folder, below the warehouse
    settings: Mapping[str, str]  #: settings of a Spark session that knows `table`

    def environment(self) -> Mapping[str, str]:
        """Return the environment of a program that uses this Spark.

        Raise ServerUnreachable if Spark cannot be fetched.
        """
        path = [str(self._installed() / _PYTHON), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        ours = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        return {**ours, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}

    def session(self, warehouse: str) -> Mapping[str, str]:
        """Return the settings of a session with this format. Raise ServerUnreachable if its jars cannot be fetched."""
        jars = ",".join(sorted(map(str, (self._installed() / _JARS).glob("*.jar"))))
        return {"spark.jars": jars, "spark.sql.warehouse.dir": warehouse} | {
            name: value.format(warehouse=warehouse) for name, value in self.settings.items()
        }

    def _installed(self) -> Path:
        return cache.entry(f"spark-{self.spark}-{self.format}-{self.version}", self._build)

    def _build(self, folder: Path, downloads: Path) -> None:
        tell(
            f"fetching Spark {self.spark} and {self.title} {self.version} into {cache.root()}"
            f" (once; about {self.megabytes} MB)"
        )
        log = downloads / "log"
        # --no-deps: the installed py4j is used.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--target", str(folder / _PYTHON), f"pyspark=={self.spark}"]

        def report() -> None:
            tell(f"fetching Spark {self.spark}: {cache.bytes_below(folder) / 1e6:.0f} MB so far")

        run("pip", command, log, meanwhile=report)
        # Without their dependencies, which Spark brings.
        dependencies = "".join(jar(self.group, name, self.version) for name in self.artifacts)
        retrieve(self.title, dependencies, f"{folder}/{_JARS}/[artifact]-[revision].[ext]", downloads, log)


DELTA = Lake(
    title="Delta Lake",
    format="delta",
    version="4.4.0",
    spark="4.2.1",
    group="io.delta",
    artifacts=(
        "delta-spark_4.2_2.13",
        "delta-storage",
        "delta-kernel-api",
        "delta-kernel-defaults",
        "delta-kernel-unitycatalog",
    ),
    megabytes=450,
    table="orders",
    place="orders",
    settings={
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    },
)
ICEBERG = Lake(
    title="Iceberg",
    format="iceberg",
    version="1.12.0",
    spark="4.1.4",
    group="org.apache.iceberg",
    artifacts=("iceberg-spark-runtime-4.1_2.13",),
    megabytes=500,
    table="lake.shop.orders",
    place="shop/orders",
    settings={
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "{warehouse}",
    },
)
LAKES = {lake.format: lake for lake in (DELTA, ICEBERG)}
