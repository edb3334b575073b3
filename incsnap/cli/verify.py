"""The command `incsnap verify FILE`: it compares the captured tables with their topics."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from incsnap.cli.settings_file import settings_file

if TYPE_CHECKING:
    from incsnap.config.job_file import JobFile
    from incsnap.config.settings import Settings
    from incsnap.verify.allowance import Allowance
    from incsnap.verify.proof import TopicKey
    from incsnap.verify.report import TableReport
    from incsnap.verify.verification import Repair

#: Properties of Spark for one large comparison, where a job's are for many small batches.
_SPARK = {
    "spark.shuffle.compress": "true",
    "spark.driver.memory": "1g",
}
_SAMPLE = re.compile(r"1/([1-9][0-9]*)\Z")


def _is_no_late_call(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Exception while sending command")


@contextmanager
def _failures_are_no_answer() -> Iterator[None]:
    """End with NO_ANSWER if the block fails. Python's exit code would be 1, which means differences."""
    from incsnap.cli import output
    from incsnap.errors import IncsnapError, shorten
    from incsnap.verify.report import NO_ANSWER

    try:
        yield
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except IncsnapError as error:
        output.problem(error.message, error.hint)
        raise click.exceptions.Exit(NO_ANSWER) from None
    except Exception as error:
        logging.getLogger(__name__).debug("The comparison failed", exc_info=True)
        reason = shorten(next(iter(str(error).splitlines()), ""))
        output.problem(
            f"The comparison failed: {type(error).__name__}: {reason}",
            "Run the command again. With `incsnap --log-level debug verify` it says where it fails.",
        )
        raise click.exceptions.Exit(NO_ANSWER) from None


@click.command()
@settings_file
@click.option("--table", "tables", multiple=True, metavar="DB.TABLE", help="Table to compare. May be repeated.")
@click.option("--sample", metavar="1/N", help="Compare one key in N. The same keys each time.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each table.")
@click.option("--differences", type=click.Path(file_okay=False), help="Folder for the keys that differ.")
@click.option("--strict", is_flag=True, help="Records that were sent twice or out of order count as differences.")
@click.option("--allow-unverifiable", is_flag=True, help="Keys about which nothing is proved do not count.")
@click.option(
    "--wait", type=float, default=30.0, show_default=True, metavar="SECONDS", help="Wait for the topics to catch up."
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted comparison with the same options has stopped.")
@click.option("--repair", is_flag=True, help="Let a live job of incsnap send the keys that differ again. Asks first.")
@click.option("--yes", is_flag=True, help="Repair without a question.")
@click.option(
    "--at-most",
    type=click.IntRange(min=1),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Repair nothing if more keys differ.",
)
@_failures_are_no_answer()
def verify(
    file: JobFile,
    worker: str | None,
    tables: tuple[str, ...],
    sample: str | None,
    as_json: bool,
    differences: str | None,
    strict: bool,
    allow_unverifiable: bool,
    wait: float,
    resume: bool,
    repair: bool,
    yes: bool,
    at_most: int,
) -> None:
    """Compare the captured tables with their topics, while both change.

    It takes no lock, and without --repair it writes nothing to MySQL or Kafka. The job may run or not. Exit codes: 0
    equal, 1 differences, 2 no answer. Exit code 2 (ConfigError): an option has another form, --repair cannot ask, or
    there is nothing to resume.

    Ctrl-C stops the command. What it has read is kept in the user's cache folder, and --resume goes on there. At the
    question of --repair, Ctrl-C means no.

    --repair sends the job a signal with the keys that were proved to differ, waits until the job has sent them, and
    compares them again. The exit code is that of the second comparison. Nothing is sent unless the control topic shows
    a live job of FILE.
    """
    from incsnap.spark.worker_python import leave_pandas_out

    # Rows are in Spark's temporary files. Only this user may read them.
    os.umask(0o077)
    leave_pandas_out()
    from incsnap.cli import interrupts
    from incsnap.verify.allowance import Allowance, VerificationStopped

    allowance = Allowance()
    # Early, because the imports and the start of Spark take seconds.
    click.get_current_context().with_resource(interrupts.noted(allowance.stopping))
    from incsnap.cli.progress_display import shown
    from incsnap.config.load import read
    from incsnap.errors import ConfigError
    from incsnap.spark.launch.startup import launched
    from incsnap.verify.evidence import connector_offsets
    from incsnap.verify.kept_sides import can_resume, kept_folder
    from incsnap.verify.report import (
        NO_ANSWER,
        command_line,
        exit_code,
        next_command,
        require_tables,
        write_differences,
    )
    from incsnap.verify.rounds import Limits
    from incsnap.verify.verification import Choice, verify_tables

    one_in = _SAMPLE.match(sample) if sample else None
    if sample and one_in is None:
        raise ConfigError(f"--sample {sample} is not of the form 1/N", "Write --sample 1/100 for one key in a hundred.")
    if repair and not yes and not sys.stdin.isatty():
        raise ConfigError("--repair asks before it sends, and there is no terminal", "Add --yes to send without it.")
    settings = read(file, worker).settings
    settings = settings.model_copy(update={"spark": {**_SPARK, **settings.spark}})
    folder = kept_folder(settings, tables, sample or "")
    choice = Choice(
        tables,
        int(one_in[1]) if one_in else 1,
        Limits(wait_seconds=wait),
        connector_offsets(file, worker),
        lists_history=bool(differences) or repair,
        allowance=allowance,
        folder=folder,
        resume=resume,
    )
    try:
        with launched(settings) as launch:
            allowance.go_on()
            spark = launch.session()
            with shown(choice.progress, quiet=as_json) as hide:
                try:
                    # Before a new comparison removes what an earlier one has kept.
                    allowance.go_on()
                    mends = _repair(settings, differences, wait, at_most, hide, allowance, yes=yes) if repair else None
                    reports = verify_tables(spark, settings, choice, mends)
                finally:
                    # Objects of the JVM that are freed later call a JVM that has ended. Py4J logs that as an error.
                    gc.collect()
                    logging.getLogger().addFilter(_is_no_late_call)
                    spark.stop()
    # While Spark starts, its own handler raises KeyboardInterrupt for a moment.
    except (VerificationStopped, KeyboardInterrupt):
        again = command_line(file, worker, tables, sample)
        click.echo(f"Stopped. {choice.progress.seen()} were read, and no answer is known.", err=True)
        # A comparison has removed what it has read before its repair begins.
        click.echo(f"To continue: {again} --resume" if can_resume(folder) else f"To compare again: {again}", err=True)
        raise click.exceptions.Exit(NO_ANSWER) from None
    require_tables(reports, None if tables else settings.tables.signal_table)
    if differences and not repair:
        write_differences(reports, Path(differences))
    code = exit_code(reports, strict=strict, allow_unverifiable=allow_unverifiable)
    for report in reports:
        if as_json:
            click.echo(json.dumps(report.to_json()))
        else:
            click.echo("\n".join(report.lines()))
    if not as_json and (line := next_command(reports, file, code, worker, sample)):
        click.echo(line)
    raise click.exceptions.Exit(code)


def _repair(
    settings: Settings,
    folder: str | None,
    wait: float,
    at_most: int,
    hide: Callable[[], None],
    allowance: Allowance,
    *,
    yes: bool,
) -> Repair:
    """Return the function that repairs what reports name. `hide`: ends the display of the progress."""
    from incsnap.cli import interrupts, output
    from incsnap.errors import IncsnapError
    from incsnap.kafka.announcement_log import AnnouncementLog
    from incsnap.kafka.client_settings import ClientSettings
    from incsnap.verify.allowance import VerificationStopped
    from incsnap.verify.repair import repair
    from incsnap.verify.report import write_differences
    from incsnap.verify.signal_way import SignalWay

    client = ClientSettings(settings.kafka.bootstrap_servers, settings.kafka.producer)

    def agrees(text: str) -> bool:
        hide()
        click.echo(text, err=True)
        return not allowance.stopping.is_set() and (yes or interrupts.confirmed("Send?"))

    def mended(reports: Sequence[TableReport], server: str) -> Sequence[TopicKey]:
        if folder:
            write_differences(reports, Path(folder))

        def kept() -> str:
            written = folder or tempfile.mkdtemp(prefix="incsnap-differences-")
            write_differences(reports, Path(written))
            return written

        with closing(AnnouncementLog(client, settings.topic_prefix)) as log:
            try:
                way = partial(SignalWay, settings, server, wait, log, allowance)
                return repair(reports, way, agrees, at_most)
            except VerificationStopped:
                click.echo(f"The keys that were proved to differ are in {kept()}", err=True)
                raise
            except IncsnapError as error:
                written = kept()
                output.problem(f"{error.message}. Nothing was sent. The keys are in {written}", error.hint)
                return ()

    return mended
