"""Formats of a lake, and for each a Spark that it has a release for: for the tests and the demo of tables of a lake.

They follow Spark by some months, so such a Spark may be older than the one that incsnap is installed with. It is put
before that one in the path of a child program (``environment``); all else is shared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from incsnap.spark.child_programs import run
from lab import cache
from lab.maven import jar, retrieve
from lab.progress import tell

_PYTHON, _JARS = "python", "jars"


@dataclass(frozen=True)
class Lake:
    """``format``: Spark's name of it. ``spark``: the newest that ``version`` is made for. ``settings``: of a session
    that knows ``table``, which then lies at ``place`` in the warehouse."""

    title: str
    format: str
    version: str
    spark: str
    group: str
    artifacts: tuple[str, ...]
    megabytes: int
    table: str
    place: str
    settings: Mapping[str, str]

    def environment(self) -> Mapping[str, str]:
        """The environment of a program that is to have this Spark. :raises ServerUnreachable: it cannot be fetched."""
        path = [str(self._installed() / _PYTHON), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        ours = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        return {**ours, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}

    def session(self, warehouse: str) -> Mapping[str, str]:
        """Settings of a session with this format. :raises ServerUnreachable: its jars cannot be fetched."""
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
        # py4j is that of the other Spark.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--target", str(folder / _PYTHON), f"pyspark=={self.spark}"]

        def report() -> None:
            tell(f"fetching Spark {self.spark}: {cache.bytes_below(folder) / 1e6:.0f} MB so far")

        run("pip", command, log, meanwhile=report)
        # Without what they depend on: that is Spark's own.
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
