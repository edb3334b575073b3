"""``incsnap prepare``: what makes the starts of jobs on this machine quicker."""

from __future__ import annotations

from pathlib import Path

import click

from incsnap.cli import output


@click.command("prepare")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def prepare(file: Path | None) -> None:
    """Make the starts of jobs on this machine quicker.

    It makes the archive of Spark's classes that they start from: half a minute, once for an installation. That takes
    4 s off each start, and stands in the cache directory (INCSNAP_CACHE). Without this command a job makes it for the
    next, beside its work. FILE is needed only for jobs with spark.driver.extraClassPath or a checkpoint in a bucket:
    those have an archive of their own.
    """
    from incsnap.config.load import load
    from incsnap.spark.preparing import prepare_start

    made = prepare_start(None if file is None else load(file))
    output.console().print(str(made) if made else "There is no archive of classes: jobs start without.")
