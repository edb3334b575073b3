"""MySQL's own test files, fetched from Debian's package `mysql-testsuite` into the user's cache.

They are never committed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from incsnap.errors import ServerUnreachable
from lab import cache, debian_mirror
from lab.child_programs import run
from lab.private_apt import private_apt
from lab.progress import tell

#: The package's version in Debian sid, and the checksum of its file. The server that the lab fetches has this version.
VERSION = "9.7.4-2"
_SHA256 = "6dac6445cbad5adb07f783dcf0dd26c469df0483a0d6ed7c47138d60e2dce546"
#: Folders of the package that the lane reads: 80 of 758 MB.
_READ = ("t", "include", "suite/parts", "suite/gcol", "suite/innodb")


def mysql_test_files() -> Path:
    """Return the folder of MySQL's test files. Fetch them first if the cache lacks them."""
    return cache.entry(f"mysql-files-{VERSION}", _build) / "usr/lib/mysql-test"


def _build(folder: Path, downloads: Path) -> None:
    source = debian_mirror.mirror()
    if source is None:
        raise ServerUnreachable(
            "MySQL's test files can be fetched on Debian only: apt's sources name no Debian archive",
            "Run the lane in a container of Debian.",
        )
    tell(f"fetching MySQL's test files from {source.uri} sid into {cache.root()} (once; about 340 MB)")
    log = downloads / "log"
    log.unlink(missing_ok=True)
    apt = private_apt(source, downloads)
    run("apt-get update", [*apt, "update"], log)
    # `apt-get download` writes into the folder that it runs in.
    fetch = [*apt, "download", f"mysql-testsuite={VERSION}"]
    run("apt-get download", ["env", f"--chdir={downloads}", *fetch], log)
    (package,) = downloads.glob("mysql-testsuite_*.deb")
    if (checksum := _sha256(package)) != _SHA256:
        package.unlink()
        raise ServerUnreachable(
            f"{package.name} has the checksum {checksum}, and not {_SHA256}",
            f"Set the version and the checksum in {__name__} to those of the package in Debian sid.",
        )
    tell("unpacking MySQL's test files")
    unpacked = downloads / "unpacked"
    run("dpkg-deb", ["dpkg-deb", "-x", str(package), str(unpacked)], log)
    for name in _READ:
        place = folder / "usr/lib/mysql-test" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        (unpacked / "usr/lib/mysql-test" / name).rename(place)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
