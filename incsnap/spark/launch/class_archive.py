"""An archive of the classes that Spark loads: the JVM maps the archive instead of reading 16,000 classes from 280 jars.

The archive shortens a start from 9 to 4 s. `incsnap prepare` makes it (class-data sharing) from a list of the classes
that one run has loaded. That takes 20 s of a core and 500 MB of memory, and 180 MB of the user's cache directory. Each
later start uses the archive. The JVM itself checks that Java and the jars are those of the archive, and ignores an
archive that does not fit. A job locks the archive that it uses: if more environments exist than archives are kept, no
archive is removed while a job runs or starts with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from filelock import FileLock

from incsnap.config.user_folders import cache_folder

log = logging.getLogger(__name__)

#: Most seconds to make an archive, and to wait for another program that makes one.
_MAKE_SECONDS = 600.0
#: Archives that are kept, for different versions of Java or Spark: those used last. Archives in use are kept in any
#: case.
_KEPT = 3
_PREFIX = "prepare-"
#: Options of a JVM that uses an archive. The logs are off: an archive that does not fit is no fault, and the JVM would
#: report it on stdout. The archive is mapped at the address that it was made for. At another address, which is Java's
#: default, each pointer is changed first: 133 of its 170 MB are then the process's own.
_USE = (
    "-Xshare:auto -XX:SharedArchiveFile={} -Xlog:cds=off -Xlog:class+path=off"
    " -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
)
_OPTIONS = "spark.driver.defaultJavaOptions"


class ClassArchive:
    """The archive for one Java and one Spark. `spark`: the session's properties. `home`: Spark's folder."""

    def __init__(self, spark: Mapping[str, str], home: str, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "classes"
        self._java = spark_java()
        chosen = f"{spark.get(_OPTIONS)} {spark.get('spark.driver.extraJavaOptions')}"
        # The user's own options for class sharing win: no archive then. Spark splits options at blanks.
        sharing = "-Xshare" in chosen or "SharedArchiveFile" in chosen
        self._is_usable = self._java is not None and not sharing and " " not in str(self._folder)
        self._collector = "-XX:+UseSerialGC" if "-XX:+UseSerialGC" in chosen else "-XX:+IgnoreUnrecognizedVMOptions"
        key = hashlib.sha256(repr([*_facts(self._java, home), spark.get("spark.driver.extraClassPath")]).encode())
        self._file = self._folder / f"{key.hexdigest()[:16]}.jsa"
        self._locked: IO[bytes] | None = None

    def used_in(self, spark: Mapping[str, str]) -> dict[str, str]:
        """Return the session's properties, with the JVM's options to use the archive if there is one."""
        options = _USE.format(self._file) if self.file() else ""
        return {**spark, _OPTIONS: f"{spark.get(_OPTIONS, '')} {options}"}

    def file(self) -> Path | None:
        """Return the archive's file; None if there is no archive, or the user's options exclude one."""
        return self._file if self._is_usable and self._lock_archive() else None

    @contextlib.contextmanager
    def preparing(self) -> Iterator[Path | None]:
        """Yield an empty folder for a list of classes, which goes with the block.

        One program at a time has such a folder; another one waits. Yield None if no archive can be used, or if the
        cache directory cannot be written to.
        """
        with contextlib.ExitStack() as stack:
            work = None
            try:
                if self._is_usable:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    # The kernel releases the lock when the process dies.
                    lock = FileLock(self._folder / "prepare.lock", timeout=_MAKE_SECONDS, fallback_to_soft=False)
                    stack.enter_context(lock)
                    for killed in self._folder.glob(f"{_PREFIX}*"):
                        shutil.rmtree(killed, ignore_errors=True)
                    work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=self._folder)))
            except OSError as error:
                log.warning("The archive of classes cannot be written to %s: %s", self._folder, error)
            yield work

    def make(self, classes: Path, class_path: str) -> None:
        """Make the archive from the list `classes`. `class_path`: of the JVM that wrote the list.

        Log a warning if Java cannot make it.
        """
        new = classes.with_suffix(".jsa")
        command = [
            *(str(self._java), "-Xshare:dump", "-Xmx256m", "-Xlog:disable", self._collector),
            *("--add-modules=jdk.incubator.vector", f"-XX:SharedClassListFile={classes}"),
            *(f"-XX:SharedArchiveFile={new}", "-cp", class_path),
        ]
        silent = subprocess.DEVNULL
        try:
            # A JVM that was killed may have left an incomplete last line.
            listed = classes.read_bytes()
            classes.write_bytes(listed[: listed.rfind(b"\n") + 1])
            subprocess.run(command, stdin=silent, stdout=silent, stderr=silent, timeout=_MAKE_SECONDS, check=True)
            with new.open("rb") as archive:
                os.fsync(archive.fileno())
            new.replace(self._file)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("The archive of classes was not made, which takes 500 MB of memory: %s", error)
        self._forget_old()

    def close(self) -> None:
        """Release the lock of the archive."""
        if self._locked is not None:
            self._locked.close()

    def _lock_archive(self) -> bool:
        """Lock the archive and return True, or return False if it does not exist.

        The lock lasts until `close`, or until this process and all its forks have ended. A JVM that has mapped the
        archive no longer needs the file, but a starting JVM does.
        """
        if self._locked is not None:
            return True
        try:
            archive = self._file.open("rb")
        except OSError:
            return False
        try:
            fcntl.flock(archive, fcntl.LOCK_SH | fcntl.LOCK_NB)
            usable = os.fstat(archive.fileno()).st_nlink > 0
            os.utime(archive.fileno())  # its last use
        except BlockingIOError:
            usable = False  # another environment is removing it
        except OSError:
            usable = True  # a file system without locks, where nothing is removed; or another user's file
        if not usable:
            archive.close()
            return False
        self._locked = archive
        return True

    def _forget_old(self) -> None:
        newest = sorted(self._folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in newest[_KEPT:]:
            with contextlib.suppress(OSError), file.open("rb") as old:
                fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
                file.unlink()


def spark_java() -> str | None:
    """Return the path of the Java that Spark's scripts use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    return os.path.realpath(java) if java and os.path.exists(java) else None


def _facts(java: str | None, spark_home: str) -> Iterator[object]:
    """Yield the facts that an archive depends on: sizes and times of Java and of Spark's jars, and variables.

    The JVM checks the same again, and more.
    """
    jars = Path(spark_home) / "jars"
    # The library of the JVM identifies the build of Java more surely than the program `java` does.
    for file in (Path(java or ""), *sorted(Path(java or "/").parent.parent.glob("lib/server/libjvm.*")), jars):
        with contextlib.suppress(OSError):
            about = file.stat()
            yield str(file), about.st_size, about.st_mtime_ns
    yield from (os.environ.get(name) for name in ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_HOME"))
