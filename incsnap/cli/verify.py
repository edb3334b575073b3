"""The command `incsnap verify FILE`: it compares the captured tables with their topics."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
from pathlib import Path

import click

from incsnap.cli.settings_file import settings_file

#: Properties of Spark for one large comparison, where a job's are for many small batches.
_SPARK = {
    "spark.shuffle.compress": "true",
    "spark.driver.memory": "1g",
}
_SAMPLE = re.compile(r"1/([1-9][0-9]*)\Z")


def _is_no_late_call(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("Exception while sending command")


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
def verify(
    file: str,
    worker: str | None,
    tables: tuple[str, ...],
    sample: str | None,
    as_json: bool,
    differences: str | None,
    strict: bool,
    allow_unverifiable: bool,
    wait: float,
) -> None:
    """Compare the captured tables with their topics, while both change.

    It writes nothing to MySQL or Kafka and takes no lock. The job may run or not. Exit codes: 0 equal, 1 differences, 2
    no answer. Exit code 2 (ConfigError): an option has another form.
    """
    from incsnap.spark.worker_python import leave_pandas_out

    # Rows are in Spark's temporary files. Only this user may read them.
    os.umask(0o077)
    leave_pandas_out()
    from incsnap.cli import output
    from incsnap.config.load import read
    from incsnap.errors import ConfigError, IncsnapError
    from incsnap.spark.launch.startup import launched
    from incsnap.verify.evidence import connector_offsets
    from incsnap.verify.report import NO_ANSWER, exit_code, next_command, write_differences
    from incsnap.verify.rounds import Limits
    from incsnap.verify.verification import Choice, verify_tables

    one_in = _SAMPLE.match(sample) if sample else None
    if sample and one_in is None:
        raise ConfigError(f"--sample {sample} is not of the form 1/N", "Write --sample 1/100 for one key in a hundred.")
    settings = read(file, worker).settings
    settings = settings.model_copy(update={"spark": {**_SPARK, **settings.spark}})
    choice = Choice(tables, int(one_in[1]) if one_in else 1, Limits(wait_seconds=wait), connector_offsets(file, worker))
    try:
        with launched(settings) as launch:
            spark = launch.session()
            try:
                reports = verify_tables(spark, settings, choice)
            finally:
                # Objects of the JVM that are freed later call a JVM that has ended. Py4J logs that as an error.
                gc.collect()
                logging.getLogger().addFilter(_is_no_late_call)
                spark.stop()
    except IncsnapError as error:
        output.problem(error.message, error.hint)
        raise click.exceptions.Exit(NO_ANSWER) from None
    if differences:
        write_differences(reports, Path(differences))
    code = exit_code(reports, strict=strict, allow_unverifiable=allow_unverifiable)
    for report in reports:
        if as_json:
            click.echo(json.dumps(report.to_json()))
        else:
            click.echo("\n".join(report.lines()))
    if not as_json and (line := next_command(reports, file, code, differences)):
        click.echo(line)
    raise click.exceptions.Exit(code)
