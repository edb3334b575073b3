"""The demo of `python -m lab --from-debezium`: a real connector is taken over, and gets its topics back.

It runs the commands of docs/migrate-from-debezium.md as they stand there, while a writer changes the tables.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from incsnap.cli import output
from incsnap.errors import ServerUnreachable
from lab.captured_database import captured_database
from lab.connect_cluster import member, wait_for, worker_settings
from lab.run_folder import run_folder
from lab.running_job import kill_session, write_properties
from lab.servers import servers
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer

DOCUMENT = Path(__file__).parents[1] / "docs" / "migrate-from-debezium.md"
_HEADING = "## The recipe"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROWS, _CHANGES_PER_SECOND = 5_000, 100.0
_STREAMS_SECONDS = 120.0
_COMMANDS_SECONDS = 400.0


def recipe(document: str) -> str:
    """Return the commands of the recipe in the document's text, as one script."""
    _, _, behind = document.partition(f"\n{_HEADING}\n")
    return "".join(_BLOCK.findall(behind.partition("\n## ")[0]))


def from_debezium() -> int:
    """Run the recipe against real servers, and return its exit code. Whatever was started is stopped at the end.

    Raise ServerUnreachable if a server does not start.
    """
    tell = output.console().print
    with ExitStack() as stack:
        tell("Starting MySQL, Kafka and Kafka Connect with Debezium ...")
        started = stack.enter_context(servers())
        folder = stack.enter_context(run_folder())
        name = f"incsnap_demo_{secrets.token_hex(3)}"
        prefix = name.replace("_", "-")
        play = stack.enter_context(captured_database(started.mysql, started.kafka, name, prefix, folder))
        play.create(ORDERS, _ROWS)
        play.create(ORDER_LINES, _ROWS // 2)
        settings = worker_settings(started.kafka, f"{prefix}-connect", exactly_once=False)
        worker = stack.enter_context(member(folder, folder / "connect.log", settings))
        wait_for(worker)
        connector = play.connector()
        file = write_properties(folder / "connector.properties", connector)
        worker.file.rename(folder / "worker.properties")
        worker.start(prefix, connector)
        deadline = time.monotonic() + _STREAMS_SECONDS
        while not worker.streams(int(connector["database.server.id"])):
            if time.monotonic() > deadline:
                raise ServerUnreachable(f"Debezium does not stream:\n{worker.program.last_words()}")
            time.sleep(0.2)
        tell(f"Debezium streams. A writer makes {_CHANGES_PER_SECOND:.0f} changes/s. The recipe begins:")
        stack.enter_context(Writer(play.connect, play.tables, seed=secrets.randbits(32), rate=_CHANGES_PER_SECOND))
        return _run(recipe(DOCUMENT.read_text()), file.parent, worker.url, prefix)


def _run(script: str, folder: Path, connect: str, name: str) -> int:
    """Run the commands in `folder`, show each, and return the exit code of the first that fails, else 0."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": programs, "CONNECT": connect, "NAME": name, "PS4": "$ "}
    shell = subprocess.Popen(["bash", "-ex", "-c", script], cwd=folder, env=environment, start_new_session=True)
    try:
        return shell.wait(_COMMANDS_SECONDS)
    finally:
        kill_session(shell.pid)
