"""The command `incsnap run FILE`: it runs the job in the foreground until SIGINT or SIGTERM stops it at a batch's
end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import click

from incsnap.cli.settings_file import settings_file
from incsnap.errors import PreflightFailed, ServerAway

if TYPE_CHECKING:
    from incsnap.config.job_file import JobFile
    from incsnap.config.settings import Settings
    from incsnap.monitoring.outages import Outages
    from incsnap.mysql.server_rules import Finding

#: Seconds between two checks of servers that do not answer.
_PAUSE_SECONDS = 2.0

log = logging.getLogger(__name__)


@click.command()
@settings_file
@click.option("--skip-check", is_flag=True, help="Start without checking servers and machines.")
@click.option(
    "--replace-job",
    is_flag=True,
    help="Replace a running job with the same topic.prefix: it ends, and this job continues from its offset.",
)
def run(file: JobFile, worker: str | None, skip_check: bool, replace_job: bool) -> None:
    """Run the job until it is interrupted.

    Exit code 2 (PreflightFailed): a server is not ready, so the job was not started.
    """
    run_job(file, worker, skip_check=skip_check, replace_job=replace_job)


def run_job(
    file: JobFile,
    worker: str | None,
    *,
    skip_check: bool = False,
    replace_job: bool = False,
    await_place: Callable[[Event], None] | None = None,
) -> None:
    """Run the job of `file` and of the `worker`'s file until it is interrupted.

    `skip_check` and `replace_job` are the options of `run`. `await_place`: see `run_forever`. Raise PreflightFailed if
    a server is not ready.
    """
    from incsnap.spark.worker_python import leave_pandas_out

    # Rows and keys are in the checkpoint and in Spark's temporary files. Only the job's user may read them.
    os.umask(0o077)
    leave_pandas_out()
    from incsnap.cli import output
    from incsnap.config.load import explain, log_format_of, read

    # First, because wrong settings are lines of the log too.
    output.set_log_format(log_format_of(file, worker))
    loaded = read(file, worker)
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
        from incsnap.cli.check import all_findings
        from incsnap.spark.cluster.machines import require_machines
        from incsnap.spark.supervision import run_forever

        waits_for: list[Finding] = []
        shown: set[Finding] = set()
        if not skip_check:
            waits_for = _require(all_findings(loaded.settings), shown)
        asked = () if skip_check else (lambda spark: require_machines(spark, loaded.settings),)
        run_forever(
            loaded.settings,
            launch,
            explain(file, worker).settings,
            *asked,
            await_servers=partial(_await_servers, loaded.settings, waits_for, shown) if waits_for else None,
            await_place=await_place,
            replace_job=replace_job,
        )


def _require(findings: list[Finding], shown: set[Finding]) -> list[Finding]:
    """Show the findings, and return those of servers that do not answer: a start waits for these servers.

    Do not show again what is in `shown`, and add the rest: a start that waits checks every few seconds. Raise
    PreflightFailed if there is any other error.
    """
    from incsnap.cli.check import show

    errors = [each for each in findings if each.severity == "error"]
    waits_for = [each for each in errors if each.waits]
    is_refused = len(waits_for) < len(errors)
    new = [each for each in findings if (is_refused or not each.waits) and each not in shown]
    show(new)
    shown.update(new)
    if is_refused:
        raise PreflightFailed("The servers are not ready")
    return waits_for


def _await_servers(
    settings: Settings, waits_for: list[Finding], shown: set[Finding], outages: Outages, stopping: Event
) -> None:
    """Check the servers again until all of `waits_for` answer, or `stopping` is set. `shown`: see `_require`.

    Raise ServerAway if they do not answer after `errors.max.retries` checks. Other errors: see `_require`.
    """
    from incsnap.cli.check import all_findings
    from incsnap.monitoring.outages import KAFKA, MYSQL, REGISTRY

    names = {MYSQL: "server", KAFKA: "kafka", REGISTRY: "schema registry"}
    checks, most = 0, settings.retries.max_retries
    while waits_for:
        if 0 <= most <= checks:
            problems = "; ".join(each.problem for each in waits_for)
            raise ServerAway(f"{problems}. errors.max.retries={most} is used up")
        checks += 1
        reasons = {each.name: each.problem.rpartition(": ")[2] for each in waits_for}
        for server, name in names.items():
            if name in reasons:
                outages.fails(server, reasons[name])
            else:
                outages.answers(server)
        if stopping.wait(_PAUSE_SECONDS):
            return
        waits_for = _require(all_findings(settings), shown)
    for server in names:
        outages.answers(server)
