"""The row of `incsnap verify`: the command as its user runs it, on a table that a snapshot has just sent."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from benchmarks.processes import memory_bytes
from benchmarks.rows import Figures
from incsnap.config.load import read
from incsnap.errors import IncsnapError
from incsnap.kafka.client_settings import ClientSettings
from incsnap.kafka.topic_ends import topic_ends
from incsnap.verify.topic_side import messages_of, parts_between
from lab.running_job import session_pids

_LOOK_SECONDS = 0.1
_MOST_SECONDS = 3_600


class VerifyFailed(IncsnapError):
    """The error of a comparison that did not find equal sides."""

    hint = "Look at the output of the command above."


class SessionUse:
    """A thread that looks at all processes of the session of `leader`, until `end`.

    The processes end with the command, so each counts with the processor time that it had at the last look.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._seconds: dict[int, float] = {}
        self._bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="use", daemon=True)
        self._thread.start()

    def end(self) -> tuple[float, int]:
        """Return the processor seconds of all processes, and the most memory that they had together, in bytes."""
        self._ended.set()
        self._thread.join()
        return sum(self._seconds.values()), self._bytes

    def _look(self) -> None:
        number = 0
        while not self._ended.wait(_LOOK_SECONDS):
            pids = session_pids(self._leader)
            for pid in pids:
                with contextlib.suppress(psutil.Error):
                    used = psutil.Process(pid).cpu_times()
                    self._seconds[pid] = used.user + used.system
            if number % 10 == 0:
                self._bytes = max(self._bytes, memory_bytes(pids))
            number += 1


def verify_run(properties: Path, table: str, topic: str, rows: int, empty: str) -> Figures:
    """Compare the table with its topic, and return the figures. Raise VerifyFailed if the two are not equal.

    `empty`: a table without rows, whose comparison shows what the command's start takes.
    """
    seconds, processor, memory = _verify(properties, table)
    _, start, _ = _verify(properties, empty)
    return {
        "verify": rows / seconds,
        "verify.processor": (processor - start) * 1e6 / rows,
        "verify.reading": _reading_seconds(properties, topic) * 1e6 / rows,
        "verify.start": start,
        "verify.memory": memory / 1e6,
    }


def _verify(properties: Path, table: str) -> tuple[float, float, int]:
    """Run the command. Return its seconds, the processor seconds of all its processes, and their memory in bytes."""
    command = [sys.executable, "-m", "incsnap", "verify", str(properties), "--table", table, "--json"]
    began = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        use = SessionUse(process.pid)
        output = process.communicate(timeout=_MOST_SECONDS)[0]
    seconds = time.monotonic() - began
    processor, memory = use.end()
    if process.returncode != 0:
        raise VerifyFailed(f"verify ended with code {process.returncode}: {output[-2000:]}")
    return seconds, processor, memory


def _reading_seconds(properties: Path, topic: str) -> float:
    """Return the processor seconds that reading the topic takes, without a look at its records."""
    settings = read(str(properties), None).settings
    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)
    ends, begins = topic_ends(client, {topic: 1}), topic_ends(client, {topic: 1}, first=True)
    began = time.process_time()
    for _, messages in messages_of(client, parts_between(begins, ends)):
        for message in messages:
            message.key()
            message.value()
    return time.process_time() - began
