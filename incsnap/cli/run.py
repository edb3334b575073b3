"""``incsnap run FILE``: the job in the foreground, until SIGINT or SIGTERM stop it at a batch's end."""

from __future__ import annotations

import click

from incsnap.cli import output
from incsnap.cli.check import all_findings, show
from incsnap.config.load import read
from incsnap.errors import PreflightFailed


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--skip-check", is_flag=True, help="Start without asking whether the servers are ready.")
def run(file: str, skip_check: bool) -> None:
    """Run the job until it is interrupted."""
    loaded = read(file)
    for warning in loaded.warnings:
        output.warning(warning)
    if not skip_check:
        found = all_findings(loaded.settings)
        show(found)
        if any(finding.severity == "error" for finding in found):
            raise PreflightFailed("The servers are not ready")
    # Spark takes seconds to import; the other commands should not wait for it.
    from incsnap.pipeline.job import run_forever

    run_forever(loaded.settings)
