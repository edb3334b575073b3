"""The program that Spark runs as `python`: gets a process from the zygote and stands in for it until that process ends.

Spark runs this file by path, with `-I -S` and built-in modules only. This takes ten milliseconds; a Python with PySpark
takes 1.5 s. The launcher sends its arguments, folder, environment and three standard streams to the zygote. Spark talks
to the new process through these streams as if Spark had started it. A shell then waits for the end: 0.2 MB instead of
4.7, ten times. Signals are not forwarded. If Spark ends the launcher, its connection ends, and the zygote ends the
process.

Without a zygote, and for anything but a module of PySpark, the launcher becomes the Python that it was asked for.
"""

from __future__ import annotations

import _socket  # `socket` takes a third of this program's memory
import marshal
import os
import sys
from typing import NoReturn

#: Most seconds for the zygote to answer. On an idle machine it answers within milliseconds.
_ANSWER_SECONDS = 60.0
#: The descriptor on which the zygote writes the exit code of the process.
_END = 3
#: The shell command that waits for the exit code and exits with it. Without a code the zygote is gone, and the shell
#: exits with 1: Spark starts again, and then without a zygote.
_STAND_IN = f'read -r code <&{_END} || code=1; exit "$code"'


def _main(address: str, python: str, arguments: list[str]) -> NoReturn:
    """Become a stand-in for a process of the zygote, or become `python` if there is no zygote."""
    if arguments[:1] == ["-m"] and arguments[1:2] and arguments[1].startswith("pyspark."):
        connection = _request_process(address, arguments)
        if connection is not None:
            connection.settimeout(None)
            os.dup2(connection.fileno(), _END)
            os.set_inheritable(_END, True)  # dup2 does not do this if the descriptor already has that number
            os.execv("/bin/sh", ["sh", "-c", _STAND_IN])
    os.execv(python, [python, *arguments])


def _request_process(address: str, arguments: list[str]) -> _socket.socket | None:
    """Ask the zygote for a process. Return a connection that ends when the process does; None if no zygote answers."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(address)
        streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
        request = marshal.dumps((arguments, os.getcwd(), dict(os.environb)))
        connection.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        connection.sendall(request)
        if connection.recv(1):
            return connection
    except OSError:
        pass
    connection.close()
    return None


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
