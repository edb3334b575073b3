"""The zygote: one process that has imported everything, from which all of Spark's Python processes are forked.

Spark starts seven Python processes one after the other (look-up, plan of the source, planner, plan of the read, plan of
the write, tasks, commits). Each would import the same modules for 1.5 s, PySpark from a zip without bytecode. The job
forks the zygote from itself while the JVM boots. The zygote then forks the other processes within milliseconds, and all
share its memory. Example, with process ids:

    9503          incsnap run   forks the zygote 9684, and sets PYSPARK_PYTHON=/tmp/incsnap-python-x0613wwt/python
    9734          Spark runs    /tmp/incsnap-python-x0613wwt/python -m pyspark.daemon pyspark.worker
    9734 to 9684  launcher.py   connects to /tmp/incsnap-python-x0613wwt/zygote, sends its descriptors 0, 1, 2 and
                                (["-m", "pyspark.daemon", "pyspark.worker"], "/home/shop", {b"PATH": b"/usr/bin", ...})
    9684 to 9734  zygote        forks 9736, which `ps` shows as incsnap-tasks, and confirms with one byte
    9734          launcher.py   becomes sh -c 'read -r code <&3 || code=1; exit "$code"'
    9684 to 9734  zygote        when 9736 has ended with exit code 1, writes a line "1"; 9734 exits with 1
    9734          SIGTERM       ends 9734 and so its connection; the zygote then sends SIGTERM to 9736

A pipe to the job keeps the zygote alive: when the job dies, for whatever reason, the pipe ends, and the zygote exits.
The processes that it has forked live as long as Spark's JVM, as they do without a zygote. With a master other than
`local`, workers run on other machines and use `worker_python`. So do workers here if the zygote is gone.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import NoReturn

from incsnap.spark import worker_python
from incsnap.spark.owned_folders import listening, short_folder, sweep
from incsnap.tasks import process_name

_PREFIX = "incsnap-python-"
_OWNER, _SOCKET, _PROGRAM = "owner", "zygote", "python"
#: Most seconds for a launcher to send its request, which it has ready.
_REQUEST_SECONDS = 5.0


class Zygote:
    """The zygote, as the job sees it."""

    def __init__(self) -> None:
        """Make the folder, and the program for Spark. `start` then starts the process."""
        sweep(_PREFIX, _OWNER)
        self._folder = Path(short_folder(_PREFIX))
        #: A socket that marks this folder as in use, because Spark needs the program even without a zygote. It never
        #: answers.
        self._owner = listening(self._folder, _OWNER)
        self._life = self.pid = -1
        #: The program for `PYSPARK_PYTHON`. If no zygote answers, it is a plain Python.
        self.python = str(self._folder / _PROGRAM)
        self.keep_program()
        if not os.access(self.python, os.X_OK):
            # The folder for temporary files is mounted without the right to execute files.
            self.python = worker_python.interpreter()

    def keep_program(self) -> None:
        """Make the program again if it is gone.

        Systems delete temporary files that were not used for days (systemd-tmpfiles). Without the program none of
        Spark's Python processes would ever start again.
        """
        program = self._folder / _PROGRAM
        if program.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        launcher = Path(__file__).with_name("launcher.py")
        words = [sys.executable, "-I", "-S", str(launcher), str(self._folder / _SOCKET), worker_python.interpreter()]
        # A shell script: the first line of a script cannot name a program with blanks or a long path.
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o700)

    def start(self, private: tuple[int, ...] = ()) -> None:
        """Import everything and fork the zygote. Call this before the process has threads.

        `private`: open descriptors that no other process may have, for example the pipe that keeps the JVM alive.
        """
        listener = listening(self._folder, _SOCKET)
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
                self._owner.close()
                # Ctrl-C in a terminal is for the job, which stops in order. So is a SIGTERM to the job's process group.
                os.setpgid(0, 0)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                # SIGTERM ends the forks, whatever it does in this process.
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                process_name.take(process_name.ZYGOTE)
                _ForkServer(listener, life).serve()
            except BaseException:  # noqa: BLE001 - printed, as any program that ends prints it
                sys.excepthook(*sys.exc_info())
            finally:
                shutil.rmtree(self._folder, ignore_errors=True)
                os._exit(1)
        os.close(life)
        listener.close()

    def close(self) -> None:
        """End the zygote. Its forks go on until Spark ends them."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        # The start may have been interrupted at any point.
        if self.pid > 0:
            os.waitpid(self.pid, 0)
            self.pid = -1
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()


class _ForkServer:
    """The zygote's own loop: forks processes for launchers, and reports how they ended."""

    def __init__(self, listener: socket.socket, life: int) -> None:
        self._listener = listener
        self._life = life
        self._selector = selectors.DefaultSelector()
        self._launchers: dict[int, socket.socket] = {}
        self._wake, self._woken = socket.socketpair()

    def serve(self) -> None:
        """Fork on request, until the job's end of the pipe `life` is closed."""
        for end in (self._wake, self._woken):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for source in (self._listener, self._life, self._wake):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._life:
                    # Children go on, and their ends would be written to a descriptor that is closed here.
                    signal.set_wakeup_fd(-1)
                    return
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._wake:
                    self._reap()
                elif key.data in self._launchers:
                    self._abandoned(key.data)

    def _accept(self) -> None:
        """Fork a process for a launcher, and confirm with one byte."""
        connection, _ = self._listener.accept()
        try:
            connection.settimeout(_REQUEST_SECONDS)
            streams, request = _received(connection)
        except (OSError, ValueError, EOFError, TypeError):
            # A check whether this folder is in use, or a launcher that was ended.
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
        """Send each process's exit code to its launcher."""
        with contextlib.suppress(BlockingIOError):
            while self._wake.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                pid, status = ended
                connection = self._launchers.pop(pid)
                # The launcher was gone first, so its connection is no longer registered.
                with contextlib.suppress(KeyError):
                    self._selector.unregister(connection)
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    # Like a shell: 128 plus the number of the signal.
                    connection.sendall(b"%d\n" % (code if code >= 0 else 128 - code))
                connection.close()

    def _abandoned(self, pid: int) -> None:
        """End a process whose launcher is gone: Spark has ended the launcher, and means the process."""
        self._selector.unregister(self._launchers[pid])
        os.kill(pid, signal.SIGTERM)

    def _leave(self, connection: socket.socket) -> None:
        """Close in the new process what belongs to the zygote."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for ours in (self._listener, self._wake, self._woken, connection, *self._launchers.values()):
            ours.close()
        os.close(self._life)


#: (arguments, folder, environment)
_Request = tuple[list[str], str, dict[bytes, bytes]]


def _received(connection: socket.socket) -> tuple[list[int], _Request]:
    """Return a launcher's standard streams and its request. Raise EOFError if the request is incomplete."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as stream:
        return streams, marshal.load(stream)


def _become(streams: list[int], arguments: list[str], folder: str, environment: dict[bytes, bytes]) -> NoReturn:
    """Run `python ARGUMENTS` in this process, and exit. The arguments begin with `-m` and a module.

    Apart from the imports, the module runs as in a new Python.
    """
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
            # The module was imported for its own imports only; now it runs.
            sys.modules.pop(arguments[1], None)
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - printed, as any program that ends prints it
        sys.excepthook(*sys.exc_info())
    finally:
        for output in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                output.flush()
        os._exit(code & 0xFF)
