"""The command `incsnap prepare`: it makes the archive of classes that speeds up the starts of jobs on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from incsnap.cli import output


@click.command("prepare")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def prepare(file: Path | None) -> None:
    """Make starts of jobs on this machine quicker.

    The command makes an archive of Spark's classes in the cache directory (INCSNAP_CACHE). That takes half a minute,
    once for an installation, and saves 4 s at each start. Run this again after an update of Java or PySpark. FILE is
    needed only for jobs with spark.driver.extraClassPath or a checkpoint in a bucket, which have their own archives.
    """
    from incsnap.config.load import load
    from incsnap.spark.launch.preparing import prepare_start

    made = prepare_start(None if file is None else load(file))
    output.console().print(str(made) if made else "There is no archive of classes: jobs start without.")
