"""One process that has imported everything, from which all of Spark's Python processes are forked.

Spark starts seven of them one after the other (look-up, plan of the source, planner, plan of the read, of the write,
tasks, commits), each a Python of its own that imports for 1.5 s what the others have imported: PySpark from a zip
without bytecode first of all. ``incsnap run`` forks this process from itself while the JVM boots; ``launcher`` asks
it for the rest, in milliseconds, and their memory is shared.

    Spark ── executes ──► launcher ── streams, arguments, environment ──► zygote ── forks ──► the process

Its life hangs on a pipe to the job: when the job dies, however it dies, the pipe ends, and so does the zygote. What
it has forked hangs on Spark's JVM, as without it. A master other than ``local`` runs workers on other machines: there
``worker_python`` is what they run, and here too when the zygote is gone.
"""

from __future__ import annotations

import array
import contextlib
import gc
import marshal
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from incsnap.spark import worker_python
from incsnap.spark.owned_folders import listening, sweep
from incsnap.tasks import process_name

_PREFIX = "incsnap-python-"
_OWNER, _SOCKET, _PROGRAM = "owner", "zygote", "python"
#: Seconds for a launcher to say what it wants; it has it all at hand.
_REQUEST_SECONDS = 5.0


class Zygote:
    """The zygote, from the side of the job."""

    def __init__(self) -> None:
        sweep(_PREFIX, _OWNER)
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        #: Nobody is answered; it says that the job lives, which needs the program also without a zygote.
        self._owner = listening(self._folder, _OWNER)
        self._life = self.pid = -1
        #: The program for ``PYSPARK_PYTHON``; where no zygote answers, plain Python.
        self.python = str(self._folder / _PROGRAM)
        self.keep_program()
        if not os.access(self.python, os.X_OK):
            # The folder for temporary files is mounted without the right to execute any.
            self.python = worker_python.interpreter()

    def keep_program(self) -> None:
        """Makes the program again where it is gone: files that nobody has touched for days are cleared away from
        folders for temporary files (systemd-tmpfiles), and no Python process of Spark's would ever start again."""
        program = self._folder / _PROGRAM
        if program.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        launcher = Path(__file__).with_name("launcher.py")
        words = [sys.executable, "-I", "-S", str(launcher), str(self._folder / _SOCKET), worker_python.interpreter()]
        # A shell, because the kernel takes neither blanks nor much length in the first line of a script.
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o700)

    def start(self, private: tuple[int, ...] = ()) -> None:
        """Imports, and forks it; to be called before there are threads.

        ``private``: open descriptors that no other process may have, as the pipe that keeps the JVM alive.
        """
        listener = listening(self._folder, _SOCKET)
        if listener is None:
            # There will be no answer, and plain Python does it.
            return
        worker_python.import_all()
        gc.collect()
        gc.freeze()
        life, self._life = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                for descriptor in (self._life, *private):
                    os.close(descriptor)
                self._disown()
                # Ctrl-C in a terminal is for the job, which stops in order.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                process_name.take(process_name.ZYGOTE)
                _ForkServer(listener, life).serve()
            except BaseException:  # noqa: BLE001 - told, as by any program that ends
                sys.excepthook(*sys.exc_info())
            finally:
                shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(1)
        os.close(life)
        listener.close()

    def close(self) -> None:
        """Ends it; what it has forked goes on until Spark ends it."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        # A start may be broken off at any point.
        if self.pid > 0:
            os.waitpid(self.pid, 0)
            self.pid = -1
        shutil.rmtree(self._folder, ignore_errors=True)
        self._disown()

    def _disown(self) -> None:
        if self._owner is not None:
            self._owner.close()


class _ForkServer:
    def __init__(self, listener: socket.socket, life: int) -> None:
        self._listener = listener
        self._life = life
        self._selector = selectors.DefaultSelector()
        self._launchers: dict[int, socket.socket] = {}
        self._wake, self._woken = socket.socketpair()

    def serve(self) -> None:
        """Forks what is asked for, until the job's end of the pipe is closed."""
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for source in (self._listener, self._life, self._wake):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._life:
                    # Children go on, and their ends would be written to a descriptor that is closed with this.
                    signal.set_wakeup_fd(-1)
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake:
                    self._reap()
                elif key.data in self._launchers:
                    self._abandoned(key.data)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_REQUEST_SECONDS)
            streams, request = _received(connection)
        except (OSError, ValueError, EOFError, TypeError):
            # A probe, or a launcher that was ended.
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            self._leave(connection)
            _become(streams, *request)
        for stream in streams:
            os.close(stream)
        self._launchers[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            connection.sendall(b"\1")

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                pid, status = ended
                connection = self._launchers.pop(pid)
                # Not there any more when the launcher was gone first.
                with contextlib.suppress(KeyError):
                    self._selector.unregister(connection)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    # As a shell tells of a signal.
                    connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
                connection.close()

    def _abandoned(self, pid: int) -> None:
        """Spark has ended the launcher, and means the process."""
        self._selector.unregister(self._launchers[pid])
        os.kill(pid, signal.SIGTERM)

    def _leave(self, connection: socket.socket) -> None:
        """Closes in the new process what was the zygote's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for ours in (self._listener, self._wake, self._woken, connection, *self._launchers.values()):
            ours.close()
        os.close(self._life)


_Request = tuple[list[str], str, dict[bytes, bytes]]


def _received(connection: socket.socket) -> tuple[array.array[int], _Request]:
    streams = array.array("i")
    length, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * streams.itemsize))
    for _, _, content in ancillary:
        streams.frombytes(content)
    with connection.makefile("rb", buffering=0) as stream:
        missing, parts = int.from_bytes(length, sys.byteorder), []
        while missing:
            part = stream.read(missing)
            if not part:
                raise EOFError
            missing -= len(part)
            parts.append(part)
    request: _Request = marshal.loads(b"".join(parts))
    return streams, request


def _become(streams: array.array[int], arguments: list[str], folder: str, environment: dict[bytes, bytes]) -> NoReturn:
    """``python ARGUMENTS``, where they begin with ``-m`` and a module; imports apart, as a new Python would run it."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        os.chdir(folder)
        os.environb.clear()
        os.environb.update(environment)
        sys.argv = arguments[1:]
        process_name.take(process_name.of(arguments))
        if arguments[1] == worker_python.DAEMON:
            worker_python.daemon()
        else:
            # It has been imported for what it imports; now it is to run.
            sys.modules.pop(arguments[1], None)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the same
        sys.excepthook(*sys.exc_info())
    finally:
        for output in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                output.flush()
        os._exit(code & 0xFF)
