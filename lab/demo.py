"""The demo of `python -m lab`: snapshots of two tables that change, which `incsnap verify` compares with their
topics at the end."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

import click

from incsnap.checkpoint.status import read_status
from incsnap.cli import output
from incsnap.cli.failures import FailuresInWords
from incsnap.errors import IncsnapError
from incsnap.monitoring.status import Sums
from incsnap.tables import TableId
from lab.captured_database import CapturedDatabase, captured_database
from lab.demo_display import Display, report
from lab.fetched_lake import LAKES
from lab.from_debezium import from_debezium as run_recipe
from lab.lag_probe import LagProbe
from lab.lake_demo import lake_demo
from lab.listening import Notices
from lab.run_folder import run_folder
from lab.running_job import INCSNAP, JobFailed, RunningJob, end_of
from lab.servers import servers
from lab.table_designs import ORDER_LINES, ORDERS
from lab.workload import Writer

_BY_ROW, _BY_MESSAGE = "demo-by-row", "demo-by-message"
_DEFECT = "This is a defect of incsnap; please report it with the log."
_CHANGES_PER_SECOND = 300.0
#: Seconds that both snapshots may take before the demo fails.
_SNAPSHOT_SECONDS = 600.0
#: Seconds that the comparison may take.
_VERIFY_SECONDS = 600.0


@click.command(cls=FailuresInWords)
@click.option("--rows", type=click.IntRange(1), default=300_000, show_default=True, help="Rows of the larger table.")
@click.option("--keep", is_flag=True, help="Keep the servers, and topics or the lake's table, until Ctrl-C.")
@click.option(
    "--to",
    type=click.Choice(["kafka", *LAKES]),
    default="kafka",
    show_default=True,
    help="delta, iceberg: a DataFrame's query merges one table into a table of that lake, without Kafka.",
)
@click.option("--from-debezium", is_flag=True, help="Take over from a real connector, and hand back to it.")
def demo(rows: int, keep: bool, to: str, from_debezium: bool) -> None:
    """Take snapshots of tables while they change, and compare the tables with their topics.

    Uses the servers of INCSNAP_MYSQL and INCSNAP_KAFKA, or starts them in Docker, or fetches them. Whatever was started
    is stopped at the end. A failure of the job (JobFailed) ends the demo with the end of the job's log.
    """
    if from_debezium:
        with _sigterm_like_ctrl_c():
            code = run_recipe()
        sys.exit(code)
    if to in LAKES:
        with _sigterm_like_ctrl_c():
            faults = lake_demo(LAKES[to], rows, keep=keep)
        for fault in faults:
            output.problem(fault, _DEFECT)
        sys.exit(1 if faults else 0)
    with _sigterm_like_ctrl_c(), ExitStack() as stack:
        tell = output.console().print
        tell("Starting MySQL and Kafka ...")
        started = stack.enter_context(servers())
        folder = stack.enter_context(run_folder())
        name = f"incsnap_demo_{secrets.token_hex(3)}"
        play = stack.enter_context(
            captured_database(started.mysql, started.kafka, name, name.replace("_", "-"), folder)
        )
        try:
            are_equal = _play(play, rows)
        except IncsnapError:
            raise
        except Exception as error:
            raise JobFailed(f"{type(error).__name__}: {error}\n{end_of(play.log)}") from error
        if not are_equal:
            output.problem("The topics do not hold what the tables hold", _DEFECT)
            tell(f"The job's log ends:\n{end_of(play.log)}", markup=False)
        if keep:
            tell(f"MySQL {play.mysql}, database {play.database}; Kafka {play.kafka}, topics {play.prefix}.*")
            tell("Ctrl-C removes them.")
            signal.pause()
        if not are_equal:
            sys.exit(1)


def _play(play: CapturedDatabase, rows: int) -> bool:
    """Take both snapshots, and return True if the topics hold what the tables hold."""
    tell = output.console().print
    tell(f"Loading {rows:,} orders and {rows // 3:,} order lines ...")
    began = time.monotonic()
    orders, lines = play.create(ORDERS, rows), play.create(ORDER_LINES, rows // 3)
    loaded = time.monotonic()
    tell("Starting the job ...")
    with play.job() as job:
        job.wait_until_streaming()
        streaming = time.monotonic()
        with (
            play.notices() as notices,
            play.lag_probe() as probe,
            Writer(play.connect, play.tables, seed=secrets.randbits(32), rate=_CHANGES_PER_SECOND) as writer,
        ):
            # Stream a little first, so that Spark has run its first batch.
            job.wait_until("the first change was sent", lambda: bool(probe.lags))
            tell(
                f"A writer makes up to {_CHANGES_PER_SECOND:.0f} changes/s. Signals: {orders} by the signal table, ",
                end="",
            )
            tell(f"{lines} by Kafka.")
            probe.lags.clear()
            signalled = time.monotonic()
            play.execute_by_row(_BY_ROW, [orders])
            play.execute_by_message(_BY_MESSAGE, [lines])
            _watch(play, job, notices, probe, writer, rows + rows // 3)
            read = time.monotonic()
        play.drain(job)
        job.stop()
        status = read_status(str(play.checkpoint))
    stopped = time.monotonic()
    are_equal = _verify(play, [orders, lines])
    done = time.monotonic()
    report(
        status.sent if status else Sums(),
        written=writer.written,
        lags=probe.lags,
        times={
            "load": loaded - began,
            "start of the job": streaming - loaded,
            "snapshots": read - signalled,
            "drain and stop": stopped - read,
            "verify": done - stopped,
            "all": done - began,
        },
    )
    return are_equal


def _verify(play: CapturedDatabase, tables: Sequence[TableId]) -> bool:
    """Run `incsnap verify`, whose answer is shown, and return True if it finds no fault."""
    named = [argument for table in tables for argument in ("--table", str(table))]
    arguments = ["verify", str(play.folder / "incsnap.properties"), *named, "--strict"]
    output.console().print(f"$ incsnap {' '.join(arguments)}", markup=False)
    return subprocess.run([sys.executable, *INCSNAP, *arguments], check=False, timeout=_VERIFY_SECONDS).returncode == 0


def _watch(
    play: CapturedDatabase, job: RunningJob, notices: Notices, probe: LagProbe, writer: Writer, total: int
) -> None:
    """Show progress until both snapshots are complete."""
    with Display(total) as display:

        def complete() -> bool:
            if writer.failed:
                writer.stop()
            status = read_status(str(play.checkpoint))
            if status is not None:
                display.show(status, probe.lag_seconds)
            return all([notices.completed(_BY_ROW), notices.completed(_BY_MESSAGE)])

        job.wait_until("both snapshots were complete", complete, _SNAPSHOT_SECONDS)
        display.finish()


@contextmanager
def _sigterm_like_ctrl_c() -> Iterator[None]:
    """Make SIGTERM unwind the stack as Ctrl-C does, so that everything is stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt."""
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
