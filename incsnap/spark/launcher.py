"""What Spark runs as ``python``: asks the zygote for a process and stands in for it until that ends.

Run by path, with ``-I -S`` and nothing but built-in modules: ten milliseconds, where a Python with PySpark takes 1.5 s.
The zygote gets the arguments, the folder, the environment and the three standard streams; Spark talks to the new
process through them as if it had started it. What waits for the end is a shell: 0.2 MB instead of 4.7, ten times.
Signals need no forwarding: when it is ended, its connection ends, and the zygote ends the other process.

Where there is no zygote, or for anything else than a module of PySpark, this becomes the Python that it was asked for.
"""

from __future__ import annotations

import _socket  # `socket` costs a third of this program's memory
import marshal
import os
import sys
from typing import NoReturn

#: Seconds for the zygote to answer, which it does in milliseconds on a machine that is not busy.
_ANSWER_SECONDS = 60.0
#: The descriptor on which it is told how the process has ended.
_END = 3
#: Ends as the process does, of which it is told in a line. Without one the zygote is gone: Spark, told so, starts anew,
#: and comes without a zygote then.
_STAND_IN = f'read -r code <&{_END} || code=1; exit "$code"'


def _main(address: str, python: str, arguments: list[str]) -> NoReturn:
    """``python``: what to become without a zygote."""
    if arguments[:1] == ["-m"] and arguments[1:2] and arguments[1].startswith("pyspark."):
        connection = _request_process(address, arguments)
        if connection is not None:
            connection.settimeout(None)
            os.dup2(connection.fileno(), _END)
            os.set_inheritable(_END, True)  # also where it had that number already
            os.execv("/bin/sh", ["sh", "-c", _STAND_IN])
    os.execv(python, [python, *arguments])


def _request_process(address: str, arguments: list[str]) -> _socket.socket | None:
    """Asks the zygote for a process. Returns a connection whose end is that of the process; ``None`` when the zygote
    does not answer."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(address)
        streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in (0, 1, 2))
        request = marshal.dumps((arguments, os.getcwd(), dict(os.environb)))
        length = len(request).to_bytes(4, sys.byteorder)
        connection.sendmsg([length], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
        connection.sendall(request)
        if connection.recv(1):
            return connection
    except OSError:
        pass
    connection.close()
    return None


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], sys.argv[3:])
