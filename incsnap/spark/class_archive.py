"""An archive of the classes that Spark loads, so that the JVM maps them instead of reading 16,000 from 280 jars.

It takes the start from 9 to 4 s. The JVM makes it (class-data sharing), from the list of what one run has loaded:
``incsnap prepare`` does both. Without it the first ``incsnap run`` of an installation writes the list, and a quarter of
a minute later a process of low priority makes the archive, which takes 20 s of a core and 500 MB while it lasts, and
180 MB of the user's cache directory. Whoever starts next uses it. The JVM looks itself whether Java and the jars are
those that the archive was made from, and does without it otherwise. A job that uses one holds a lock on it, so that of
more environments than archives are kept none loses its own while it runs or is about to.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from filelock import FileLock

from incsnap.config.user_folders import cache_folder
from incsnap.spark.child_programs import child
from incsnap.spark.java import spark_java
from incsnap.spark.memory_limit import memory_left

log = logging.getLogger(__name__)

#: Seconds after the session is there: its first batches have loaded what batches load.
_SETTLE_SECONDS = 15.0
#: Seconds for the archive to be made, by a process that others go before.
_MAKE_SECONDS = 600.0
#: A tenth of what a busy process beside it gets. With 19, a seventieth, none was ever ready on two busy cores: each of
#: fifteen jobs, of a minute, gave it up again.
_GIVES_WAY = ("nice", "-n", "10")
#: Archives that are kept, of other versions of Java or Spark: those that were used last, and all that are in use.
_KEPT = 3
#: Bytes that making it takes, and some for the job beside it, which is to be left alone.
_MAKE_BYTES = 600 << 20
#: Where memory is short after all, the kernel ends the making, not the job beside it (choom(1); a process may always
#: make itself the first to go). A first run under a limit of 1.6 GB was killed for the 440 MB of an archive.
_FIRST_TO_GO = ("sh", "-c", '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$@"', "sh")
#: Quiet when it cannot be used: that is no fault, and the JVM would say so on stdout. At the address that it was made
#: for: anywhere else (Java's default) each pointer in it is changed first, which makes 133 of its 170 MB the process's
#: own.
_USE = (
    "-Xshare:auto -XX:SharedArchiveFile={} -Xlog:cds=off -Xlog:class+path=off"
    " -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
)


class ClassArchive:
    """The archive for one Java and one Spark. ``spark``: the session's properties."""

    def __init__(self, spark: Mapping[str, str], home: str, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "classes"
        self._java = spark_java()
        chosen = f"{spark.get('spark.driver.defaultJavaOptions')} {spark.get('spark.driver.extraJavaOptions')}"
        # Not where somebody has said how classes are shared.
        self._usable = self._java is not None and "-Xshare" not in chosen and "SharedArchiveFile" not in chosen
        self._collector = "-XX:+UseSerialGC" if "-XX:+UseSerialGC" in chosen else "-XX:+IgnoreUnrecognizedVMOptions"
        key = hashlib.sha256(repr([*_facts(self._java, home), spark.get("spark.driver.extraClassPath")]).encode())
        self._name = key.hexdigest()[:16]
        self._file = self._folder / f"{self._name}.jsa"
        self._list = self._folder / f"{self._name}.{os.getpid()}.classes"
        #: There when Java could not make it: it is not tried again, at 20 s of a core for each start.
        self._failed = self._folder / f"{self._name}.failed"
        self._closed = threading.Event()
        self._locked: IO[bytes] | None = None
        self._listing = False

    def options(self) -> str:
        """What the JVM is to be started with: to use the archive, or to write down what it loads."""
        if not self._usable or " " in str(self._folder):
            return ""
        if self._failed.exists():
            return ""
        if self._lock_archive():
            return _USE.format(self._file)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        self._listing = True
        return f"-XX:DumpLoadedClassList={self._list}"

    def used_in(self, spark: Mapping[str, str]) -> dict[str, str]:
        """The session's properties with ``options`` behind those that the JVM has."""
        name = "spark.driver.defaultJavaOptions"
        return {**spark, name: f"{spark.get(name, '')} {self.options()}"}

    def is_missing(self) -> bool:
        """To be asked behind ``options``: will the JVM write the list that it can be made of?"""
        return self._listing

    def file(self) -> Path | None:
        """The archive; None where there is none."""
        return self._file if self._lock_archive() else None

    def make_later(self, class_path: str) -> None:
        """Makes it in the background, if it is missing. ``class_path``: of the JVM that wrote the list."""
        if self._list.exists():
            threading.Thread(
                target=self._settle_and_make, args=(class_path,), name="incsnap-classes", daemon=True
            ).start()

    def make_now(self, class_path: str) -> None:
        """Makes it before it returns, or waits for the job that is making it."""
        self._make(class_path, waits=True)

    def close(self) -> None:
        """Gives up what is not ready: a stop waits for nothing."""
        self._closed.set()
        with contextlib.suppress(OSError):  # a cache directory that cannot be one: nothing was written
            self._list.unlink()
        if self._locked is not None:
            self._locked.close()

    def _lock_archive(self) -> bool:
        """Is the archive there? Then it stays until ``close``, or the end of this process and all that it has forked;
        a JVM that has mapped it would not need it any more, one that is starting does."""
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
            usable = True  # a file system without locks, where nothing is removed, or somebody else's file
        if not usable:
            archive.close()
            return False
        self._locked = archive
        return True

    def _settle_and_make(self, class_path: str) -> None:
        if not self._closed.wait(_SETTLE_SECONDS):
            self._make(class_path, waits=False)

    def _make(self, class_path: str, *, waits: bool) -> None:
        try:
            self._sweep_lists()
            # No other job may be making it. The kernel lets go of the lock when the process dies.
            patience = _MAKE_SECONDS if waits else 0.0
            with FileLock(self._folder / f"{self._name}.lock", timeout=patience, fallback_to_soft=False):
                if not self._file.exists() and _there_is_room():
                    self._dump(class_path, () if waits or not shutil.which("nice") else _GIVES_WAY)
        except OSError as error:
            log.debug("The archive of classes was not made: %s", error)
        finally:
            self._list.unlink(missing_ok=True)

    def _dump(self, class_path: str, priority: Sequence[str]) -> None:
        # Left by jobs that were killed; who makes an archive is alone.
        for left in (*self._folder.glob(f"{self._name}.*.new"), *self._folder.glob(f"{self._name}.*.lines")):
            left.unlink(missing_ok=True)
        new, lines = (self._folder / f"{self._name}.{os.getpid()}.{kind}" for kind in ("new", "lines"))
        # The JVM still writes to its list: the last line may be half a line.
        listed = self._list.read_bytes()
        lines.write_bytes(listed[: listed.rfind(b"\n") + 1])
        command = [
            *(_FIRST_TO_GO if sys.platform == "linux" else ()),
            *priority,
            str(self._java),
            "-Xshare:dump",
            "-Xmx256m",
            "-Xlog:disable",
            self._collector,
            "--add-modules=jdk.incubator.vector",
            f"-XX:SharedClassListFile={lines}",
            f"-XX:SharedArchiveFile={new}",
            "-cp",
            class_path,
        ]
        try:
            with child("java -Xshare:dump", command, Path(os.devnull)) as making:
                deadline = time.monotonic() + _MAKE_SECONDS
                while (code := making.exit_code()) is None:
                    if self._closed.wait(0.2) or time.monotonic() > deadline:
                        return
            if code == 0:
                with new.open("rb") as archive:
                    os.fsync(archive.fileno())
                new.replace(self._file)
                self._forget_old()
            else:
                log.info("There is no archive of classes, which would make the start quicker: Java ended with %d", code)
                self._failed.touch()
        finally:
            new.unlink(missing_ok=True)
            lines.unlink(missing_ok=True)

    def _sweep_lists(self) -> None:
        """Takes away the lists of jobs that were killed: 2 MB each."""
        for file in self._folder.glob("*.classes"):
            pid = file.name.split(".")[-2]
            try:
                os.kill(int(pid), 0)
            except ProcessLookupError:
                file.unlink(missing_ok=True)
            except (ValueError, PermissionError):
                pass  # none of ours, or of another user's job

    def _forget_old(self) -> None:
        newest = sorted(self._folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in newest[_KEPT:]:
            with contextlib.suppress(OSError), file.open("rb") as old:
                fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: it is in use
                file.unlink()


def _there_is_room() -> bool:
    left = memory_left()
    if left is None or left >= _MAKE_BYTES:
        return True
    log.info(
        "There is no archive of classes, which would make the start 4 s quicker: to make it takes %d MB, and the limit"
        " of memory leaves %d. It is made by a job that has more",
        _MAKE_BYTES >> 20,
        left >> 20,
    )
    return False


def _facts(java: str | None, spark_home: str) -> Iterator[object]:
    """What another archive must be made for. The JVM checks the same again, and more."""
    jars = Path(spark_home) / "jars"
    # Debian's Java keeps `release` beside `bin`, as all others do; the library is what really makes the difference.
    for file in (Path(java or ""), *sorted(Path(java or "/").parent.parent.glob("lib/server/libjvm.*")), jars):
        with contextlib.suppress(OSError):
            about = file.stat()
            yield str(file), about.st_size, about.st_mtime_ns
    yield from (os.environ.get(name) for name in ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_HOME"))
