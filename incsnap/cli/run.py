"""``incsnap run FILE``: the job in the foreground, until SIGINT or SIGTERM stop it at a batch's end."""

from __future__ import annotations

import click

from incsnap.cli.settings_file import settings_file
from incsnap.errors import PreflightFailed


@click.command()
@settings_file
@click.option("--skip-check", is_flag=True, help="Start without asking whether the servers are ready.")
def run(file: str, worker: str | None, skip_check: bool) -> None:
    """Run the job until it is interrupted."""
    from incsnap.pipeline.worker_python import leave_pandas_out

    leave_pandas_out()
    from incsnap.cli import output
    from incsnap.config.load import read

    loaded = read(file, worker)
    for warning in loaded.warnings:
        output.warning(warning)
    # Spark takes seconds: it boots while we import the rest and ask the servers.
    from incsnap.pipeline.starting import starting

    with starting(loaded.settings) as begun:
        from incsnap.cli.check import all_findings, show
        from incsnap.pipeline.job import run_forever

        if not skip_check:
            found = all_findings(loaded.settings)
            show(found)
            if any(finding.severity == "error" for finding in found):
                raise PreflightFailed("The servers are not ready")
        run_forever(loaded.settings, begun)
