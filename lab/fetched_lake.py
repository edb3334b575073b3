"""A Spark that Delta Lake has a release for, and that release: for the tests and the demo of tables of a lake.

Delta Lake follows Spark by some months, so this Spark may be older than the one that incsnap is installed with. It is
put before that one in the path of a child program (``environment``); all else is shared.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from incsnap.spark.child_programs import run
from lab import cache
from lab.maven import jar, retrieve
from lab.progress import tell

#: The newest of both that go together.
SPARK, DELTA = "4.2.1", "4.4.0"
_SCALA = "2.13"
_OF_DELTA = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")
_PYTHON, _JARS = "python", "jars"


def environment() -> Mapping[str, str]:
    """The environment of a program that is to have this Spark. :raises ServerUnreachable: it cannot be fetched."""
    path = [str(_installed() / _PYTHON), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    ours = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    return {**ours, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}


def jars() -> str:
    """Delta Lake's, as ``spark.jars`` wants them. :raises ServerUnreachable: they cannot be fetched."""
    return ",".join(sorted(map(str, (_installed() / _JARS).glob("*.jar"))))


def _installed() -> Path:
    return cache.entry(f"spark-{SPARK}-delta-{DELTA}", _build)


def _build(folder: Path, downloads: Path) -> None:
    tell(f"fetching Spark {SPARK} and Delta Lake {DELTA} into {cache.root()} (once; about 450 MB)")
    log = downloads / "log"
    # py4j is that of the other Spark.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--target", str(folder / _PYTHON), f"pyspark=={SPARK}"]

    def report() -> None:
        tell(f"fetching Spark {SPARK}: {cache.bytes_below(folder) / 1e6:.0f} MB so far")

    run("pip", command, log, meanwhile=report)
    # Without what they depend on: that is Spark's own.
    spark = f"delta-spark_{SPARK.rpartition('.')[0]}_{_SCALA}"
    dependencies = "".join(jar("io.delta", name, DELTA) for name in (spark, *_OF_DELTA))
    retrieve("Delta Lake", dependencies, f"{folder}/{_JARS}/[artifact]-[revision].[ext]", downloads, log)
