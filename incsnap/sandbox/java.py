"""The Java runtime: ``JAVA_HOME`` or ``java`` in the path. Spark needs it too, so it is never fetched."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from incsnap.errors import ServerUnreachable

_OLDEST = 17
_HINT = f"Install Java {_OLDEST} or newer (Debian: openjdk-17-jre-headless) or set JAVA_HOME to it."


def java() -> str:
    """The path of a java that is new enough for Kafka and Spark. :raises ServerUnreachable: there is none."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin/java") if home else shutil.which("java")
    if path is None:
        raise ServerUnreachable("Kafka needs Java, and there is no java in the path", _HINT)
    try:
        said = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerUnreachable(f"{path} does not run: {error}", _HINT) from error
    # `openjdk version "17.0.15"`; up to Java 8 it was `"1.8.0"`, which reads as 1: too old, as it should.
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < _OLDEST:
        raise ServerUnreachable(f"{path} is too old: {said.splitlines()[0] if said else 'it names no version'}", _HINT)
    return path
