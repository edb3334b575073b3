"""Child programs end with their block, and with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from incsnap.errors import ServerUnreachable
from lab.child_programs import child, run
from lab.running_job import is_alive
from tests.support.waiting import wait_until

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_child_ends_with_the_block(tmp_path: Path) -> None:
    with child("sleeper", SLEEP, tmp_path / "log") as sleeper:
        assert is_alive(sleeper.pid)

    assert not is_alive(sleeper.pid)


def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    opened = child("sleeper", SLEEP, tmp_path / "log")
    started = []
    thread = threading.Thread(target=lambda: started.append(opened.__enter__()))
    thread.start()
    thread.join()
    try:
        with pytest.raises(TimeoutError):
            wait_until(lambda: started[0].exit_code() is not None, seconds=0.5)
    finally:
        opened.__exit__(None, None, None)


def test_a_child_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import time, pathlib\nfrom lab.child_programs import child\n"
        f"with child('sleeper', {SLEEP!r}, pathlib.Path({str(tmp_path / 'log')!r})) as sleeper:\n"
        "    print(sleeper.pid, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_alive(pid))


def test_a_command_that_fails_says_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no disk'); raise SystemExit(3)"]

    with pytest.raises(ServerUnreachable, match="ended with code 3:\nno disk"):
        run("fetching", command, tmp_path / "log")


def test_children_can_be_started_after_a_fork(tmp_path: Path) -> None:
    run("first", [sys.executable, "-c", ""], tmp_path / "log")  # From here on the starter's thread runs.
    program = (
        "import os, pathlib, sys\nfrom lab.child_programs import run\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        "run('before', [sys.executable, '-c', ''], log)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    run('after', [sys.executable, '-c', ''], log)\n    os._exit(0)\n"
        "sys.exit(os.waitpid(pid, 0)[1])\n"
    )

    assert subprocess.run([sys.executable, "-c", program], env=os.environ, timeout=60, check=False).returncode == 0
