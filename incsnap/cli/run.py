"""The command `incsnap run FILE`: it runs the job in the foreground until SIGINT or SIGTERM stops it at a batch's
end."""

from __future__ import annotations

import logging
import os

import click

from incsnap.cli.settings_file import settings_file
from incsnap.errors import PreflightFailed

log = logging.getLogger(__name__)


@click.command()
@settings_file
@click.option("--skip-check", is_flag=True, help="Start without checking servers and machines.")
@click.option(
    "--replace-job",
    is_flag=True,
    help="Replace a running job with the same topic.prefix: it ends, and this job continues from its offset.",
)
def run(file: str, worker: str | None, skip_check: bool, replace_job: bool) -> None:
    """Run the job until it is interrupted.

    Exit code 2 (PreflightFailed): a server is not ready, so the job was not started.
    """
    from incsnap.spark.worker_python import leave_pandas_out

    # Rows and keys are in the checkpoint and in Spark's temporary files. Only the job's user may read them.
    os.umask(0o077)
    leave_pandas_out()
    from incsnap.cli import output
    from incsnap.config.load import explain, read

    loaded = read(file, worker)
    output.set_log_format(loaded.settings.monitoring.log_format)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    if loaded.settings.snapshot.mode == "initial_only":
        from incsnap.checkpoint.object_store import set_access
        from incsnap.checkpoint.status import has_no_snapshot_left

        location = loaded.settings.checkpoint_location
        set_access(location, loaded.settings.store)
        if has_no_snapshot_left(location):
            log.info("The snapshot of %s is complete, and snapshot.mode=initial_only: there is nothing to do", location)
            return
    # Spark takes seconds to start. Meanwhile this process imports the rest and asks the servers.
    from incsnap.spark.launch.startup import launched

    with launched(loaded.settings) as launch:
        from incsnap.cli.check import all_findings, show
        from incsnap.spark.cluster.machines import require_machines
        from incsnap.spark.supervision import run_forever

        if not skip_check:
            findings = all_findings(loaded.settings)
            show(findings)
            if any(finding.severity == "error" for finding in findings):
                raise PreflightFailed("The servers are not ready")
        asked = () if skip_check else (lambda spark: require_machines(spark, loaded.settings),)
        run_forever(loaded.settings, launch, explain(file, worker).settings, *asked, replace_job=replace_job)
