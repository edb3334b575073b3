"""Spark's JVM, started before a session is asked for: it boots for seconds, in which Python has other work.

PySpark starts one when the first session is made, and waits. Where ``PYSPARK_GATEWAY_PORT`` is set it takes the one
that is there: this is how ``spark-submit`` gives a Python program its JVM, and how it is done here.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from incsnap.config.secrets import is_secret
from incsnap.errors import IncsnapError
from incsnap.spark.owned_folders import listening, sweep

#: Where a program finds the JVM that it was given: it is one of ``spark-submit``, then, and starts none of its own.
GIVEN = "PYSPARK_GATEWAY_PORT"
_PREFIX, _SOCKET = "incsnap-jvm-", "owner"
_SECRET = "PYSPARK_GATEWAY_SECRET"
#: Seconds for the JVM to boot: 1 to 3 on an idle machine.
_BOOT_SECONDS = 120.0


class JvmDidNotStart(IncsnapError):
    hint = "Look at the lines above: is there a Java 17 or newer (JAVA_HOME), and memory for spark.driver.memory?"
    resumable = False


class Gateway:
    """A JVM that boots. It ends by itself when this process does: it reads the pipe that is its standard input."""

    def __init__(self, spark: Mapping[str, str], home: str) -> None:
        """``spark``: the session's properties, some of which (memory, options of the JVM) only hold from its start.
        ``home``: the folder of Spark."""
        # The JVM of a job that was killed first writes its address, and then ends, as its pipe has. One that could not
        # write it would never end: threads of Py4J go on without the main one (Spark's PythonGatewayServer).
        sweep(_PREFIX, _SOCKET, older_than=_BOOT_SECONDS)
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        #: Nobody is answered; it is there as long as we are, so that the folder is not taken for a killed job's.
        self._owner = listening(self._folder, _SOCKET)
        self._address_file = self._folder / "address"
        command = [os.path.join(home, "bin", "spark-submit")]
        for name, value in spark.items():
            # Everybody on the machine can read a command line. The session is told these later, and needs them later.
            if not is_secret(name):
                command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {
            **os.environ,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address_file),
        }
        # What ignores Ctrl-C hands that on: it is for the job, which stops in order and needs its JVM for that.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._jvm = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
        finally:
            signal.signal(signal.SIGINT, before)
        assert self._jvm.stdin is not None
        self._life = self._jvm.stdin

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The end of the pipe that keeps the JVM alive, and what says that we live. No other process may have them."""
        return (self._life.fileno(), *((self._owner.fileno(),) if self._owner else ()))

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Waits until the JVM listens, and lets the session find it that PySpark makes in the block. Raises
        ``JvmDidNotStart``."""
        self._offer()
        try:
            yield
        finally:
            self._withdraw()

    def _offer(self) -> None:
        deadline = time.monotonic() + _BOOT_SECONDS
        while not self._address_file.exists():
            if self._jvm.poll() is not None:
                raise JvmDidNotStart(f"Spark's JVM ended with code {self._jvm.returncode}")
            if time.monotonic() > deadline:
                raise JvmDidNotStart(f"Spark's JVM did not start in {_BOOT_SECONDS:g} s")
            time.sleep(0.01)
        # The JVM writes to another name and renames: what is there is whole.
        with self._address_file.open("rb") as address:
            port, length = struct.unpack(">ii", address.read(8))
            os.environ[GIVEN] = str(port)
            os.environ[_SECRET] = address.read(length).decode()
        self._clear()

    def _withdraw(self) -> None:
        """PySpark has it, or never will: the secret need not stand in the environment."""
        for name in (GIVEN, _SECRET):
            os.environ.pop(name, None)

    def close(self) -> None:
        """Ends the JVM."""
        self._withdraw()
        self._clear()
        self._life.close()
        try:
            self._jvm.wait(5.0)
        except subprocess.TimeoutExpired:
            # It does not read the pipe before it has booted.
            self._jvm.kill()
            self._jvm.wait(5.0)

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._owner is not None:
            self._owner.close()
            self._owner = None
