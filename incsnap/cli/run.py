"""``incsnap run FILE``: the job in the foreground, until SIGINT or SIGTERM stop it at a batch's end."""

from __future__ import annotations

import logging

import click

from incsnap.cli.settings_file import settings_file
from incsnap.errors import PreflightFailed

log = logging.getLogger(__name__)


@click.command()
@settings_file
@click.option("--skip-check", is_flag=True, help="Start without asking whether servers and machines are ready.")
@click.option(
    "--replace-job",
    is_flag=True,
    help="Take the place of a job with the same topic.prefix: it ends, and this one goes on where it has ended.",
)
def run(file: str, worker: str | None, skip_check: bool, replace_job: bool) -> None:
    """Run the job until it is interrupted."""
    from incsnap.spark.worker_python import leave_pandas_out

    leave_pandas_out()
    from incsnap.cli import output
    from incsnap.config.load import explain, read

    loaded = read(file, worker)
    output.set_log_format(loaded.settings.monitoring.log_format)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    if loaded.settings.snapshot.mode == "initial_only":
        from incsnap.checkpoint.object_store import reach
        from incsnap.checkpoint.status import has_no_snapshot_left

        location = loaded.settings.checkpoint_location
        reach(location, loaded.settings.store)
        if has_no_snapshot_left(location):
            log.info("The snapshot of %s is complete, and snapshot.mode=initial_only: there is nothing to do", location)
            return
    # Spark takes seconds: it boots while we import the rest and ask the servers.
    from incsnap.spark.starting import starting

    with starting(loaded.settings) as begun:
        from incsnap.cli.check import all_findings, show
        from incsnap.spark.supervision import run_forever

        if not skip_check:
            findings = all_findings(loaded.settings)
            show(findings)
            if any(finding.severity == "error" for finding in findings):
                raise PreflightFailed("The servers are not ready")
        asked = () if skip_check else (begun.require_machines,)
        run_forever(loaded.settings, begun, explain(file, worker).settings, *asked, replace_job=replace_job)
