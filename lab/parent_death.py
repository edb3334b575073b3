"""A wrapper of a server: the kernel kills the server when the process that started it dies.

Usage: `python parent_death.py PARENT_PID COMMAND...`. This file is run by path, as a small program between the parent
and the server. It asks for the death signal, and then *becomes* the server, because exec keeps the request. Signals
have their default handling. A `preexec_fn` would do the same between fork and exec, but may deadlock in a process with
threads. Spark, Kafka and pytest all have threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# From linux/prctl.h, see prctl(2). Other systems have no death signal; there a server ends only if it is stopped.
_PR_SET_PDEATHSIG = 1


def _become(parent: int, command: list[str]) -> None:
    """Ask for the death signal, and become `command`. `parent`: the process id that the parent should still have."""
    if sys.platform == "linux":
        # SIGKILL, not SIGTERM: the data are thrown away, and a server that hangs must end too.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # The parent died before the request, so no signal will come.
            sys.exit("the process that asked for this server has gone")
    # Ignored signals stay ignored after exec: SIGINT in a shell's background job, SIGPIPE by Python itself.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
