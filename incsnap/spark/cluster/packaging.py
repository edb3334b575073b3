"""An archive of incsnap and all that it needs except Spark, for machines with nothing installed but Python.

    bin/incsnap-python    the program that Spark runs as `python`, see `worker_python`
    lib/                  incsnap, signals, and the packages that they require, as they are installed here

Spark unpacks the archive in each executor's folder (`spark.archives`). PySpark is left out: an executor has the PySpark
of its Spark. The interpreter is left out too, because it is no package. Each machine needs a Python of the same minor
version, because compiled modules depend on it.
"""

from __future__ import annotations

import io
import re
import sys
import tarfile
import time
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from incsnap.spark.worker_python import PROGRAM

ARCHIVE, MAIN = "incsnap.tar.gz", "incsnap_job.py"
_OURS = ("incsnap", "signals")
#: Packages that executors have from their Spark.
_OF_SPARK = frozenset({"pyspark", "py4j"})
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
#: Folders of packages that no program imports: half of the packages' size.
_NOT_NEEDED = frozenset({"tests", "include"})

_SCRIPT = """\
#!/bin/sh
# What Spark runs in place of python. INCSNAP_PYTHON names another interpreter (spark.executorEnv.INCSNAP_PYTHON).
lib=$(cd "$(dirname "$0")/../lib" && pwd) || exit 1
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$lib"
exec "${{INCSNAP_PYTHON:-python{version}}}" -P -c 'from incsnap.spark.worker_python import main; main()' "$@"
"""
_MAIN = """\
# For spark-submit: spark-submit [its options] incsnap_job.py run FILE
from incsnap.cli.main import main

main()
"""


def package(folder: Path) -> tuple[Path, Path]:
    """Write the archive, and the main file for `spark-submit`, into `folder`. Return the paths of both."""
    folder.mkdir(parents=True, exist_ok=True)
    archive, main = folder / ARCHIVE, folder / MAIN
    unfinished = archive.with_suffix(".part")
    # The lowest level: the archive is sent once to each executor, over a network that is faster than better
    # compression.
    with tarfile.open(unfinished, "w:gz", compresslevel=1) as tar:
        script = _SCRIPT.format(version=f"{sys.version_info[0]}.{sys.version_info[1]}").encode()
        entry = tarfile.TarInfo(f"bin/{PROGRAM}")
        entry.mode, entry.size, entry.mtime = 0o755, len(script), int(time.time())
        tar.addfile(entry, io.BytesIO(script))
        for name, path in sorted(_files()):
            tar.add(path, f"lib/{name}", recursive=False)
    unfinished.replace(archive)
    main.write_text(_MAIN)
    return archive, main


def required(name: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """Return `name` with these extras and the installed packages that it needs, at any depth, by normalized name."""
    distributions: dict[str, Distribution] = {}
    met: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        package, package_extras = waiting.pop()
        package = re.sub(r"[-_.]+", "-", package).lower()
        if package in _OF_SPARK or (package, package_extras) in met:
            continue
        met.add((package, package_extras))
        try:
            distributions[package] = distribution(package)
        except PackageNotFoundError:
            continue  # for another system or Python, as the requirement's marker says
        for line in distributions[package].requires or ():
            of_extra = _EXTRA.search(line.partition(";")[2])
            if of_extra and of_extra[1] not in package_extras:
                continue
            if match := _REQUIREMENT.match(line):
                required_extras = frozenset(each.strip() for each in (match[2] or "").split(",") if each.strip())
                waiting.append((match[1], required_extras))
    return distributions


def _files() -> Iterator[tuple[str, Path]]:
    """Yield (path below `lib`, file).

    Our own packages are found by their folders, because they may be installed from where they are edited.
    """
    for name in _OURS:
        spec = find_spec(name)
        assert spec is not None
        for place in spec.submodule_search_locations or ():
            for path in Path(place).rglob("*"):
                if path.is_file():
                    yield f"{name}/{path.relative_to(place)}", path
    for name, package in required("incsnap").items():
        for file in package.files or ():
            inside = not {"..", *_NOT_NEEDED} & set(file.parts)
            if inside and not (name == "incsnap" and file.parts[0] in (*_OURS, "__pycache__")):
                path = Path(str(file.locate()))
                if path.is_file() and not file.name.endswith((".pth", ".a")) and "__editable__" not in file.name:
                    yield str(file), path
