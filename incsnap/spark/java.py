"""Which Java it is."""

from __future__ import annotations

import os
import shutil


def spark_java() -> str | None:
    """The path of the one that Spark's scripts take; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return os.path.realpath(found) if found and os.path.exists(found) else None
