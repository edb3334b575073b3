"""The conditions of a measurement: machine, versions and settings."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.benchmark_database import BenchmarkDatabase
from benchmarks.rows import Scale
from lab import debezium, fetched_kafka
from lab.java import java

#: Settings that are secret or of no use to a reader.
_LEFT_OUT = re.compile(r"database\.(hostname|port|user|password|server\.id)|name|table\.include\.list|.*location")


def about(bench: BenchmarkDatabase, scale: Scale, runs: int) -> dict[str, Any]:
    """Return the conditions of a run by their names, in the order of the report."""
    with bench.connection.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        ((mysql,),) = cursor.fetchall()
    return {
        **machine(),
        "MySQL": mysql,
        "Kafka": f"{fetched_kafka.VERSION}, one broker",
        "Debezium": f"{debezium.VERSION}, Kafka Connect standalone",
        "incsnap": f"{version('incsnap')}{_commit()}",
        "Spark": version("pyspark"),
        "Python": platform.python_version(),
        "Java": _java(),
        "runs": runs,
        "rows of the table": f"{scale.rows:,}",
        "warm-up": f"{scale.warm_up_seconds:.0f} s at 50 updates/s and a snapshot of {scale.part(0.1):,} rows",
    }


def machine() -> dict[str, str]:
    """Return today's date and a description of this machine."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB, shared by all of it",
    }


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a side without secrets and addresses."""
    return {name: value for name, value in given.items() if not _LEFT_OUT.fullmatch(name)}


def _processor() -> str:
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return model[1] if model else platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def _java() -> str:
    version = subprocess.run([java(), "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    return version.splitlines()[0]


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        # This is no git checkout, or there is no git.
        return ""
    return f" ({commit.stdout.strip()})"
