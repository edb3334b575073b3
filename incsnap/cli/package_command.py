"""The command `incsnap package FOLDER`: it packs incsnap for the machines of a cluster that do not have it."""

from __future__ import annotations

from pathlib import Path

import click

from incsnap.cli import output


@click.command("package")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def package(folder: Path) -> None:
    """Pack incsnap for the machines of a cluster.

    FOLDER gets an archive for spark.archives, and a main file for spark-submit.
    """
    from incsnap.spark.cluster.packaging import package as write

    archive, main = write(folder)
    output.console().print(f"{archive}: spark.archives={archive.absolute()}#incsnap\n{main}: for spark-submit")
