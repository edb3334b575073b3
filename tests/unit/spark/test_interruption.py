"""Ctrl-C ends every command with a message, even if SIGINT is inherited as ignored (a shell's background job, a
runner)."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lab.child_programs import run
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def inheriting(sigint: str, command: list[str]) -> list[str]:
    """Return `command` so that it inherits SIGINT as `SIG_DFL` or `SIG_IGN`. The test itself may run with either."""
    become = (
        f"import os, signal, sys; signal.signal(signal.SIGINT, signal.{sigint}); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", become, *command]


@pytest.mark.parametrize("sigint", ["SIG_DFL", "SIG_IGN"])
def test_a_command_is_interrupted_whatever_it_inherits(sigint: str, tmp_path: Path) -> None:
    # A FIFO keeps the command busy until it is interrupted: to open it waits for a writer, and to read it waits for
    # data.
    file = tmp_path / "job.properties"
    os.mkfifo(file)
    main = "from incsnap.cli.main import main; main()"
    command = inheriting(sigint, [sys.executable, "-c", main, "status", str(file)])
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as reader:
        try:
            writer: list[int] = []
            wait_until(lambda: _opened(file, writer))
            # Between opening and reading the command runs. A signal then would be handled only after the read.
            wait_until(lambda: _sleeps(reader.pid))
            reader.send_signal(signal.SIGINT)
            output, _ = reader.communicate(timeout=PATIENCE_SECONDS)
        finally:
            reader.kill()
            for descriptor in writer:
                os.close(descriptor)

    assert reader.returncode == 130, output
    assert "Interrupted." in output
    assert "Traceback" not in output


def test_a_child_begins_with_default_signals_whatever_is_inherited(tmp_path: Path) -> None:
    # Python changes some handlers when it starts. A shell shows the child's real ones.
    show = ["sh", "-c", "grep SigIgn /proc/$$/status"]
    program = (
        "import pathlib\nfrom lab.child_programs import run\n"
        f"run('show', {show!r}, pathlib.Path({str(tmp_path / 'log')!r}))\n"
    )

    run("owner", inheriting("SIG_IGN", [sys.executable, "-c", program]), tmp_path / "owner.log")

    name, mask = (tmp_path / "log").read_text().split()
    # Signals 32 and 33 belong to the C library; no program can set them.
    ours = sum(1 << (number - 1) for number in signal.valid_signals())
    assert (name, int(mask, 16) & ours) == ("SigIgn:", 0)


def _sleeps(pid: int) -> bool:
    """Return True if the process sleeps, as proc(5) shows it."""
    return psutil.Process(pid).status() == psutil.STATUS_SLEEPING


def _opened(fifo: Path, writer: list[int]) -> bool:
    """Return True if a process has opened the FIFO for reading. `writer` then has the descriptor of the other end."""
    try:
        writer.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True
