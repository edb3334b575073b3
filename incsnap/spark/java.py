"""Finds the Java that Spark's scripts start."""

from __future__ import annotations

import os
import shutil


def spark_java() -> str | None:
    """The path of the one that Spark's scripts take; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return os.path.realpath(java) if java and os.path.exists(java) else None
