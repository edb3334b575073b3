"""The worker's thread for chunks."""

from __future__ import annotations

import os
import signal

import pytest

from incsnap.tasks.chunk import aside


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent() -> None:
    assert list(aside(iter([1, 2]))) == [1, 2]

    child = os.fork()
    if not child:
        signal.alarm(20)  # ends the child, should it wait
        os._exit(0 if list(aside(iter([3]))) == [3] else 1)
    assert os.waitpid(child, 0)[1] == 0
