"""Spark's JVM, started before a session is asked for: it boots for seconds, in which Python has other work.

PySpark starts a JVM when the first session is made, and waits for it. If `PYSPARK_GATEWAY_PORT` is set, PySpark uses
the JVM at that port instead. `spark-submit` gives a Python program its JVM in this way, and so does this module.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from incsnap.errors import IncsnapError
from incsnap.monitoring.log_format import writes_json
from incsnap.spark.owned_folders import listening, short_folder, sweep
from incsnap.spark.session import GIVEN_JVM, without_secrets

_PREFIX, _SOCKET = "incsnap-jvm-", "owner"
_SECRET = "PYSPARK_GATEWAY_SECRET"
#: Most seconds for the JVM to boot: 1 to 3 on an idle machine.
_BOOT_SECONDS = 120.0
#: The logger of lines that Spark's JVM prints.
_spark = logging.getLogger("spark")


class JvmDidNotStart(IncsnapError):
    """An error: Spark's JVM ended or did not listen in time."""

    hint = "Read the lines above. Spark needs Java 17 or newer (JAVA_HOME), and memory for spark.driver.memory."
    resumable = False


class Gateway:
    """A JVM that boots. It ends when this process does: it reads the pipe that is its standard input."""

    def __init__(self, spark: Mapping[str, str], home: str) -> None:
        """Start the JVM.

        `spark`: the session's properties; some of them (memory, options of the JVM) take effect at its start only.
        `home`: Spark's folder.
        """
        # The JVM of a killed job first writes its address, and then ends, because its pipe has ended. If it cannot
        # write the address it never ends: Py4J's threads go on without the main thread (Spark's PythonGatewayServer).
        # So younger folders stay.
        sweep(_PREFIX, _SOCKET, older_than=_BOOT_SECONDS)
        self._folder = Path(short_folder(_PREFIX))
        #: A socket that marks this folder as in use. It never answers.
        self._owner = listening(self._folder, _SOCKET)
        self._address_file = self._folder / "address"
        command = [os.path.join(home, "bin", "spark-submit")]
        for name, value in without_secrets(spark).items():
            command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        environment = {
            **os.environ,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address_file),
        }
        # A child inherits that Ctrl-C is ignored. Ctrl-C is for the job, which stops in order and needs its JVM for
        # that.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            # A process group of its own: a SIGTERM to the job's group must not end the JVM before the running batch.
            self._jvm = subprocess.Popen(
                command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, process_group=0
            )
        finally:
            signal.signal(signal.SIGINT, before)
        assert self._jvm.stdin is not None
        assert self._jvm.stderr is not None
        self._life, self._log = self._jvm.stdin, self._jvm.stderr
        self._relay = threading.Thread(target=_relay, args=(self._log,), name="incsnap-jvm-log", daemon=True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors that no other process may have: the JVM's pipes, and the socket that marks the
        folder."""
        return self._life.fileno(), self._log.fileno(), self._owner.fileno()

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Wait until the JVM listens. A session that the block makes then uses this JVM. Raise JvmDidNotStart."""
        # Not earlier: the zygote is forked from this process, which must have no threads then.
        self._relay.start()
        deadline = time.monotonic() + _BOOT_SECONDS
        while not self._address_file.exists():
            if self._jvm.poll() is not None:
                self._relay.join(1.0)
                raise JvmDidNotStart(f"Spark's JVM ended with code {self._jvm.returncode}")
            if time.monotonic() > deadline:
                raise JvmDidNotStart(f"Spark's JVM did not start in {_BOOT_SECONDS:g} s")
            time.sleep(0.01)
        # The JVM writes to another name and renames, so the file is complete.
        with self._address_file.open("rb") as address:
            port, length = struct.unpack(">ii", address.read(8))
            secret = address.read(length).decode()
        self._clear()
        os.environ.update({GIVEN_JVM: str(port), _SECRET: secret})
        try:
            yield
        finally:
            # PySpark has read them, or never will.
            del os.environ[GIVEN_JVM], os.environ[_SECRET]

    def close(self) -> None:
        """End the JVM."""
        if self._folder.exists():
            # The JVM may still be booting, and would print a stack trace without the folder for its address. So it is
            # killed.
            self._jvm.kill()
            self._jvm.wait(5.0)
        self._clear()
        self._life.close()
        try:
            self._jvm.wait(5.0)
        except subprocess.TimeoutExpired:
            # The JVM reads the pipe only after it has booted.
            self._jvm.kill()
            self._jvm.wait(5.0)
        if self._relay.is_alive():
            self._relay.join(1.0)
        if not self._relay.is_alive():
            self._log.close()

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()


def _relay(stream: IO[bytes]) -> None:
    """Write what the JVM prints to stderr, until it ends. With `incsnap.log.format=json` each line becomes JSON."""
    for raw in stream:
        text = raw.decode(errors="replace").rstrip("\n")
        # Spark's launcher asks for these modules, and the JVM warns of them at each start.
        if text.startswith("WARNING: Using incubator modules"):
            continue
        if writes_json() and not text.startswith("{"):
            _spark.warning("%s", text)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
