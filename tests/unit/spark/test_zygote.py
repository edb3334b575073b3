"""The process from which all of Spark's Python processes are forked, and the launcher that Spark runs as its Python."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from incsnap.spark.launch.zygote import Zygote
from incsnap.spark.owned_folders import listening, sweep
from tests.support.waiting import PATIENCE_SECONDS, wait_until

#: A small job in a process of its own: a zygote that is forked from this process would inherit its threads.
_JOB = """
import signal, sys
from incsnap.spark.launch.zygote import Zygote
signal.signal(signal.SIGTERM, lambda *_: None)
zygote = Zygote()
zygote.start()
print(zygote.python, zygote.pid, flush=True)
sys.stdin.read()
zygote.close()
"""
#: A module of PySpark that prints Spark's folder, which it takes from the environment.
_ASK = ["-m", "pyspark.find_spark_home"]


@dataclass
class Job:
    process: subprocess.Popen[str]
    python: str
    zygote: int


@contextlib.contextmanager
def job() -> Iterator[Job]:
    with subprocess.Popen(
        [sys.executable, "-c", _JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        python, pid = process.stdout.readline().split()
        yield Job(process, python, int(pid))
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def running() -> Iterator[Job]:
    with job() as running_job:
        yield running_job


def run(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments], capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )


def test_a_module_of_pyspark_runs_with_the_given_environment_and_streams(running: Job) -> None:
    ended = run(running.python, *_ASK, SPARK_HOME="/somewhere/else")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "/somewhere/else\n", "")


def test_one_process_leaves_nothing_behind_for_the_next(running: Job) -> None:
    homes = [run(running.python, *_ASK, SPARK_HOME=f"/home{number}").stdout for number in range(3)]
    assert homes == ["/home0\n", "/home1\n", "/home2\n"]


def test_a_failure_has_its_exit_code_and_its_message(running: Job) -> None:
    ended = run(running.python, "-m", "pyspark.is_no_module")
    assert ended.returncode == 1
    assert "pyspark.is_no_module" in ended.stderr


def test_anything_else_is_run_by_a_python_of_its_own(running: Job) -> None:
    ended = run(running.python, "-c", "import os, sys; print(os.getpid() != 1); sys.exit(7)")
    assert (ended.returncode, ended.stdout) == (7, "True\n")


def test_the_end_of_a_child_is_not_told_to_a_server_that_has_ended() -> None:
    program = """
import os, signal, socket
from incsnap.spark.launch.zygote import _ForkServer
life, end = os.pipe()
os.close(end)
_ForkServer(socket.create_server(("127.0.0.1", 0)), life).serve()
os.kill(os.getpid(), signal.SIGCHLD)
"""
    ended = run(sys.executable, "-c", program)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_owner_that_answers_nobody_keeps_its_folder_also_when_its_queue_is_full(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(socket_folder))
    folder = socket_folder / "incsnap-x"
    folder.mkdir()
    owner = listening(folder, "owner")
    assert owner is not None
    with owner:
        for _ in range(100):
            sweep("incsnap-x", "owner")
        assert folder.exists()
    sweep("incsnap-x", "owner")
    assert not folder.exists()


@contextlib.contextmanager
def daemon(python: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start Spark's daemon with its socket in `folder`, and yield its launcher."""
    environment = {
        **os.environ,
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder),
    }
    with subprocess.Popen(
        [python, "-m", "pyspark.daemon", "pyspark.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as launcher:
        assert launcher.stdout is not None
        length = int.from_bytes(launcher.stdout.read(4), "big")
        assert launcher.stdout.read(length).startswith(str(folder).encode())
        assert listens(folder)
        yield launcher


def listens(folder: Path) -> bool:
    """Return True if a process has a socket in `folder`.

    It does not connect, because the daemon forks for each connection.
    """
    return str(folder) in Path("/proc/net/unix").read_text()


def test_sigterm_ends_a_zygote_whatever_it_does_in_the_job(running: Job) -> None:
    status = Path(f"/proc/{running.zygote}/status").read_text()
    caught, ignored = (int(status.split(f"{name}:")[1].split()[0], 16) for name in ("SigCgt", "SigIgn"))

    assert not (caught | ignored) & 1 << signal.SIGTERM - 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_launcher_ends_its_process(number: signal.Signals, running: Job, socket_folder: Path) -> None:
    with daemon(running.python, socket_folder) as launcher:
        launcher.send_signal(number)
        wait_until(lambda: not listens(socket_folder))


def test_a_daemon_ends_when_its_input_does(running: Job, socket_folder: Path) -> None:
    with daemon(running.python, socket_folder) as launcher:
        assert launcher.stdin is not None
        launcher.stdin.close()
        launcher.wait(PATIENCE_SECONDS)
        assert not listens(socket_folder)


def test_without_its_zygote_the_launcher_becomes_a_python() -> None:
    with job() as running_job:
        os.kill(running_job.zygote, signal.SIGKILL)
        assert run(running_job.python, *_ASK, SPARK_HOME="/somewhere").stdout == "/somewhere\n"


def test_a_job_keeps_its_program_when_its_zygote_is_killed_and_another_job_starts() -> None:
    with job() as killed:
        os.kill(killed.zygote, signal.SIGKILL)
        with job() as next_job:
            assert run(next_job.python, *_ASK, SPARK_HOME="/another").stdout == "/another\n"
        assert run(killed.python, *_ASK, SPARK_HOME="/somewhere").stdout == "/somewhere\n"


def test_a_program_that_was_cleared_away_is_made_again_beside_the_zygote_or_without(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(socket_folder))
    own = Zygote()
    program = Path(own.python)
    before = program.read_text()
    for folder_too in (False, True):
        program.unlink()
        if folder_too:
            shutil.rmtree(program.parent)
        own.keep_program()
        assert program.read_text() == before
        assert run(own.python, *_ASK, SPARK_HOME="/somewhere").stdout == "/somewhere\n"
    own.close()


def test_a_killed_job_leaves_neither_the_zygote_nor_its_folder() -> None:
    with job() as killed:
        killed.process.kill()
        wait_until(lambda: not Path(killed.python).parent.exists())
        wait_until(lambda: not Path(f"/proc/{killed.zygote}").exists())


def test_the_next_job_clears_away_what_was_killed_with_its_zygote(
    socket_folder: Path, running: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(socket_folder))
    left, alive, young = (socket_folder / f"incsnap-python-{name}" for name in ("left", "alive", "young"))
    for folder in (left, alive, young):
        folder.mkdir()
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(left / "owner"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(alive / "owner"))
        listener.listen()
        own = Zygote()
        assert sorted(socket_folder.iterdir()) == sorted((alive, young, Path(own.python).parent))
        own.close()
    assert sorted(socket_folder.iterdir()) == sorted((alive, young))
