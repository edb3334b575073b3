"""Tests of the benchmark's measurements of processes, applied to the test's own process."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import job_seconds, listener, memory_bytes, process_seconds
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def test_memory_is_that_of_the_process() -> None:
    before = memory_bytes([os.getpid()])
    # Of the kernel: the C library may have as much left of what this process has freed.
    with mmap.mmap(-1, 50_000_000) as memory:
        memory.write(b"x" * len(memory))
        assert 40e6 < memory_bytes([os.getpid()]) - before < 120e6


def test_a_process_that_has_gone_has_no_memory() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(PATIENCE_SECONDS)

    assert memory_bytes([gone.pid]) == 0


def test_processor_seconds_are_those_worked() -> None:
    before, until = process_seconds(os.getpid()), time.process_time() + 0.2
    while time.process_time() < until:
        pass

    assert 0.15 < process_seconds(os.getpid()) - before < 1.0


def test_the_process_that_listens_at_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert listener(port) == os.getpid()
    assert listener(port) is None


_MODULES = {
    "planner": ["-m", "pyspark.sql.streaming.python_streaming_source_runner"],
    "stream's workers": ["-m", "pyspark.daemon", "pyspark.worker"],
    "commit runner": ["-m", "pyspark.daemon", "pyspark.sql.worker.python_streaming_sink_runner"],
    "plans of the query": ["-m", "pyspark.daemon", "pyspark.sql.worker.plan_data_source_read"],
}
#: A job in small: what Spark runs is forked from its zygote, here with arguments of the test.
_JOB = """
import json, subprocess, sys
from incsnap.spark.launch.zygote import Zygote
zygote = Zygote()
zygote.start()
run = [subprocess.Popen([zygote.python, *each], stdin=subprocess.PIPE) for each in json.loads(sys.argv[1])]
sys.stdin.read()
for each in run:
    each.kill()
    each.wait()
zygote.close()
"""


@contextlib.contextmanager
def session(program: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A Python that leads a session of its own and ends when its input does."""
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE_SECONDS)


def test_each_process_that_is_forked_for_spark_counts_for_its_own_kind(socket_folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as spark:
        # The planner connects to it, and waits for what it is to do.
        spark.bind(str(socket_folder / "spark"))
        spark.listen()
        environment = {
            "PYTHON_UNIX_DOMAIN_ENABLED": "true",
            "PYTHON_WORKER_FACTORY_SOCK_PATH": str(socket_folder / "spark"),
            "PYTHON_WORKER_FACTORY_SOCK_DIR": str(socket_folder),
        }
        with session(_JOB, json.dumps(list(_MODULES.values())), **environment) as job:
            wait_until(lambda: {"driver", "zygote", "launchers", *_MODULES} == set(job_seconds(job.pid)) - {_READERS})


_WORKER = """
import sys, time
from incsnap.tasks import process_name
from incsnap.tasks.chunk import _slow_thread
process_name.take(process_name.TASKS)
def work(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until: pass
_slow_thread().submit(work, 0.6).result()
work(0.2)
print("done", flush=True)
sys.stdin.read()
"""
_READERS = "chunk readers"


def test_a_worker_s_time_is_divided_between_the_stream_and_chunks() -> None:
    with session(_WORKER) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        used = job_seconds(worker.pid)

    assert set(used) == {"stream's workers", _READERS}
    assert 0.55 < used[_READERS] < 0.7
    assert used["stream's workers"] > 0.15
