"""What the benchmark reads of processes, tried on this one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

from benchmarks.processes import listener, memory_bytes, process_seconds


def test_memory_is_that_of_the_process() -> None:
    before = memory_bytes([os.getpid()])
    held = bytearray(os.urandom(1)) * 50_000_000

    assert 40e6 < memory_bytes([os.getpid()]) - before < 80e6
    assert len(held) == 50_000_000


def test_a_process_that_has_gone_has_no_memory() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(30)

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
