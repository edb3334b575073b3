"""``incsnap package FOLDER``: what a cluster's machines are sent that have no incsnap."""

from __future__ import annotations

from pathlib import Path

import click

from incsnap.cli import output


@click.command("package")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def package(folder: Path) -> None:
    """Pack incsnap for a cluster's machines that have none of it."""
    from incsnap.spark.packaging import package as write

    archive, main = write(folder)
    output.console().print(f"{archive}: spark.archives={archive.absolute()}#incsnap\n{main}: for spark-submit")
