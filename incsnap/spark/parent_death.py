"""Runs a command that the kernel ends when its parent dies: ``python parent_death.py PARENT_PID COMMAND...``.

This file is run by path, as a small program between the parent and the server: it asks for the death signal and then
*becomes* the server (exec keeps the request), with every signal as it is by default. A ``preexec_fn`` would do the same
between fork and exec, but that may dead-lock in a process with threads, which every user of Spark, Kafka and pytest is.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# prctl(2), linux/prctl.h. Other systems know no death signal; there only the orderly ways stop a server.
_PR_SET_PDEATHSIG = 1


def _become(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        # SIGKILL, not SIGTERM: the data are thrown away, and a server that hangs must go too.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before we asked, so no signal will come.
            sys.exit("the process that asked for this server has gone")
    # What is ignored stays so over exec: SIGINT in a shell's background job, SIGPIPE by Python itself.
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    _become(int(sys.argv[1]), sys.argv[2:])
